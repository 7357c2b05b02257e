package v1alpha1

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// limits bound what the callers of a webhook cost: anybody who reaches the port can call it,
// not only the API server. A request that exceeds them fails, and the failurePolicy decides
// what the API server does.
type limits struct {
	// requests is how many requests are under way at most, with up to smallReview bytes
	// each, and large how many of them may have up to largest bytes.
	requests, large int
	largest         int64
	// timeout is how long a request may take to arrive.
	timeout time.Duration
	// retried makes the API server send a request that is one too many again, until its
	// own timeout.
	retried bool
}

const (
	// mostReviews and reviewTimeout are the limits of both webhooks.
	mostReviews   = 64
	smallReview   = 256 << 10
	reviewTimeout = 5 * time.Second
)

var (
	errManyReviews = errors.New("too many reviews at this time")
	errTooLarge    = errors.New("the review is too large")
	errNoReview    = errors.New("the body is not an AdmissionReview of version v1")
	errUnreadable  = errors.New("the fields of the object cannot be read")
)

// handler answers reviews within the limits.
type handler struct {
	limits     limits
	all, large slots
	judge      judge
}

// judge answers the AdmissionReview in a body. Its errors quote nothing of the body.
type judge func(ctx context.Context, body []byte) (*admissionv1.AdmissionReview, error)

func newHandler(l limits, judge judge) *handler {
	return &handler{limits: l, all: make(slots, l.requests), large: make(slots, l.large), judge: judge}
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
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The server reads what is left of a body before it sends an answer.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.limits.timeout)); err != nil {
		http.Error(w, "the time of a review cannot be bounded", http.StatusInternalServerError)
		return
	}
	release, ok := h.all.take()
	if !ok {
		h.refuse(w, errManyReviews)
		return
	}
	defer release()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "the review is not JSON", http.StatusUnsupportedMediaType)
		return
	}
	body, release, err := h.read(r)
	if err != nil {
		h.refuse(w, err)
		return
	}
	defer release()
	answer, err := h.judge(r.Context(), body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.FromContext(r.Context()).V(1).Info("the answer to a review was not sent", "reason", err.Error())
	}
}

// refuse answers a request whose body was not read.
func (h *handler) refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errManyReviews):
		status = http.StatusTooManyRequests
		if h.limits.retried {
			w.Header().Set("Retry-After", "1")
		}
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	}
	http.Error(w, err.Error(), status)
}

// read returns the body, which may be used until release is called. It takes a slot for a
// large body, and the memory, only once as much as a small one has arrived: connections that
// send less do not occupy these slots.
func (h *handler) read(r *http.Request) (body []byte, release func(), err error) {
	length := r.ContentLength // -1 if it is unknown
	if length > h.limits.largest {
		return nil, nil, errTooLarge
	}
	if length < 0 {
		length = h.limits.largest
	}
	// One byte more than may be in it shows whether the body has ended.
	body = make([]byte, min(length, smallReview)+1)
	n, ended, err := fill(r.Body, body)
	if err != nil || ended {
		return body[:n], func() {}, err
	}
	if int64(len(body)) > h.limits.largest {
		return nil, nil, errTooLarge
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
