package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// A POST that is sent twice makes two servers, and a DELETE that is sent twice may delete
// the server of somebody else. Resty would send it again if its retries were on; net/http
// does so when it has an Idempotency-Key.
func TestRetryOnlyOfRepeatableCalls(t *testing.T) {
	t.Parallel()
	keyed := func(ctx context.Context, c *Client) error {
		_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
		return err
	}
	for _, test := range []struct {
		name string
		has  cloud.Capabilities
		call func(context.Context, *Client) error
		want int
	}{
		{"a check is retried", nil, verbs["check"], 3},
		{"a get is retried", nil, verbs["get"], 3},
		{"a listing is retried", nil, verbs["list"], 3},
		{"a deletion is not retried: its id may be that of another server", nil, verbs["delete"], 1},
		{"a create with a key that the cloud honours is retried", cloud.NewCapabilities(cloud.Idempotency), keyed, 3},
		{"a create with a key that the cloud ignores is not retried", nil, keyed, 1},
		{"a create without a key is not retried", cloud.NewCapabilities(cloud.Idempotency), verbs["create"], 1},
		{"an update is not retried", cloud.NewCapabilities(cloud.Resize), verbs["update"], 1},
	} {
		for failure, answer := range map[string]reply{"503": {status: 503}, "500": {status: 500}, "a lost answer": {drop: true}} {
			t.Run(test.name+" after "+failure, func(t *testing.T) {
				t.Parallel()
				server := answering(answer)
				c := serve(t, server).withCapabilities(test.has...)
				err := test.call(t.Context(), c)
				if !cloud.Is(err, cloud.Unavailable) {
					t.Errorf("%v, want Unavailable", err)
				}
				if got := server.count(); got != test.want {
					t.Errorf("sent %d times, want %d", got, test.want)
				}
			})
		}
	}
}

// net/http replays a request on a connection that the server closed between two
// calls if it considers the request idempotent. It must not do so with a POST.
func TestPostIsNotReplayedOnReusedConnection(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 200, body: `{"id":"i-1","name":"x"}`}, reply{drop: true})
	c := serve(t, answers).withCapabilities()
	if _, err := c.GetServer(t.Context(), "i-1"); err != nil {
		t.Fatal(err)
	}
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable, Uncertain: true})
	want := []received{{method: "GET", target: "/servers/i-1"}, {method: "POST", target: "/servers", body: `{"name":"web"}`}}
	if diff := cmp.Diff(want, answers.sent(), cmp.AllowUnexported(received{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestRefusalIsNotRetried(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]reply{
		"400": {status: 400}, "401": {status: 401}, "403": {status: 403}, "404": {status: 404}, "409": {status: 409}, "429": {status: 429},
		"200 with a body that ends early":       {status: 200, body: "{"},
		"503 with a Retry-After that is longer": {status: 503, header: map[string]string{"Retry-After": "30"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := answering(answer)
			c := serve(t, answers)
			if err := verbs["get"](t.Context(), c); err == nil {
				t.Error("no error")
			}
			if answers.count() != 1 {
				t.Errorf("sent %d times, want once", answers.count())
			}
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	t.Parallel()
	const web = `{"id":"i-1","name":"web"}`
	answers := answering(reply{drop: true}, reply{status: 200, body: web, header: map[string]string{"Content-Length": "100"}}, reply{status: 200, body: web})
	c := serve(t, answers)
	got, err := c.GetServer(t.Context(), "i-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cloud.Server{ID: "i-1", Name: "web", State: cloud.StateActive}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The first try may have created the server, whatever the answer to the second is.
func TestUncertaintyOutlastsLaterRefusal(t *testing.T) {
	t.Parallel()
	c := serve(t, answering(reply{drop: true}, reply{status: 429})).withCapabilities(cloud.Idempotency)
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
	wantOutcome(t, err, outcome{Kind: cloud.Throttled, Uncertain: true, RetryAfter: 5 * time.Second})
}

func TestTriesShareOneTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(4 * time.Second):
				w.WriteHeader(http.StatusBadGateway)
			case <-r.Context().Done():
			}
		})
		start := time.Now()
		err := verbs["get"](t.Context(), c)
		wantText(t, err, `get server "i-1": timed out after 10s`)
		if took := time.Since(start); took != 10*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took %s, %v; want 10s and a deadline exceeded", took, errors.Unwrap(err))
		}
	})
}

// expiring is a context whose deadline is over once done is closed.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e *expiring) Done() <-chan struct{} { return e.done }

func (e *expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestEndOfContextEndsCall(t *testing.T) {
	t.Parallel()
	release, reached := make(chan struct{}), make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	for verb, want := range map[string]outcome{
		"create": {Kind: cloud.Unavailable, Uncertain: true},
		"get":    {Kind: cloud.Unavailable},
	} {
		t.Run(verb, func(t *testing.T) {
			ctx := &expiring{Context: t.Context(), done: make(chan struct{})}
			go func() {
				<-reached
				close(ctx.done)
			}()
			err := verbs[verb](ctx, newClient(t, server.URL).withCapabilities())
			wantOutcome(t, err, want)
			if want := "no time left for an answer"; !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": "+want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}
