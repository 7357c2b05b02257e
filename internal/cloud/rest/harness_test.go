package rest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// fast are limits that no test reaches.
var fast = Limits{RequestsPerSecond: 1e6, Burst: 1 << 20, MaxInFlight: 64}

func newClient(t *testing.T, endpoint string, change ...func(*Config)) *Client {
	t.Helper()
	return newClientOver(t, nil, endpoint, change...)
}

// newClientOver returns a client that sends its requests through base.
func newClientOver(t *testing.T, base http.RoundTripper, endpoint string, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Name: "test", Endpoint: endpoint, Limits: fast, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	c, err := newOver(base, cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(c.transport.CloseIdleConnections)
	return c
}

// serve returns a client of a server that runs h, over real connections.
func serve(t *testing.T, h http.Handler, change ...func(*Config)) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return newClient(t, server.URL, change...)
}

// inBubble returns a client that calls h without a connection, for synctest:
// reading from a socket would keep its clock from moving.
func inBubble(t *testing.T, h http.HandlerFunc, change ...func(*Config)) *Client {
	t.Helper()
	return newClientOver(t, transportFunc(func(r *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
			trace.WroteHeaders()
		}
		if r.Body == nil {
			r.Body = http.NoBody
		}
		answer := httptest.NewRecorder()
		h(answer, r)
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		response := answer.Result()
		response.Request = r
		return response, nil
	}), "http://cloud.test", change...)
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// withCapabilities fills the cache of what the cloud can do.
func (c *Client) withCapabilities(names ...cloud.Capability) *Client {
	has := cloud.NewCapabilities(names...)
	c.capabilities.probed.Store(&has)
	return c
}

func allCapabilities() []cloud.Capability {
	return append([]cloud.Capability{cloud.Sizing, cloud.PowerAtCreate}, listed...)
}

// scriptedServer records requests and answers each with the next reply, and all
// further ones with the last.
type scriptedServer struct {
	mu       sync.Mutex
	requests []received
	replies  []reply
}

type received struct {
	method, target, auth, key, body string
}

type reply struct {
	status int
	media  string
	body   string
	header map[string]string
	// drop closes the connection instead of an answer.
	drop bool
}

func answering(replies ...reply) *scriptedServer { return &scriptedServer{replies: replies} }

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.requests = append(s.requests, received{
		r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"),
		string(bytes.TrimSpace(body)),
	})
	next := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	s.mu.Unlock()
	if next.drop {
		panic(http.ErrAbortHandler)
	}
	if next.media == "" {
		next.media = "application/json"
	}
	w.Header().Set("Content-Type", next.media)
	for key, value := range next.header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
}

func (s *scriptedServer) count() int { return len(s.sent()) }

// sent returns the requests that were received so far.
func (s *scriptedServer) sent() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// problemReply is a refusal with a code.
func problemReply(status int, code string) reply {
	return reply{status: status, media: "application/problem+json", body: `{"code":"` + code + `","detail":"because"}`}
}

// outcome is the part of an error that callers decide by.
type outcome struct {
	Kind       cloud.Kind
	Uncertain  bool
	RetryAfter time.Duration
}

func outcomeOf(err error) outcome {
	return outcome{cloud.KindOf(err), cloud.Uncertain(err), cloud.RetryAfter(err)}
}

func wantOutcome(t *testing.T, err error, want outcome) {
	t.Helper()
	if diff := cmp.Diff(want, outcomeOf(err)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", want)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
