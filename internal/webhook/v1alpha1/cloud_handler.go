package v1alpha1

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// cloudRequests is how many requests are under way at most, with up to smallReview
	// bytes each, and largeRequests how many of them may have up to largestReview bytes. So
	// all take at most 48 MiB.
	cloudRequests = 64
	largeRequests = 8
	smallReview   = 256 << 10
	// largestReview is larger than the review of each Cloud that etcd can store, of up to
	// 1.5 MiB, which an update has twice: a Cloud whose review is larger could not be changed.
	largestReview = 4 << 20
	// cloudTimeout is how long a request may take to arrive.
	cloudTimeout = 5 * time.Second
)

var (
	errManyReviews = errors.New("too many reviews at this time")
	errTooLarge    = errors.New("the review is too large")
)

// cloudHandler answers reviews of Clouds. Its callers need not be the API server, so it
// bounds what they cost. A request that exceeds the bounds fails, and the API server then
// refuses the Cloud.
type cloudHandler struct {
	all, large slots
	timeout    time.Duration
}

func newCloudHandler(timeout time.Duration) *cloudHandler {
	return &cloudHandler{all: make(slots, cloudRequests), large: make(slots, largeRequests), timeout: timeout}
}

// slots count what is under way, up to their capacity.
type slots chan struct{}

// take takes a slot until release is called. It returns false if there is none.
func (s slots) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}

// ServeHTTP implements http.Handler.
func (h *cloudHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	release, ok := h.all.take()
	if !ok {
		refuse(w, errManyReviews)
		return
	}
	defer release()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "the review is not JSON", http.StatusUnsupportedMediaType)
		return
	}
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.timeout)); err != nil {
		http.Error(w, "the time of a review cannot be bounded", http.StatusInternalServerError)
		return
	}
	body, release, err := h.read(r)
	if err != nil {
		refuse(w, err)
		return
	}
	defer release()
	answer, ok := judgeCloud(body)
	if !ok {
		// The error of the decoder can quote what was sent.
		http.Error(w, "the body is no AdmissionReview of version v1", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.FromContext(r.Context()).V(1).Info("the answer to the review of a Cloud was not sent", "reason", err.Error())
	}
}

// refuse answers a request whose body was not read.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errManyReviews):
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", "1") // the API server tries again until its timeout
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(w, err.Error(), status)
}

// read returns the body, which may be used until release is called. It takes a slot for a
// large body, and the memory, only once a small one has arrived: slow connections do not
// occupy these slots.
func (h *cloudHandler) read(r *http.Request) (body []byte, release func(), err error) {
	length := r.ContentLength // -1 if it is unknown
	if length > largestReview {
		return nil, nil, errTooLarge
	}
	if length < 0 {
		length = largestReview
	}
	// One byte more than may be in it shows whether the body has ended.
	body = make([]byte, min(length, smallReview)+1)
	n, ended, err := fill(r.Body, body)
	if err != nil || ended {
		return body[:n], func() {}, err
	}
	release, ok := h.large.take()
	if !ok {
		return nil, nil, errManyReviews
	}
	small := body
	body = make([]byte, length+1)
	copy(body, small)
	n, ended, err = fill(r.Body, body[len(small):])
	if err == nil && !ended {
		err = errTooLarge
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return body[:len(small)+n], release, nil
}

// fill reads until the buffer is full or the reader has ended, and reports which.
func fill(r io.Reader, buffer []byte) (n int, ended bool, err error) {
	n, err = io.ReadFull(r, buffer)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, true, nil
	}
	return n, false, err
}
