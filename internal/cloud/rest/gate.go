package rest

import (
	"math/rand/v2"
	"sync"
	"time"
)

// gate holds all calls of a client back until the time that the cloud asked for.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

// close keeps the gate shut for d from now. A shorter wait never shortens a
// longer one: answers overtake each other.
func (g *gate) close(d time.Duration) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until := time.Now().Add(d); until.After(g.until) {
		g.until = until
	}
	return g.until
}

// remaining is how long the gate stays shut, 0 or less when it is open.
func (g *gate) remaining() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.until)
}

// spread lengthens d by up to a tenth, so that those who were told to wait for
// the same moment do not return at the same moment.
func spread(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // spreads load, hides nothing
}
