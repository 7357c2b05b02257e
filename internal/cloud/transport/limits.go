package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Defaults for what Limits leaves zero.
const (
	DefaultRequestsPerSecond = 20
	DefaultBurst             = 40
	DefaultMaxInFlight       = 16
)

// Limits bound what one client asks of its cloud. Zero fields have defaults.
type Limits struct {
	// RequestsPerSecond is the sustained rate, more than 0.
	RequestsPerSecond float64
	// Burst is how many requests may exceed the rate at once, at least 1.
	Burst int
	// MaxInFlight is how many requests may be under way, 1-1000.
	MaxInFlight int
}

func (l Limits) withDefaults() (Limits, error) {
	if l.RequestsPerSecond < 0 || l.Burst < 0 || l.MaxInFlight < 0 || l.MaxInFlight > 1000 {
		return l, errors.New("limits: requestsPerSecond and burst must be positive, maxInFlight 1 to 1000")
	}
	if l.RequestsPerSecond == 0 {
		l.RequestsPerSecond = DefaultRequestsPerSecond
	}
	if l.Burst == 0 {
		l.Burst = DefaultBurst
	}
	if l.MaxInFlight == 0 {
		l.MaxInFlight = DefaultMaxInFlight
	}
	return l, nil
}

// limit sends requests within the limits, fairly by flow. A request keeps its
// slot until the body of its answer is closed, that of a Stream until it begins. A
// LongPoll keeps it until the request is written.
func limit(next http.RoundTripper, l slots, cloudWideWait time.Duration) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		ctx := req.Context()
		call := callOf(ctx)
		wait := maxWait
		if call.CloudWide {
			wait = cloudWideWait
		}
		release, retryAfter := l.acquire(ctx, call.flow(ctx), wait)
		switch {
		case retryAfter > 0:
			return refuse(req, &cloud.Error{
				Kind: cloud.Throttled, Detail: "too many calls to the cloud at once", RetryAfter: retryAfter,
			})
		case release == nil:
			return refuse(req, ctx.Err())
		}
		release = sync.OnceFunc(release)
		if call.LongPoll {
			req = req.WithContext(onWritten(ctx, release))
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			release()
			return nil, err
		}
		if call.Stream || call.LongPoll {
			release()
			return resp, nil
		}
		onClose(resp, release)
		return resp, nil
	})
}

// onWritten returns a context for a request that calls f when the request is written.
func onWritten(ctx context.Context, f func()) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			f()
		}
	}})
}
