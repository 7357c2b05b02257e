package mockcloud

import (
	"sync"
	"time"
)

// Clock is the source of time of a cloud.
type Clock interface {
	Now() time.Time
	// After sends the time when d has passed.
	After(d time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// ManualClock is a Clock whose time changes with Advance only.
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

// NewManualClock returns a clock with the time start.
func NewManualClock(start time.Time) *ManualClock {
	return &ManualClock{now: start, changed: make(chan struct{})}
}

// Now returns the time of the clock.
func (m *ManualClock) Now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// After sends the time when the clock has been advanced by d.
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

// Advance moves the clock forward and sends to the channels of After that are due.
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

// AwaitWaiters blocks until at least n channels of After are waiting, so that a
// test can advance the clock when the code under test waits for it.
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
