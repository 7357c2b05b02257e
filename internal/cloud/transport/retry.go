package transport

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// MaxTries is the first try of a call that may be repeated, and two more.
	MaxTries = 3
	// retryPause is the mean pause before the second try; it doubles after.
	retryPause = 200 * time.Millisecond
)

// Transient reports whether the next try of a call, a moment later, may succeed. status is
// that of the answer that err is about, 0 if there was none.
func Transient(err *cloud.Error, status int) bool {
	if errors.Is(err.Err, context.DeadlineExceeded) || errors.Is(err.Err, context.Canceled) {
		return false
	}
	if errors.Is(err.Err, io.ErrUnexpectedEOF) {
		return true
	}
	transient := status == 0 || status >= 500 || status == http.StatusRequestTimeout
	return err.Kind == cloud.Unavailable && err.RetryAfter == 0 && transient
}

// Pause waits after a try, the first of which is 1, and reports whether the context is
// still alive then.
func Pause(ctx context.Context, try int) bool {
	mean := retryPause << (try - 1)
	alive := Sleep(ctx, mean/2+rand.N(mean)) //nolint:gosec // spreads load, hides nothing
	if alive {
		traceRetry(ctx, try+1)
	}
	return alive
}

// Sleep waits for d, and reports whether the context is still alive then.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
