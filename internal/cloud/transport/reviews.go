package transport

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// reviewShare is the divisor that makes the limits of all admission reviews
	// together from those of the cloud.
	reviewShare = 8
	// reviewFlow is the flow of all reviews among the flows of other work. No
	// namespace has a name with a slash.
	reviewFlow = "admission/reviews"
)

// forReviews returns the limits of all admission reviews together.
func (l Limits) forReviews() Limits {
	return Limits{
		RequestsPerSecond: l.RequestsPerSecond / reviewShare,
		Burst:             max(1, l.Burst/reviewShare),
		MaxInFlight:       max(1, l.MaxInFlight/reviewShare),
	}
}

// slots gives out the right to send a request; limiter describes acquire.
type slots interface {
	acquire(ctx context.Context, of cloud.Flow, wait time.Duration) (release func(), retryAfter time.Duration)
}

// sharedLimiter is the limiter of a cloud with a share for admission reviews: a
// review needs a slot of the share, and one of the cloud's limiter, in which all
// reviews are one flow.
type sharedLimiter struct {
	all, reviews *limiter
}

func newSharedLimiter(l Limits) *sharedLimiter {
	return &sharedLimiter{all: newLimiter(l), reviews: newLimiter(l.forReviews())}
}

func (s *sharedLimiter) acquire(ctx context.Context, of cloud.Flow, wait time.Duration) (release func(), retryAfter time.Duration) {
	if !of.Review {
		return s.all.acquire(ctx, of, wait)
	}
	begun := time.Now()
	// What has a slot of the share must not lose it for lack of time.
	releaseShare, retryAfter := s.reviews.acquire(ctx, of, wait/2)
	if releaseShare == nil {
		return nil, retryAfter
	}
	left := max(0, wait-time.Since(begun))
	releaseSlot, retryAfter := s.all.acquire(ctx, cloud.Flow{Name: reviewFlow, Since: of.Since}, left)
	if releaseSlot == nil {
		releaseShare()
		return nil, retryAfter
	}
	return func() {
		releaseSlot()
		releaseShare()
	}, 0
}
