package rest

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxTurnWait is how long a call waits for its turn before it is refused: a
	// worker that waits serves nobody.
	maxTurnWait = time.Second
	// maxTurnAhead bounds how late a refused call is told to come back.
	maxTurnAhead = time.Minute
)

// turns keeps to the limits of one cloud. Each try takes one.
type turns struct {
	rate  *rate.Limiter
	slots chan struct{}
	// gap is the time between two turns at the sustained rate.
	gap time.Duration

	mu sync.Mutex
	// promised is the last turn that a refused call was told. Those refused at
	// once are told different turns, a gap apart, or they would return as a herd.
	promised time.Time
}

func newTurns(l Limits) *turns {
	return &turns{
		rate:  rate.NewLimiter(rate.Limit(l.RequestsPerSecond), l.Burst),
		slots: make(chan struct{}, l.MaxInFlight),
		gap:   time.Duration(float64(time.Second) / l.RequestsPerSecond),
	}
}

// take waits for a turn, at most for patience. It returns the function that
// gives the turn back; or how long to stay away, with a nil function; or
// neither when the context ended.
func (t *turns) take(ctx context.Context, patience time.Duration) (done func(), away time.Duration) {
	now := time.Now()
	turn := t.rate.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	if delay > patience {
		turn.CancelAt(now)
		return nil, t.later(now, delay)
	}
	if !pause(ctx, delay) {
		turn.Cancel()
		return nil, 0
	}
	timeout := time.NewTimer(patience - delay)
	defer timeout.Stop()
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, 0
	default:
	}
	select {
	case t.slots <- struct{}{}:
		return func() { <-t.slots }, 0
	case <-timeout.C:
		return nil, t.later(time.Now(), patience)
	case <-ctx.Done():
		return nil, 0
	}
}

// later books the next free turn after now+delay for a refused call.
func (t *turns) later(now time.Time, delay time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	earliest := now.Add(delay)
	if t.promised.Before(earliest) {
		t.promised = earliest
	}
	t.promised = t.promised.Add(t.gap)
	if t.promised.After(now.Add(maxTurnAhead)) {
		// The queue is a minute long: begin a new round over it.
		t.promised = earliest.Add(t.gap)
	}
	return spread(t.promised.Sub(now))
}

// pause waits for d and tells whether the context outlived it.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
