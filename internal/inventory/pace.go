package inventory

import (
	"maps"
	"time"
)

// maxChanges is how many changes of a server that a watch reports are published at once.
// After that, one is published each changeInterval.
const (
	maxChanges     = 10
	changeInterval = 3 * time.Second
)

// pace bounds how often the changes of a server are published, so that one that changes
// all the time does not have its object written all the time. It holds, by id, when all
// changes that were published are allowed for.
type pace map[string]time.Time

// wait returns the time until a change of a server may be published.
func (p pace) wait(id string, now time.Time) time.Duration {
	return max(0, max(0, p[id].Sub(now))-(maxChanges-1)*changeInterval)
}

// count records that changes of these servers are published.
func (p pace) count(ids []string, now time.Time) {
	for _, id := range ids {
		p[id] = later(p[id], now).Add(changeInterval)
	}
}

// forget drops the servers whose published changes do not count any more.
func (p pace) forget(now time.Time) {
	maps.DeleteFunc(p, func(_ string, allowed time.Time) bool { return !allowed.After(now) })
}
