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
}

func newCreates() *creates { return &creates{sent: map[types.UID]time.Time{}} }

func (c *creates) mark(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[uid] = at
}

func (c *creates) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, uid)
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
