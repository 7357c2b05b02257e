package transport

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxWait is how long a request waits for a slot before it is refused: a
	// worker that waits does no other work.
	maxWait = time.Second
	// maxRetryAhead bounds the time after which a refused request may come back.
	maxRetryAhead = time.Minute
	// reserved is the part of the burst, and of the rate, that a flow may use without
	// waiting for others: one of so many.
	reserved = 4
)

// limiter keeps the requests to one cloud within its limits. Flows share the
// slots by start-time fair queueing: a flow with many requests does not delay
// one with few, and a flow that is alone gets all slots.
type limiter struct {
	// interval is the time between two requests at the sustained rate.
	interval time.Duration
	// ahead is how far requests may run ahead of that rate: the burst less one request.
	// reserve is the last part of it, which only flows with few requests get.
	ahead, reserve time.Duration
	// maxInFlight is how many requests may be under way.
	maxInFlight int

	mu sync.Mutex
	// next is when the next request would be sent if none ran ahead of the rate.
	next     time.Time
	inFlight int
	flows    map[string]*flow
	// backlog holds the flows in which requests wait.
	backlog []*flow
	// virtualTime is the start tag of the request that got the last slot.
	virtualTime int64
	// timer dispatches when the rate allows the next request; nil before the first
	// request that waits.
	timer *time.Timer
}

// flow is the queue of the requests that share what one of them gets. Of all
// flows, the one with the lowest start tag is served next.
type flow struct {
	waiting []*waiter
	// startTag is that of its next request. It grows by one with each.
	startTag int64
	// reservedUntil is until when the requests of the flow use up its part of the reserve.
	reservedUntil time.Time
	// retryAt is the time that was given to the last refused request. Requests
	// that are refused together get different times, as far apart as the flow's
	// share of the rate, so that they do not come back together.
	retryAt time.Time
}

// waiter is a request that waits.
type waiter struct {
	since time.Time
	// ready is closed when the request has a slot.
	ready chan struct{}
}

func newLimiter(l Limits) *limiter {
	interval := time.Duration(math.Ceil(float64(time.Second) / l.RequestsPerSecond))
	return &limiter{
		interval: interval, ahead: time.Duration(l.Burst-1) * interval, reserve: time.Duration(l.Burst/reserved) * interval, maxInFlight: l.MaxInFlight,
		flows: map[string]*flow{},
	}
}

// acquire waits for a slot, at most for wait. It returns the function that
// releases the slot; or, without one, after how long to come back; or neither
// when the context ended. In a flow that has a name, a request waits behind at
// most maxInFlight others, since each of them occupies a worker.
func (l *limiter) acquire(ctx context.Context, of cloud.Flow, wait time.Duration) (release func(), retryAfter time.Duration) {
	if ctx.Err() != nil {
		return nil, 0
	}
	f, w, retryAfter := l.enqueue(of, wait)
	if w == nil {
		return nil, retryAfter
	}
	select {
	case <-w.ready:
		return l.release, 0
	default:
	}
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-w.ready:
		return l.release, 0
	case <-timeout.C:
	case <-ctx.Done():
	}
	return l.cancel(ctx, f, w)
}

// enqueue adds a request to its flow, or returns after how long it may come back.
func (l *limiter) enqueue(of cloud.Flow, wait time.Duration) (*flow, *waiter, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	f := l.flow(of.Name, now)
	position, _ := slices.BinarySearchFunc(f.waiting, of.Since, func(w *waiter, since time.Time) int {
		if w.since.After(since) {
			return 1
		}
		return -1
	})
	delay := l.delay(now, l.queuedBefore(f, position), 0)
	if position == 0 && l.light(f, now) {
		delay = min(delay, l.delay(now, 0, l.reserve))
	}
	if delay > wait || (of.Name != "" && position >= l.maxInFlight) {
		return f, nil, l.bookRetry(now, f, max(delay, maxWait))
	}
	if len(f.waiting) == 0 {
		l.backlog = append(l.backlog, f)
	}
	w := &waiter{since: of.Since, ready: make(chan struct{})}
	f.waiting = slices.Insert(f.waiting, position, w)
	l.dispatch(now)
	return f, w, 0
}

// cancel removes a request that no longer waits, unless it gets a slot at this moment.
func (l *limiter) cancel(ctx context.Context, f *flow, w *waiter) (release func(), retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.dispatch(now)
	i := slices.Index(f.waiting, w)
	if i < 0 {
		return l.release, 0
	}
	l.remove(f, i)
	if ctx.Err() != nil {
		return nil, 0
	}
	return nil, l.bookRetry(now, f, maxWait)
}

// release returns a slot.
func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.inFlight--
	l.dispatch(now)
	if l.inFlight == 0 && len(l.backlog) == 0 {
		l.forgetIdle(now)
	}
}

// dispatch gives slots to waiting requests as far as the limits allow.
func (l *limiter) dispatch(now time.Time) {
	for len(l.backlog) > 0 && l.inFlight < l.maxInFlight {
		f, delay := l.first(now)
		if delay > 0 {
			l.dispatchAfter(delay)
			return
		}
		close(f.waiting[0].ready)
		l.remove(f, 0)
		l.virtualTime = max(l.virtualTime, f.startTag)
		f.startTag++
		l.next = latest(l.next, now).Add(l.interval)
		f.reservedUntil = earliest(latest(f.reservedUntil, now), now.Add(reserved*l.reserve)).Add(reserved * l.interval)
		l.inFlight++
		if len(l.backlog) == 0 {
			// Nobody waits, so the flow that was served last is not behind any other.
			l.virtualTime++
		}
	}
}

// first returns the flow that is served next, and after how long the rate allows it. When
// only the reserve is left, that is one with few requests.
func (l *limiter) first(now time.Time) (next *flow, delay time.Duration) {
	delay = l.delay(now, 0, 0)
	var light *flow
	for _, f := range l.backlog {
		if next == nil || f.startTag < next.startTag {
			next = f
		}
		if delay > 0 && l.light(f, now) && (light == nil || f.startTag < light.startTag) {
			light = f
		}
	}
	if light != nil {
		return light, l.delay(now, 0, l.reserve)
	}
	return next, delay
}

// light reports whether a flow has asked for so little that it may use the reserve.
func (l *limiter) light(f *flow, now time.Time) bool {
	return !f.reservedUntil.Add(reserved * l.interval).After(now.Add(reserved * l.reserve))
}

// remove removes a request from a flow.
func (l *limiter) remove(f *flow, i int) {
	f.waiting = slices.Delete(f.waiting, i, i+1)
	if len(f.waiting) == 0 {
		l.backlog = slices.DeleteFunc(l.backlog, func(other *flow) bool { return other == f })
	}
}

// dispatchAfter dispatches after a delay.
func (l *limiter) dispatchAfter(delay time.Duration) {
	if l.timer != nil {
		l.timer.Reset(delay)
		return
	}
	l.timer = time.AfterFunc(delay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dispatch(time.Now())
	})
}

// flow returns the flow of a name, with a start tag that is not in the past. A
// new flow displaces those that are idle.
func (l *limiter) flow(name string, now time.Time) *flow {
	f := l.flows[name]
	if f == nil {
		l.forgetIdle(now)
		f = &flow{}
		l.flows[name] = f
	}
	if len(f.waiting) == 0 {
		f.startTag = max(f.startTag, l.virtualTime)
	}
	return f
}

// forgetIdle drops the flows that are idle, not ahead of the others, and that have used
// nothing of the reserve: else they would get it again.
func (l *limiter) forgetIdle(now time.Time) {
	maps.DeleteFunc(l.flows, func(_ string, f *flow) bool {
		return !f.active(now) && f.startTag <= l.virtualTime && !f.reservedUntil.After(now)
	})
}

// active reports whether requests of the flow wait or are about to come back.
func (f *flow) active(now time.Time) bool {
	return len(f.waiting) > 0 || f.retryAt.After(now)
}

// queuedBefore returns how many waiting requests get a slot before one of f
// that is at this position of f.
func (l *limiter) queuedBefore(f *flow, position int) int {
	n, startTag := position, f.startTag+int64(position)
	for _, other := range l.backlog {
		if other != f {
			n += int(min(int64(len(other.waiting)), max(0, startTag+1-other.startTag)))
		}
	}
	return n
}

// delay returns after how long the rate allows the n-th request from now, from 0, if it
// may use this much of the reserve.
func (l *limiter) delay(now time.Time, n int, reserve time.Duration) time.Duration {
	return max(0, latest(l.next, now).Add(time.Duration(n)*l.interval-l.ahead+l.reserve-reserve).Sub(now))
}

// bookRetry returns after how long a refused request of f may come back: the
// next time that no other was given, not before delay. Active flows share the rate.
func (l *limiter) bookRetry(now time.Time, f *flow, delay time.Duration) time.Duration {
	share := time.Duration(0)
	for _, other := range l.flows {
		if other == f || other.active(now) {
			share += l.interval
		}
	}
	first := now.Add(delay)
	f.retryAt = latest(f.retryAt.Add(share), first)
	if f.retryAt.After(now.Add(maxRetryAhead)) {
		// The times are given out for a minute ahead: start again from the first.
		f.retryAt = first
	}
	return f.retryAt.Sub(now)
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
