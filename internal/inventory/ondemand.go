package inventory

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/privatecloud/operator/internal/cloud"
)

// ErrNotAnswered reports that the cloud takes longer to list something than a
// caller waits. The listing goes on, for later callers.
var ErrNotAnswered = errors.New("the cloud has not answered yet")

// onDemandList holds the last listing of something that a cloud has few of. It
// is listed when a caller needs it: callers share a listing that is new enough,
// a call under way, and for a while the failure of the last call.
type onDemandList[T any] struct {
	clock func() time.Time
	calls singleflight.Group

	mu   sync.Mutex
	held listing[T]
	// failure is returned without a call until it expires.
	failure failure
	// late is set while the cloud has not answered a caller that gave up.
	late late
	// waiting is the number of callers that wait for the call under way.
	waiting int
}

// listing is what one call listed. The items are shared and must not be changed.
type listing[T any] struct {
	items []T
	begun time.Time
}

func (l listing[T]) newEnough(notBefore time.Time) bool {
	return !l.begun.IsZero() && !l.begun.Before(notBefore)
}

// same reports whether two listings are of one call.
func (l listing[T]) same(other listing[T]) bool {
	return l.begun.Equal(other.begun) && len(l.items) == len(other.items) && (len(l.items) == 0 || &l.items[0] == &other.items[0])
}

type failure struct {
	err     error
	expires time.Time
}

// late is how new a listing a caller asked for that gave up. Callers accept
// that listing until it expires, however old it is when the cloud answers.
type late struct {
	notBefore, expires time.Time
}

// listQuery is what a caller asks an onDemandList for.
type listQuery[T any] struct {
	// notBefore is the earliest begin of a listing that is new enough.
	notBefore time.Time
	// list calls the cloud. It must end by itself.
	list func(context.Context) ([]T, error)
	// failureTTL is how long a failed call is not repeated, unless the cloud
	// asked for longer.
	failureTTL time.Duration
	// maxWait is how long a caller waits for the cloud; 0 means until its
	// context ends.
	maxWait time.Duration
}

func newOnDemandList[T any](clock func() time.Time) *onDemandList[T] {
	return &onDemandList[T]{clock: clock}
}

// get returns a listing begun at or after notBefore, and calls list where none
// is held. A listing begun by this very call counts whatever the clock says. A
// cloud error of list is returned to all callers until the failure TTL has
// passed; other errors, and failures that no caller waits for, are not kept.
// The call goes on for the other callers when ctx ends or maxWait has passed,
// which fails with ErrNotAnswered.
func (l *onDemandList[T]) get(ctx context.Context, query listQuery[T]) (listing[T], error) {
	wait, cancel := ctx, func() {}
	if query.maxWait > 0 {
		wait, cancel = context.WithTimeoutCause(ctx, query.maxWait, ErrNotAnswered)
	}
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock().Before(l.late.expires) && l.late.notBefore.Before(query.notBefore) {
		query.notBefore = l.late.notBefore
	}
	for {
		if held, ok, err := l.known(query.notBefore); ok {
			return held, err
		}
		if err := ctx.Err(); err != nil {
			return listing[T]{}, err
		}
		begun := l.clock()
		mine := false
		done := l.calls.DoChan("", func() (any, error) {
			mine = true
			return l.call(context.WithoutCancel(ctx), begun, query)
		})
		result, answered := l.await(wait, done)
		if !answered {
			return l.giveUp(wait, query)
		}
		if got, _ := result.Val.(listing[T]); mine || got.newEnough(query.notBefore) {
			if result.Err == nil {
				l.late = late{}
			}
			return got, result.Err
		}
	}
}

// known returns the listing that is held if it is new enough, or else the
// failure that is remembered. The caller holds the lock.
func (l *onDemandList[T]) known(notBefore time.Time) (held listing[T], ok bool, err error) {
	switch {
	case l.held.newEnough(notBefore):
		l.late = late{}
		return l.held, true, nil
	case l.clock().Before(l.failure.expires):
		return listing[T]{}, true, l.failure.err
	}
	return listing[T]{}, false, nil
}

// await waits for the call under way, without the lock.
func (l *onDemandList[T]) await(ctx context.Context, done <-chan singleflight.Result) (result singleflight.Result, answered bool) {
	l.waiting++
	l.mu.Unlock()
	select {
	case result = <-done:
		answered = true
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.waiting--
	return result, answered
}

// call lists, and keeps what came of it before another call can begin.
func (l *onDemandList[T]) call(ctx context.Context, begun time.Time, query listQuery[T]) (listing[T], error) {
	items, err := query.list(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	got := listing[T]{items: items, begun: begun}
	switch {
	case err == nil:
		l.held, l.failure = got, failure{}
	case cloud.KindOf(err) != "" && l.waiting > 0:
		after := max(query.failureTTL, cloud.RetryAfter(err))
		l.failure, l.late = failure{err: err, expires: l.clock().Add(after)}, late{}
	}
	return got, err
}

// giveUp returns why wait ended. If that is because the cloud takes too long,
// other callers do not wait as well, until maxWait has passed again. The caller
// holds the lock.
func (l *onDemandList[T]) giveUp(wait context.Context, query listQuery[T]) (listing[T], error) {
	if !errors.Is(context.Cause(wait), ErrNotAnswered) {
		return listing[T]{}, wait.Err()
	}
	if held, ok, err := l.known(query.notBefore); ok {
		return held, err
	}
	again := l.clock().Add(query.maxWait)
	l.failure = failure{err: ErrNotAnswered, expires: again}
	l.late = late{notBefore: query.notBefore, expires: again.Add(query.failureTTL + query.maxWait)}
	return listing[T]{}, ErrNotAnswered
}
