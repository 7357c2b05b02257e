package network

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// creates remembers, for each Network without a recorded id, when a create was
// last sent whose outcome is not known. Of what an earlier process did it knows
// nothing.
type creates struct {
	mu   sync.Mutex
	sent map[types.UID]time.Time
	// doomed is when a deletion was first seen here.
	doomed map[types.UID]time.Time
}

func newCreates() *creates {
	return &creates{sent: map[types.UID]time.Time{}, doomed: map[types.UID]time.Time{}}
}

func (c *creates) mark(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[uid] = at
}

func (c *creates) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, uid)
	delete(c.doomed, uid)
}

// doomedSince is when the Network's deletion was first seen in this process: now
// at the earliest call.
func (c *creates) doomedSince(uid types.UID, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.doomed[uid]; !known {
		c.doomed[uid] = now
	}
	return c.doomed[uid]
}

// uncertainSince is that time, or when this process began if there was none.
func (c *creates) uncertainSince(uid types.UID, began time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.sent[uid]; ok && at.After(began) {
		return at
	}
	return began
}
