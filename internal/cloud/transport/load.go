package transport

import (
	"cmp"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Load returns the limits, and the requests that are under way or wait.
func (t *Transport) Load() cloud.Load {
	load := t.limiter.all.load()
	load.RequestsPerSecond, load.Burst, load.MaxInFlight = t.limits.RequestsPerSecond, t.limits.Burst, t.limits.MaxInFlight
	return load
}

func (l *limiter) load() cloud.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	load, now := cloud.Load{InFlight: l.inFlight}, time.Now()
	for name, f := range l.flows {
		if !f.active(now) {
			continue
		}
		of := cloud.FlowLoad{Name: name, Waiting: len(f.waiting)}
		if f.retryAt.After(now) {
			of.RetryAt = f.retryAt
		}
		load.Waiting += of.Waiting
		load.Flows = append(load.Flows, of)
	}
	slices.SortFunc(load.Flows, func(a, b cloud.FlowLoad) int { return cmp.Compare(a.Name, b.Name) })
	return load
}
