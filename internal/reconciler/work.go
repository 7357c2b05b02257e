package reconciler

import (
	"context"
	"time"
)

const (
	// stopGrace is how long after the manager was asked to stop an effect that had
	// begun may take, such as a create whose answer holds the id.
	stopGrace = 35 * time.Second
	// recordTimeout is how long a reconcile may go on to write its result after its
	// steps had to end.
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
	parent context.Context //nolint:containedctx // ends with the reconcile
	// ctx is for reads. It ends with the parent and at the deadline.
	ctx context.Context //nolint:containedctx // ends with the reconcile
	// effects is for steps that change something. It ends at the deadline, and
	// stopGrace after the parent.
	effects context.Context //nolint:containedctx // ends with the reconcile
	// record never ends; see recording.
	record context.Context //nolint:containedctx // ends with the reconcile

	// span is that of the reconcile, nil without tracing.
	span *span
	// owned reports whether the object is this manager's at the moment; nil if
	// there is no other manager.
	owned func() bool
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
		cancelAfter(effects, stopGrace, cancelEffects)
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
	return &work{parent: w.parent, ctx: ctx, effects: ctx, record: w.record, span: w.span, persistent: true}
}

// stopping reports whether no further step may begin.
func (w *work) stopping() bool { return !w.persistent && w.parent.Err() != nil }

// recording returns a context for the writes at the end of a reconcile. It ends
// recordTimeout after the steps must have ended.
func (w *work) recording() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(w.record)
	unlink := context.AfterFunc(w.effects, func() { cancelAfter(ctx, recordTimeout, cancel) })
	return ctx, func() {
		unlink()
		cancel()
	}
}

// cancelAfter calls cancel after a time, unless ctx ends before.
func cancelAfter(ctx context.Context, after time.Duration, cancel context.CancelFunc) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-ctx.Done():
	}
}
