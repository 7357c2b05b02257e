package rest

import (
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

// begin counts a call. It reports false if the client is closed.
func (u *usage) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.calls++
	return true
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls--
	if u.closed && u.calls == 0 {
		close(u.idle)
	}
}

// close allows no further call. It returns a channel that is closed when none is
// under way, and whether it was the first to close the client.
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

// errClosed is the error of a call of a closed client.
func errClosed(op string) *cloud.Error {
	return refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
}
