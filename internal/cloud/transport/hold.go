package transport

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// hold keeps requests back until the time that the cloud asked for.
type hold struct {
	// report is called with the end of the hold whenever one starts.
	report func(until time.Time)

	mu    sync.Mutex
	until time.Time
}

// start holds requests for d from now. A shorter hold never ends a longer one
// early: answers may arrive in another order than they were given.
func (h *hold) start(d time.Duration) {
	if d <= 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if until := time.Now().Add(d); until.After(h.until) {
		h.until = until
	}
	h.report(h.until)
}

// remaining returns how long the hold lasts, 0 or less when there is none.
func (h *hold) remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// refuseWhileHeld fails requests during the hold.
func refuseWhileHeld(next http.RoundTripper, h *hold) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if left := h.remaining(); left > 0 {
			return refuse(req, &cloud.Error{
				Kind: cloud.Throttled, Detail: "the cloud asked to wait before the next request", RetryAfter: jitter(left),
			})
		}
		return next.RoundTrip(req)
	})
}

// observeRetryAfter starts the hold that an answer asks for.
func observeRetryAfter(next http.RoundTripper, h *hold) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		switch resp.StatusCode {
		case http.StatusTooManyRequests:
			h.start(RetryAfter(resp.Header, true))
		case http.StatusServiceUnavailable:
			h.start(RetryAfter(resp.Header, false))
		}
		return resp, nil
	})
}

// jitter lengthens d by up to a tenth, so that callers that wait for the same
// moment do not come back at the same moment.
func jitter(d time.Duration) time.Duration {
	return d + rand.N(d/10+1) //nolint:gosec // spreads load, hides nothing
}
