package main

import (
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webhookv1alpha1 "github.com/privatecloud/operator/internal/webhook/v1alpha1"
)

// bounds limit what callers of a webhook cost, who need not be the API server. A
// request that exceeds them fails. The API server then stores a VM, and refuses a Cloud.
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

// cloudReviewBounds let each Cloud in that etcd can store, of up to 1.5 MiB, which an
// update has twice: a Cloud whose review is too large could not be changed.
var cloudReviewBounds = bounds{requests: 8, size: 4 << 20, timeout: 5 * time.Second}

// boundedServer bounds the requests of its webhooks, each apart from the others.
type boundedServer struct{ webhook.Server }

func (s boundedServer) Register(path string, hook http.Handler) {
	limits := reviewBounds
	if path == webhookv1alpha1.CloudPath {
		limits = cloudReviewBounds
	}
	s.Server.Register(path, limits.apply(hook))
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
