package rest

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxTurnWait is how long a call waits for its turn before it is refused: a
	// worker that waits serves nobody.
	maxTurnWait = time.Second
	// maxTurnAhead bounds how late a refused call is told to come back.
	maxTurnAhead = time.Minute
)

// turns keeps to the limits of one cloud. Each try takes one. Flows share them by
// start-time fair queueing: a flow with many calls does not hold up one with few,
// and a flow alone has them all.
type turns struct {
	// gap is the time between two turns at the sustained rate.
	gap time.Duration
	// ahead is how far turns may run ahead of that rate: the burst but one.
	ahead time.Duration
	// slots is how many calls may be under way.
	slots int

	mu sync.Mutex
	// due is when the next turn would come if none ran ahead.
	due   time.Time
	taken int
	flows map[string]*flow
	// line holds the flows with calls that wait.
	line []*flow
	// round is that of the turn that was given last.
	round int64
	// timer serves when a turn comes up; nil before the first call that waits for one.
	timer *time.Timer
}

// flow is calls that share what one of them gets. A flow has one turn a round
// at most, and those of an earlier round come first.
type flow struct {
	waiting []*waiter
	// next is the round of its next turn.
	next int64
	// promised is the last turn that a refused call was told. Those refused at
	// once are told different turns, the flow's share apart, or they would return as a herd.
	promised time.Time
}

// waiter is a call that waits.
type waiter struct {
	since time.Time
	// turn is closed when it has come.
	turn chan struct{}
}

func newTurns(l Limits) *turns {
	gap := time.Duration(math.Ceil(float64(time.Second) / l.RequestsPerSecond))
	return &turns{gap: gap, ahead: time.Duration(l.Burst-1) * gap, slots: l.MaxInFlight, flows: map[string]*flow{}}
}

// take waits for a turn, at most for patience. It returns the function that
// gives the turn back; or how long to stay away, with a nil function; or
// neither when the context ended. Of a flow that has a name, a call waits behind
// as many others as may be under way and no more: each holds a worker.
func (t *turns) take(ctx context.Context, of cloud.Flow, patience time.Duration) (done func(), away time.Duration) {
	if ctx.Err() != nil {
		return nil, 0
	}
	f, w, away := t.join(of, patience)
	if w == nil {
		return nil, away
	}
	select {
	case <-w.turn:
		return t.done, 0
	default:
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-w.turn:
		return t.done, 0
	case <-timeout.C:
	case <-ctx.Done():
	}
	return t.leave(ctx, f, w)
}

// join has a call wait in its flow, or tells how long it is to stay away.
func (t *turns) join(of cloud.Flow, patience time.Duration) (*flow, *waiter, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	f := t.flow(of.Name, now)
	behind, _ := slices.BinarySearchFunc(f.waiting, of.Since, func(w *waiter, since time.Time) int {
		if w.since.After(since) {
			return 1
		}
		return -1
	})
	delay := t.delay(now, t.before(f, behind))
	if delay > patience || (of.Name != "" && behind >= t.slots) {
		return f, nil, t.later(now, f, max(delay, maxTurnWait))
	}
	if len(f.waiting) == 0 {
		t.line = append(t.line, f)
	}
	w := &waiter{since: of.Since, turn: make(chan struct{})}
	f.waiting = slices.Insert(f.waiting, behind, w)
	t.serve(now)
	return f, w, 0
}

// leave takes out a call that waits no longer, unless its turn comes at this very moment.
func (t *turns) leave(ctx context.Context, f *flow, w *waiter) (done func(), away time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.serve(now)
	i := slices.Index(f.waiting, w)
	if i < 0 {
		return t.done, 0
	}
	t.remove(f, i)
	if ctx.Err() != nil {
		return nil, 0
	}
	return nil, t.later(now, f, maxTurnWait)
}

// done gives a turn back.
func (t *turns) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.serve(time.Now())
}

// serve gives out the turns that there are.
func (t *turns) serve(now time.Time) {
	for len(t.line) > 0 && t.taken < t.slots {
		if delay := t.delay(now, 0); delay > 0 {
			t.wake(delay)
			return
		}
		f := slices.MinFunc(t.line, func(a, b *flow) int { return cmp.Compare(a.next, b.next) })
		close(f.waiting[0].turn)
		t.remove(f, 0)
		t.round = f.next
		f.next++
		t.due = latest(t.due, now).Add(t.gap)
		t.taken++
		if len(t.line) == 0 {
			t.round++ // nobody waits: who had the last turn owes nobody one
		}
	}
}

// remove takes a call out of a flow.
func (t *turns) remove(f *flow, i int) {
	f.waiting = slices.Delete(f.waiting, i, i+1)
	if len(f.waiting) == 0 {
		t.line = slices.DeleteFunc(t.line, func(other *flow) bool { return other == f })
	}
}

// wake has the line served after a delay.
func (t *turns) wake(delay time.Duration) {
	if t.timer != nil {
		t.timer.Reset(delay)
		return
	}
	t.timer = time.AfterFunc(delay, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.serve(time.Now())
	})
}

// flow returns the flow of a name, up to the round. Where it is a new one, idle
// ones are forgotten.
func (t *turns) flow(name string, now time.Time) *flow {
	f := t.flows[name]
	if f == nil {
		maps.DeleteFunc(t.flows, func(_ string, other *flow) bool { return !t.wants(other, now) && other.next <= t.round })
		f = &flow{}
		t.flows[name] = f
	}
	if len(f.waiting) == 0 {
		f.next = max(f.next, t.round)
	}
	return f
}

// wants tells whether a flow has turns to come.
func (t *turns) wants(f *flow, now time.Time) bool {
	return len(f.waiting) > 0 || f.promised.After(now)
}

// before is how many of the calls that wait are served before one of f that has
// so many of its own before it.
func (t *turns) before(f *flow, own int) int {
	n, round := own, f.next+int64(own)
	for _, other := range t.line {
		if other != f {
			n += int(min(int64(len(other.waiting)), max(0, round+1-other.next)))
		}
	}
	return n
}

// delay is how long the n-th turn from now is away by the rate, from 0.
func (t *turns) delay(now time.Time, n int) time.Duration {
	return max(0, latest(t.due, now).Add(time.Duration(n)*t.gap-t.ahead).Sub(now))
}

// later books the next free turn of f after now+delay for a refused call. Flows
// with turns to come share the rate.
func (t *turns) later(now time.Time, f *flow, delay time.Duration) time.Duration {
	share := time.Duration(0)
	for _, other := range t.flows {
		if other == f || t.wants(other, now) {
			share += t.gap
		}
	}
	earliest := now.Add(delay)
	f.promised = latest(f.promised.Add(share), earliest)
	if f.promised.After(now.Add(maxTurnAhead)) {
		// The queue is a minute long: begin a new round over it.
		f.promised = earliest
	}
	return f.promised.Sub(now)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
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
