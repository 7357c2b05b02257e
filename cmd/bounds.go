package main

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webhookv1alpha1 "github.com/privatecloud/operator/internal/webhook/v1alpha1"
)

// bounds limit what callers of the name check webhook cost, who need not be the API
// server. A request that exceeds them fails, and the API server ignores the webhook then.
type bounds struct {
	// requests are under way at most, and have at most size bytes.
	requests int
	size     int64
	// timeout is how long a request may take to arrive.
	timeout time.Duration
}

// reviewBounds let more requests in than checks of names, which are refused with a
// warning. VMs that have larger reviews, by their annotations, are not checked.
var reviewBounds = bounds{requests: 64, size: 256 << 10, timeout: 5 * time.Second}

// boundedServer bounds the requests of its webhooks, but not those of the webhook for
// Clouds, which has bounds of its own.
type boundedServer struct {
	webhook.Server
	bounds bounds
}

func (s boundedServer) Register(path string, hook http.Handler) {
	if path != webhookv1alpha1.CloudPath {
		hook = s.bounds.apply(hook)
	}
	s.Server.Register(path, hook)
}

// apply returns a handler that calls next within the bounds.
func (b bounds) apply(next http.Handler) http.Handler {
	slots := make(chan struct{}, b.requests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many reviews at this time", http.StatusTooManyRequests)
			return
		}
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout)); err != nil {
			http.Error(w, "the time of a review cannot be bounded", http.StatusInternalServerError)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, b.size)
		next.ServeHTTP(w, r)
	})
}
