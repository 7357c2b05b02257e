package transport

import (
	"net/http"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// refuseUnpermitted fails requests that change something and whose sender may
// not act any more. It is the last check before a request is sent.
func refuseUnpermitted(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		reads := req.Method == http.MethodGet || req.Method == http.MethodHead || callOf(req.Context()).Read
		if !reads && !cloud.Permitted(req.Context()) {
			return refuse(req, &cloud.Error{
				Kind: cloud.Throttled, Detail: "this process does not lead any more", RetryAfter: time.Second,
			})
		}
		return next.RoundTrip(req)
	})
}
