package transport

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Hold keeps requests back until the time that a cloud asked for. The zero Hold
// keeps nothing back. It may be given to several Transports, at a time or one after
// the other, so that a new one does not forget what the cloud asked for.
type Hold struct {
	mu    sync.Mutex
	until time.Time
}

// start holds requests for d from now, and returns when the hold ends; zero if it
// did not start. A shorter hold never ends a longer one early: answers may arrive
// in another order than they were given.
func (h *Hold) start(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.until) {
		h.until = until
	}
	return h.until
}

// remaining returns how long the hold lasts, 0 or less when there is none.
func (h *Hold) remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// refuseWhileHeld fails requests during the hold.
func refuseWhileHeld(next http.RoundTripper, h *Hold) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if left := h.remaining(); left > 0 {
			return refuse(req, &cloud.Error{
				Kind: cloud.Throttled, Detail: "the cloud asked to wait before the next request", RetryAfter: jitter(left),
			})
		}
		return next.RoundTrip(req)
	})
}

// observeRetryAfter calls hold with the time for which an answer asks.
func observeRetryAfter(next http.RoundTripper, hold func(time.Duration)) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusTooManyRequests:
			hold(RetryAfter(resp.Header, true))
		case http.StatusServiceUnavailable:
			hold(RetryAfter(resp.Header, false))
		}
		return resp, nil
	})
}

// jitter lengthens d by up to a tenth, so that callers that wait for the same
// moment do not come back at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // spreads load, hides nothing
}
