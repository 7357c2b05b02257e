package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const endpoint = "http://cloud.test"

// fast are limits that no test reaches.
var fast = Limits{RequestsPerSecond: 1e6, Burst: 1 << 20, MaxInFlight: 64}

// newTransport returns a transport that calls h without a connection, which
// would keep synctest's clock from moving.
func newTransport(t *testing.T, h http.HandlerFunc, change ...func(*Config)) *Transport {
	t.Helper()
	cfg := Config{Name: "test", Host: "cloud.test", Limits: fast, Timeout: 10 * time.Second, Base: handlerBase(h)}
	for _, f := range change {
		f(&cfg)
	}
	transport, err := New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return transport
}

func limited(l Limits) func(*Config) { return func(cfg *Config) { cfg.Limits = l } }

func handlerBase(h http.HandlerFunc) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteHeaders != nil {
			trace.WroteHeaders()
		}
		recorder := httptest.NewRecorder()
		h(recorder, req)
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
		resp := recorder.Result()
		resp.Request = req
		return resp, nil
	})
}

// failing fails every request with err.
func failing(err error) http.RoundTripper {
	return roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// get sends a GET through the client that backends use.
func get(ctx context.Context, t *Transport) error { return getPath(ctx, t, "/servers/i-1") }

func getPath(ctx context.Context, t *Transport, path string) error {
	_, _, err := fetch(ctx, t.Client(), http.MethodGet, endpoint+path)
	return err
}

// fetch sends a request and returns the status and the body of the answer.
func fetch(ctx context.Context, c *http.Client, method, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// wantThrottled checks that err is a *cloud.Error of Kind Throttled.
func wantThrottled(t *testing.T, err error, detail string) {
	t.Helper()
	got, ok := errors.AsType[*cloud.Error](err)
	if !ok {
		t.Fatalf("%v, want a *cloud.Error in its chain", err)
	}
	want := &cloud.Error{Kind: cloud.Throttled, Detail: detail, RetryAfter: got.RetryAfter}
	if diff := cmp.Diff(want, got); diff != "" || got.RetryAfter <= 0 {
		t.Errorf("retry after %s (-want +got):\n%s", got.RetryAfter, diff)
	}
}
