package transport

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// maxStale bounds how many connections a request is tried on while the cloud has
// closed each of them before the headers were written.
const maxStale = 3

// sendOnce keeps net/http from sending a request again that may change something:
// if a reused connection breaks, net/http repeats requests that have an
// Idempotency-Key and a body that can be read again, and the backend cannot tell.
// Without GetBody it does not.
//
// A request whose headers were not written is sent again here, since the server
// closes connections that are idle.
func sendOnce(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet || req.Method == http.MethodHead {
			return next.RoundTrip(req)
		}
		body := req.Body
		for try := 1; ; try++ {
			var reused, written atomic.Bool
			attempt := req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
				GotConn:      func(info httptrace.GotConnInfo) { reused.Store(info.Reused) },
				WroteHeaders: func() { written.Store(true) },
			}))
			attempt.Body, attempt.GetBody = body, nil
			resp, err := next.RoundTrip(attempt)
			if err == nil || written.Load() || !reused.Load() || try == maxStale || req.Context().Err() != nil {
				return resp, err
			}
			if body != nil && body != http.NoBody {
				if req.GetBody == nil {
					return nil, err
				}
				fresh, rewindErr := req.GetBody()
				if rewindErr != nil {
					return nil, err
				}
				body = fresh
			}
		}
	})
}
