package reconciler

import (
	"context"
	"time"
)

const (
	// stopGrace is how long after the manager was asked to stop an effect that had
	// begun may take, such as a create whose answer holds the id.
	stopGrace = 35 * time.Second
	// recordTimeout bounds what a reconcile writes at its end, also when the
	// deadline of its steps has passed.
	recordTimeout = 5 * time.Second
	// StopTimeout is how long a manager may take to stop: an effect that had begun
	// ends, and its result is recorded.
	StopTimeout = stopGrace + recordTimeout + 5*time.Second
	// leadingDelay is the time until a reconcile that may not act is tried again.
	leadingDelay = time.Second
)

// work is one reconcile with its contexts. What has no effect ends when the
// manager is asked to stop. What has an effect does not: its answer must be
// recorded.
type work struct {
	// parent ends when the manager is asked to stop.
	parent context.Context
	// ctx is for reads. It ends with the parent and at the deadline.
	ctx context.Context
	// effects is for steps that change something. It ends at the deadline, and
	// stopGrace after the parent.
	effects context.Context
	// record is for writes of the result. It has no deadline of its own.
	record context.Context

	// persistent: no later reconcile will do this, so it continues while the
	// manager stops.
	persistent bool
	// interrupted: a step did not begin, or ended without a result, because the
	// process is stopping or does not lead any more.
	interrupted bool
	// changedCloud: a step that changes the cloud has begun.
	changedCloud bool
}

// begin returns the work of a reconcile, and a function that ends it.
func begin(parent context.Context, deadline time.Duration) (*work, func()) {
	detached := context.WithoutCancel(parent)
	effects, cancelEffects := context.WithTimeout(detached, deadline)
	ctx, cancel := context.WithCancel(effects)
	unlink := context.AfterFunc(parent, func() {
		cancel()
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-grace.C:
			cancelEffects()
		case <-effects.Done():
		}
	})
	return &work{parent: parent, ctx: ctx, effects: effects, record: detached}, func() {
		unlink()
		cancel()
		cancelEffects()
	}
}

// persist returns the work of a reconcile that continues while the manager
// stops, and that writes nothing to Kubernetes.
func (w *work) persist() *work {
	ctx := withAbandoned(w.effects)
	return &work{parent: w.parent, ctx: ctx, effects: ctx, record: w.record, persistent: true}
}

// stopping reports whether no further step may begin.
func (w *work) stopping() bool { return !w.persistent && w.parent.Err() != nil }

// recording returns a context for the writes at the end of a reconcile.
func (w *work) recording() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.record, recordTimeout)
}
