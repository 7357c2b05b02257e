package transport

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// share is the part of a cloud's limits that all calls of a class get together.
type share struct {
	*limiter
	// waits is whether a call waits for a slot of the share, for half of what it waits in
	// all: what has such a slot must not lose it for lack of time.
	waits bool
}

// parts are the divisors that make the limits of the classes from those of the cloud.
var parts = map[cloud.FlowClass]struct {
	divisor int
	waits   bool
}{
	cloud.Reviews:   {divisor: 8, waits: true},
	cloud.Refreshes: {divisor: 2},
}

// part returns one of n parts of the limits.
func (l Limits) part(n int) Limits {
	return Limits{
		RequestsPerSecond: l.RequestsPerSecond / float64(n),
		Burst:             max(1, l.Burst/n),
		MaxInFlight:       max(1, l.MaxInFlight/n),
	}
}

// flowOf returns the flow of all calls of a class among the flows of other work. No
// namespace has a name with a slash.
func flowOf(class cloud.FlowClass) string { return "all/" + string(class) }

// slots gives out the right to send a request; limiter describes acquire.
type slots interface {
	acquire(ctx context.Context, of cloud.Flow, wait time.Duration) (release func(), retryAfter time.Duration)
}

// sharedLimiter is the limiter of a cloud with a share for each class of calls: such a
// call needs a slot of the share, and one of the cloud's limiter, in which all calls of
// the class are one flow.
type sharedLimiter struct {
	all    *limiter
	shares map[cloud.FlowClass]share
}

func newSharedLimiter(l Limits) *sharedLimiter {
	s := &sharedLimiter{all: newLimiter(l), shares: map[cloud.FlowClass]share{}}
	for class, part := range parts {
		s.shares[class] = share{limiter: newLimiter(l.part(part.divisor)), waits: part.waits}
	}
	return s
}

func (s *sharedLimiter) acquire(ctx context.Context, of cloud.Flow, wait time.Duration) (release func(), retryAfter time.Duration) {
	share, ok := s.shares[of.Class]
	if !ok {
		return s.all.acquire(ctx, of, wait)
	}
	begun, forShare := time.Now(), time.Duration(0)
	if share.waits {
		forShare = wait / 2
	}
	releaseShare, retryAfter := share.acquire(ctx, of, forShare)
	if releaseShare == nil {
		return nil, retryAfter
	}
	left := max(0, wait-time.Since(begun))
	releaseSlot, retryAfter := s.all.acquire(ctx, cloud.Flow{Name: flowOf(of.Class), Since: of.Since}, left)
	if releaseSlot == nil {
		releaseShare()
		return nil, retryAfter
	}
	return func() {
		releaseSlot()
		releaseShare()
	}, 0
}
