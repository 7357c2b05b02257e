// Package pending tracks creates between two reconciles: which may still take
// effect, and what they created that is not on record yet.
package pending

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Tracker holds one record for each object without a recorded id. It knows
// nothing of what an earlier process did. All methods may be called at any time
// from any goroutine.
type Tracker struct {
	mu      sync.Mutex
	records map[types.UID]record
}

// record is what is known of the creates of one object.
type record struct {
	// sent is when a create was last sent whose outcome is not known or not on record yet.
	sent time.Time
	// created is the id of what a create made.
	created string
	// refused: every create was sent by this process and clearly refused.
	refused bool
	// deleted is when the object's deletion was first observed by this process.
	deleted time.Time
}

// NewTracker returns a Tracker without records.
func NewTracker() *Tracker { return &Tracker{records: map[types.UID]record{}} }

func (t *Tracker) update(uid types.UID, change func(*record)) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.records[uid]
	change(&r)
	t.records[uid] = r
	return r
}

func (t *Tracker) get(uid types.UID) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[uid]
}

// Unknown records that a create was sent and that its outcome is not known.
func (t *Tracker) Unknown(uid types.UID, at time.Time) {
	t.update(uid, func(r *record) { r.sent, r.refused = at, false })
}

// Refused records that no create of the object is open, neither the last one
// nor any before.
func (t *Tracker) Refused(uid types.UID) { t.update(uid, func(r *record) { r.refused = true }) }

// Created records what a create made. A listing may lag behind it until the id
// is on record.
func (t *Tracker) Created(uid types.UID, id string, at time.Time) {
	t.update(uid, func(r *record) { r.sent, r.created, r.refused = at, id, false })
}

// CreatedID returns the id of what the object's create made, as far as this
// process knows.
func (t *Tracker) CreatedID(uid types.UID) (id string, ok bool) {
	id = t.get(uid).created
	return id, id != ""
}

// Forget drops the record of an object: its id is on record, or it is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.records, uid)
}

// Len returns the number of records.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// DeletedSince returns when the object's deletion was first observed by this
// process, which is now for the first call.
func (t *Tracker) DeletedSince(uid types.UID, now time.Time) time.Time {
	return t.update(uid, func(r *record) {
		if r.deleted.IsZero() {
			r.deleted = now
		}
	}).deleted
}

// UnknownSince returns when a create was last sent whose outcome is not known,
// or when this process started if none was sent since; the zero time if no
// create can still take effect.
func (t *Tracker) UnknownSince(uid types.UID, started time.Time) time.Time {
	r := t.get(uid)
	switch {
	case r.refused:
		return time.Time{}
	case r.sent.After(started):
		return r.sent
	default:
		return started
	}
}
