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

// A POST sent twice makes two servers. Resty sends it again once its retries
// are on, and net/http does when it carries an Idempotency-Key.
func TestWhatIsSentAgain(t *testing.T) {
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
		{"a check is", nil, verbs["check"], 3},
		{"a get is", nil, verbs["get"], 3},
		{"a listing is", nil, verbs["list"], 3},
		{"a deletion is", nil, verbs["delete"], 3},
		{"a create with a key that the cloud honours is", cloud.NewCapabilities(cloud.Idempotency), keyed, 3},
		{"a create with a key that the cloud ignores is not", nil, keyed, 1},
		{"a create without a key is not", cloud.NewCapabilities(cloud.Idempotency), verbs["create"], 1},
		{"an update is not", cloud.NewCapabilities(cloud.Resize), verbs["update"], 1},
	} {
		for failure, answer := range map[string]reply{"503": {status: 503}, "500": {status: 500}, "a lost answer": {drop: true}} {
			t.Run(test.name+" after "+failure, func(t *testing.T) {
				t.Parallel()
				cloudTape := script(answer)
				c := serving(t, cloudTape).can(test.has...)
				err := test.call(t.Context(), c)
				if !cloud.Is(err, cloud.Unavailable) {
					t.Errorf("%v, want Unavailable", err)
				}
				if got := cloudTape.count(); got != test.want {
					t.Errorf("sent %d times, want %d", got, test.want)
				}
			})
		}
	}
}

// net/http replays a request on a connection that the server closed between
// two calls, if it takes it for idempotent. It must not take ours for it.
func TestNoPostIsReplayedOnAReusedConnection(t *testing.T) {
	t.Parallel()
	answers := script(reply{status: 200, body: `{"id":"i-1","name":"x"}`}, reply{drop: true})
	c := serving(t, answers).can()
	if _, err := c.GetServer(t.Context(), "i-1"); err != nil {
		t.Fatal(err)
	}
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable, Uncertain: true})
	want := []seen{{method: "GET", target: "/servers/i-1"}, {method: "POST", target: "/servers", body: `{"name":"web"}`}}
	if diff := cmp.Diff(want, answers.sent(), cmp.AllowUnexported(seen{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestARefusalIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, answer := range []reply{
		{status: 400}, {status: 401}, {status: 403}, {status: 404}, {status: 409}, {status: 429}, {status: 200, body: "{"},
		{status: 503, header: map[string]string{"Retry-After": "30"}},
	} {
		answers := script(answer)
		c := serving(t, answers)
		if err := verbs["get"](t.Context(), c); err == nil {
			t.Errorf("%+v: no error", answer)
		}
		if answers.count() != 1 {
			t.Errorf("%+v: sent %d times, want once", answer, answers.count())
		}
	}
}

func TestASecondTryMaySucceed(t *testing.T) {
	t.Parallel()
	const web = `{"id":"i-1","name":"web"}`
	answers := script(reply{drop: true}, reply{status: 200, body: web, header: map[string]string{"Content-Length": "100"}}, reply{status: 200, body: web})
	c := serving(t, answers)
	got, err := c.GetServer(t.Context(), "i-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cloud.Server{ID: "i-1", Name: "web", State: cloud.StateActive}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The first try may have made the server, whatever the second is told.
func TestDoubtOutlivesALaterRefusal(t *testing.T) {
	t.Parallel()
	c := serving(t, script(reply{drop: true}, reply{status: 429})).can(cloud.Idempotency)
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
	wantOutcome(t, err, outcome{Kind: cloud.Throttled, Uncertain: true, RetryAfter: 5 * time.Second})
}

func TestAllTriesShareOneTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
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

func TestAnEndedContextEndsTheCall(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	for _, test := range []struct {
		verb string
		want outcome
	}{{"create", outcome{Kind: cloud.Unavailable, Uncertain: true}}, {"get", outcome{Kind: cloud.Unavailable}}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := verbs[test.verb](ctx, newClient(t, server.URL).can())
		cancel()
		wantOutcome(t, err, test.want)
		if want := "no time left for an answer"; !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
