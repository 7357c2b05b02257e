package rest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// breakingServer answers every GET, ends the connection of each changing request
// that comes on a reused connection, after it read it, and answers the others with
// then.
type breakingServer struct {
	*scriptedServer
	reset bool
}

// served is the number of requests on a connection.
type servedKey struct{}

func (s *breakingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	served := r.Context().Value(servedKey{}).(*int)
	*served++
	if r.Method == http.MethodGet || *served == 1 {
		s.scriptedServer.ServeHTTP(w, r)
		return
	}
	s.scriptedServer.ServeHTTP(httptest.NewRecorder(), r)
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	if s.reset {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_ = conn.Close()
}

// net/http considers a request with an Idempotency-Key safe to repeat. What it
// repeats by itself is not seen here, so a refusal of the second would be taken for
// the answer to the only one.
func TestBrokenReusedConnectionGetsOneRequestPerTry(t *testing.T) {
	t.Parallel()
	web := reply{status: 200, body: `{"id":"i-1","name":"web"}`}
	keyed := func(ctx context.Context, c *Client) error {
		_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web", IdempotencyKey: "k"})
		return err
	}
	const get, post = "GET /servers/i-1 ", "POST /servers "
	for name, test := range map[string]struct {
		has  []cloud.Capability
		call func(context.Context, *Client) error
		// then answers the tries after the one whose connection broke.
		then []reply
		want outcome
		sent []string
	}{
		"create with a key, then a refusal: uncertain": {
			has: []cloud.Capability{cloud.Idempotency}, call: keyed, then: []reply{problemReply(422, "invalid")},
			want: outcome{Kind: cloud.Rejected, Uncertain: true}, sent: []string{get, post + "k", post + "k"},
		},
		"create with a key, then a name that is taken: uncertain": {
			has: []cloud.Capability{cloud.Idempotency}, call: keyed, then: []reply{problemReply(409, "nameTaken")},
			want: outcome{Kind: cloud.Taken, Uncertain: true}, sent: []string{get, post + "k", post + "k"},
		},
		"create with a key, then 401: uncertain": {
			has: []cloud.Capability{cloud.Idempotency}, call: keyed, then: []reply{{status: 401}},
			want: outcome{Kind: cloud.Unauthorized, Uncertain: true}, sent: []string{get, post + "k", post + "k"},
		},
		"create with a key, then the server: done": {
			has: []cloud.Capability{cloud.Idempotency}, call: keyed, then: []reply{{status: 201, body: web.body}}, sent: []string{get, post + "k", post + "k"},
		},
		"create with a key, then 503: one request for each try": {
			has: []cloud.Capability{cloud.Idempotency}, call: keyed, then: []reply{{status: 503}},
			want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{get, post + "k", post + "k", post + "k"},
		},
		"create without a key: uncertain": {
			call: verbs["create"], then: []reply{problemReply(422, "invalid")},
			want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{get, post},
		},
		"update: uncertain": {
			has: []cloud.Capability{cloud.Resize}, call: verbs["update"], then: []reply{problemReply(422, "invalid")},
			want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{get, "PATCH /servers/i-1 "},
		},
		"deletion: uncertain": {
			call: verbs["delete"], then: []reply{{status: 204}},
			want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{get, "DELETE /servers/i-1 "},
		},
	} {
		for ending, reset := range map[string]bool{"reset": true, "closed": false} {
			t.Run(name+" after the connection was "+ending, func(t *testing.T) {
				t.Parallel()
				// The first reply is to the GET, the second is the one that nobody reads.
				h := &breakingServer{scriptedServer: answering(append([]reply{web, web}, test.then...)...), reset: reset}
				server := httptest.NewUnstartedServer(h)
				server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
					return context.WithValue(ctx, servedKey{}, new(int))
				}
				server.Start()
				t.Cleanup(server.Close)
				c := newClient(t, server.URL).withCapabilities(test.has...)
				if _, err := c.GetServer(t.Context(), "i-1"); err != nil {
					t.Fatal(err)
				}
				wantOutcome(t, test.call(t.Context(), c), test.want)
				var sent []string
				for _, r := range h.sent() {
					sent = append(sent, r.method+" "+r.target+" "+r.key)
				}
				if diff := cmp.Diff(test.sent, sent); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A transport that repeats a request all the same, such as that of HTTP/2, shows it
// by writing the headers again.
func TestRefusalOfRepeatedRequestIsUncertain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verb   string
		status int
		writes int
		want   outcome
	}{
		"create that was written once: certain":                        {"create", 422, 1, outcome{Kind: cloud.Rejected}},
		"create that was written twice: uncertain":                     {"create", 422, 2, outcome{Kind: cloud.Rejected, Uncertain: true}},
		"update that was written twice: uncertain":                     {"update", 409, 2, outcome{Kind: cloud.Busy, Uncertain: true}},
		"401 to what was written twice: uncertain, and not sent again": {"create", 401, 2, outcome{Kind: cloud.Unauthorized, Uncertain: true}},
		"get that was written twice: changes nothing":                  {"get", 422, 2, outcome{Kind: cloud.Rejected}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			base := transportFunc(func(r *http.Request) (*http.Response, error) {
				answer := httptest.NewRecorder()
				answer.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/sessions" {
					answer.WriteHeader(http.StatusCreated)
					_, _ = answer.WriteString(`{"token":"session-token"}`)
				} else {
					calls++
					for range test.writes {
						httptrace.ContextClientTrace(r.Context()).WroteHeaders()
					}
					answer.WriteHeader(test.status)
				}
				response := answer.Result()
				response.Request = r
				return response, nil
			})
			c := newClientOver(t, base, "http://cloud.test", withPassword("pass")).withCapabilities(cloud.Resize)
			wantOutcome(t, verbs[test.verb](t.Context(), c), test.want)
			if calls != 1 {
				t.Errorf("sent %d times, want once", calls)
			}
		})
	}
}
