// Package creates remembers what a create protocol must not forget between two
// passes: which creates are open, and what came of them.
package creates

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Memory holds, for each object without a recorded id, when a create was last
// sent whose outcome is not known, and the id of one whose answer came but is not
// on record yet. Of what an earlier process did it knows nothing. All methods
// may be called at any time from any goroutine.
type Memory struct {
	mu   sync.Mutex
	sent map[types.UID]time.Time
	made map[types.UID]string
	// clear holds those of which nothing can come: every create was sent by this
	// process and clearly refused.
	clear map[types.UID]struct{}
	// doomed is when a deletion was first seen here.
	doomed map[types.UID]time.Time
}

// New returns a Memory of nothing.
func New() *Memory {
	return &Memory{
		sent: map[types.UID]time.Time{}, made: map[types.UID]string{}, clear: map[types.UID]struct{}{}, doomed: map[types.UID]time.Time{},
	}
}

// Mark notes that a create was sent and that its outcome is not known.
func (m *Memory) Mark(uid types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[uid] = at
	delete(m.clear, uid)
}

// Refused notes that no create of the object is open, neither this one nor any
// before.
func (m *Memory) Refused(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear[uid] = struct{}{}
}

// Answered notes what a create made: until that is on record, a listing may
// still lag behind it.
func (m *Memory) Answered(uid types.UID, id string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[uid], m.made[uid] = at, id
	delete(m.clear, uid)
}

// MadeFor returns what the object's create made, as far as is known here.
func (m *Memory) MadeFor(uid types.UID) (id string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id, ok = m.made[uid]
	return id, ok
}

// Forget drops all of an object: its id is on record, or it is gone.
func (m *Memory) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sent, uid)
	delete(m.made, uid)
	delete(m.clear, uid)
	delete(m.doomed, uid)
}

// Len is the number of objects of which something is remembered, counted once
// for each thing.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sent) + len(m.made) + len(m.clear) + len(m.doomed)
}

// DoomedSince is when the object's deletion was first seen in this process: now
// at the earliest call.
func (m *Memory) DoomedSince(uid types.UID, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.doomed[uid]; !known {
		m.doomed[uid] = now
	}
	return m.doomed[uid]
}

// UncertainSince is when a create was last sent whose outcome is not known, or
// when this process began if there was none since; the zero time if nothing can
// come of what was sent.
func (m *Memory) UncertainSince(uid types.UID, began time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.clear[uid]; ok {
		return time.Time{}
	}
	if at, ok := m.sent[uid]; ok && at.After(began) {
		return at
	}
	return began
}
