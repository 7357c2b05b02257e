package vsphere

import (
	"context"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

// usage counts the calls under way, so that a client is closed after the last.
type usage struct {
	mu     sync.Mutex
	calls  int
	closed bool
	// idle is closed when the client is closed and no call is under way.
	idle chan struct{}
}

func newUsage() *usage { return &usage{idle: make(chan struct{})} }

func (u *usage) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.calls++
	}
	return !u.closed
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls--
	if u.closed && u.calls == 0 {
		close(u.idle)
	}
}

// close allows no further call, and reports whether it was the first to do so.
func (u *usage) close() (idle <-chan struct{}, first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	first = !u.closed
	u.closed = true
	if first && u.calls == 0 {
		close(u.idle)
	}
	return u.idle, first
}

// begin begins a call, unless its context has ended already. Its context ends after the client's timeout. The caller calls
// end unless there is an error.
func (c *Client) begin(ctx context.Context, op string) (bounded context.Context, end func(), err error) {
	if !c.usage.begin() {
		return nil, nil, refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if ctx.Err() != nil {
		c.usage.end()
		return nil, nil, c.fail(ctx, op, ctx.Err())
	}
	bounded, cancel := c.transport.WithTimeout(ctx)
	return bounded, func() {
		cancel()
		c.usage.end()
	}, nil
}
