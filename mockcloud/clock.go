package mockcloud

import (
	"sync"
	"time"
)

// Clock is where the cloud takes time from.
type Clock interface {
	Now() time.Time
	// After sends once d has passed.
	After(d time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// ManualClock is a Clock that stands still until it is advanced.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
	changed chan struct{}
}

type waiter struct {
	due time.Time
	ch  chan time.Time
}

// NewManualClock returns a clock that shows start.
func NewManualClock(start time.Time) *ManualClock {
	return &ManualClock{now: start, changed: make(chan struct{})}
}

// Now returns what the clock shows.
func (m *ManualClock) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// After sends once the clock has been advanced by d.
func (m *ManualClock) After(d time.Duration) <-chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- m.now
		return ch
	}
	m.waiters = append(m.waiters, waiter{due: m.now.Add(d), ch: ch})
	close(m.changed)
	m.changed = make(chan struct{})
	return ch
}

// Advance moves the clock forward and wakes whoever is due.
func (m *ManualClock) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
	waiting := m.waiters[:0]
	for _, w := range m.waiters {
		if w.due.After(m.now) {
			waiting = append(waiting, w)
			continue
		}
		w.ch <- m.now
	}
	m.waiters = waiting
}

// AwaitWaiters blocks until at least n callers of After wait, so that a test
// advances only once the code under test stands still.
func (m *ManualClock) AwaitWaiters(n int) {
	for {
		m.mu.Lock()
		count, changed := len(m.waiters), m.changed
		m.mu.Unlock()
		if count >= n {
			return
		}
		<-changed
	}
}
