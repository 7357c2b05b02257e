package transport

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errStale = errors.New("the connection is closed")

// staleBase fails a request on the first n connections, which are reused ones,
// before or after its headers are written. It records what it was given.
type staleBase struct {
	n       int
	written bool
	bodies  []string
	// replayable is whether net/http could send a request again by itself.
	replayable bool
}

func (b *staleBase) RoundTrip(req *http.Request) (*http.Response, error) {
	text := ""
	if req.Body != nil {
		data, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text = string(data)
	}
	b.bodies = append(b.bodies, text)
	b.replayable = b.replayable || req.GetBody != nil
	trace := httptrace.ContextClientTrace(req.Context())
	if len(b.bodies) <= b.n {
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
		if b.written {
			trace.WroteHeaders()
		}
		return nil, errStale
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

func TestSendOnceRepeatsOnlyRequestsThatWereNotWritten(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method  string
		body    io.Reader
		stale   int
		written bool
		want    []string
		err     error
	}{
		"POST that was written: not repeated":                         {method: http.MethodPost, body: strings.NewReader("x"), stale: 1, written: true, want: []string{"x"}, err: errStale},
		"PATCH that was written: not repeated":                        {method: http.MethodPatch, body: strings.NewReader("x"), stale: 1, written: true, want: []string{"x"}, err: errStale},
		"DELETE that was written: not repeated":                       {method: http.MethodDelete, stale: 1, written: true, want: []string{""}, err: errStale},
		"POST on a closed connection: repeated with its body":         {method: http.MethodPost, body: strings.NewReader("x"), stale: 2, want: []string{"x", "x", "x"}},
		"DELETE on a closed connection: repeated":                     {method: http.MethodDelete, stale: 1, want: []string{"", ""}},
		"POST on closed connections only: given up":                   {method: http.MethodPost, body: strings.NewReader("x"), stale: 9, want: []string{"x", "x", "x"}, err: errStale},
		"POST whose body cannot be read again: not repeated":          {method: http.MethodPost, body: io.MultiReader(strings.NewReader("x")), stale: 1, want: []string{"x"}, err: errStale},
		"POST on a new connection: sent once, and cannot be repeated": {method: http.MethodPost, body: strings.NewReader("x"), want: []string{"x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := &staleBase{n: test.stale, written: test.written}
			req, err := http.NewRequestWithContext(t.Context(), test.method, endpoint, test.body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "k")
			resp, err := sendOnce(base).RoundTrip(req)
			if resp != nil {
				_ = resp.Body.Close()
			}
			if !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			if diff := cmp.Diff(test.want, base.bodies); diff != "" {
				t.Errorf("requests by their bodies (-want +got):\n%s", diff)
			}
			if base.replayable {
				t.Error("net/http can send the request again by itself")
			}
		})
	}
}
