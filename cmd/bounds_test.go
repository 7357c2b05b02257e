package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// read is a hook that reads the request and answers with the error of that.
func read(t *testing.T, result chan<- error) http.HandlerFunc {
	t.Helper()
	return func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		result <- err
	}
}

func post(t *testing.T, url string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}

func TestReviewsAreBoundedInSizeAndTime(t *testing.T) {
	endless, never := io.Pipe()
	t.Cleanup(func() { _ = never.Close() })
	for name, tc := range map[string]struct {
		timeout time.Duration
		body    io.Reader
		want    func(error) bool
	}{
		"as large as allowed: read": {time.Minute, strings.NewReader(strings.Repeat("x", 1000)), func(err error) bool { return err == nil }},
		"larger: not read": {time.Minute, strings.NewReader(strings.Repeat("x", 1001)), func(err error) bool {
			_, tooLarge := errors.AsType[*http.MaxBytesError](err)
			return tooLarge
		}},
		"does not end: not awaited": {50 * time.Millisecond, endless, func(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }},
	} {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 1)
			limits := bounds{requests: 1, size: 1000, timeout: tc.timeout}
			server := httptest.NewServer(limits.apply(read(t, result)))
			t.Cleanup(server.Close)
			go post(t, server.URL, tc.body)
			if err := <-result; !tc.want(err) {
				t.Errorf("the hook read the request with the error %v", err)
			}
		})
	}
}

func TestExcessReviewsAreRefused(t *testing.T) {
	const most = 3
	answer, begun := make(chan struct{}), make(chan struct{}, most)
	server := httptest.NewServer(bounds{requests: most, size: 1, timeout: time.Minute}.apply(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-answer
	})))
	t.Cleanup(server.Close)
	statuses := make(chan int, most)
	for range most {
		go func() { statuses <- post(t, server.URL, nil) }()
		<-begun
	}
	if got := post(t, server.URL, nil); got != http.StatusTooManyRequests {
		t.Errorf("one too many: status %d, want %d", got, http.StatusTooManyRequests)
	}
	close(answer)
	for range most {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("status %d, want %d", got, http.StatusOK)
		}
	}
	if got := post(t, server.URL, nil); got != http.StatusOK {
		t.Errorf("after that: status %d, want %d", got, http.StatusOK)
	}
}
