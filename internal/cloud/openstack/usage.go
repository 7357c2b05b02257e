package openstack

import "sync"

// usage counts the calls under way, so that a client is closed after the last. A call
// holds the lock for reading, and the end of the client for writing, forever.
type usage struct {
	lock  sync.RWMutex
	close func() (idle <-chan struct{})
}

func newUsage() *usage {
	u := &usage{}
	u.close = sync.OnceValue(func() <-chan struct{} {
		idle := make(chan struct{})
		go func() {
			u.lock.Lock()
			close(idle)
		}()
		return idle
	})
	return u
}

// begin counts a call. It reports false if the client is closed.
func (u *usage) begin() bool { return u.lock.TryRLock() }

func (u *usage) end() { u.lock.RUnlock() }
