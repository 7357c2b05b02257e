package transport

import (
	"context"
	"sync"
)

// Usage counts the calls of a client under way, so that it is closed after the last.
type Usage struct {
	mu     sync.Mutex
	calls  int
	closed bool
	// idle is closed when the client is closed and no call is under way.
	idle chan struct{}
	// closing is closed when the client is: it ends what has no end of its own.
	closing chan struct{}
}

// NewUsage returns a Usage without calls.
func NewUsage() *Usage { return &Usage{idle: make(chan struct{}), closing: make(chan struct{})} }

// UntilClosed returns a context that ends with ctx or when the client is closed.
func (u *Usage) UntilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-u.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Begin counts a call. It reports false if the client is closed.
func (u *Usage) Begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.calls++
	}
	return !u.closed
}

// End counts the end of a call.
func (u *Usage) End() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls--
	if u.closed && u.calls == 0 {
		close(u.idle)
	}
}

// Close allows no further call, and waits for those under way. It ends with ctx, of
// which it leaves CloseTimeout for the end of the session. It reports whether it was the
// first to close the client; only the first waits.
func (u *Usage) Close(ctx context.Context) (first bool) {
	u.mu.Lock()
	first = !u.closed
	u.closed = true
	if first {
		close(u.closing)
	}
	if first && u.calls == 0 {
		close(u.idle)
	}
	u.mu.Unlock()
	if !first {
		return false
	}
	wait, stop := context.WithCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		wait, stop = context.WithDeadline(ctx, end.Add(-CloseTimeout))
	}
	defer stop()
	select {
	case <-u.idle:
	case <-wait.Done():
	}
	return true
}
