package inventory

import (
	"math/rand/v2"
	"time"
)

// Wait has ref woken once the cloud can be used (again): at once if that has
// come about since view was taken.
func (i *Inventory) EnqueueWhenAvailable(ref Ref, view View) {
	i.mu.Lock()
	missed := i.returns != view.returns
	if !missed {
		i.waiting[ref] = struct{}{}
	}
	i.mu.Unlock()
	if missed {
		i.bell.ring(Event{Cloud: i.name, Refs: []Ref{ref}})
	}
}

// Want has ref woken by a listing begun at or after since, and asks for one.
func (i *Inventory) EnqueueAfterListing(ref Ref, since time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.wanted[ref].Before(since) {
		i.wanted[ref] = since
		i.calm = 0
	}
	i.bell.hasten(i.name, quickest)
}

// Hasten asks for a listing soon: something went wrong that the Cloud should know of.
func (i *Inventory) RequestPoll() {
	i.mu.Lock()
	i.hasty, i.calm = true, 0
	i.mu.Unlock()
	i.bell.hasten(i.name, quickest)
}

const (
	// quickest is the least time between two listings.
	quickest = time.Second
	// awayInterval is the most time between two tries while the cloud is away.
	awayInterval = 10 * time.Second
)

// NextPoll is the time until the next listing is due, 0 when it is: the poll
// interval with a tenth of jitter, or sooner while servers are on their way to
// another state or somebody asked for news. Listings that bring none come less
// and less often, and listing never takes up more than a quarter of the time.
func (i *Inventory) NextPoll() time.Duration {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.polled.IsZero() {
		return 0
	}
	every := i.every
	switch {
	case i.away != "":
		every = min(every, awayInterval)
	case i.busy():
		soon := quickest << min(i.calm, 10)
		if i.snapshot != nil {
			soon = max(soon, 4*i.snapshot.Took)
		}
		every = min(every, soon)
	}
	return max(0, every-i.clock().Sub(i.polled))
}

// busy tells whether news are wanted before the interval is over.
func (i *Inventory) busy() bool {
	if i.hasty || len(i.wanted) > 0 || len(i.underWay) > 0 || (i.snapshot != nil && i.snapshot.busy) {
		return true
	}
	for _, n := range i.noted {
		if n.server.State.Transitional() {
			return true
		}
	}
	return false
}

// Polling notes that a listing begins.
func (i *Inventory) Polling() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.polled, i.hasty = i.clock(), false
	i.every = time.Duration(float64(i.settings.PollInterval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // spreads load, hides nothing
}
