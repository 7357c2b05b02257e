package rest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// sessionServer is a cloud whose calls need a session.
type sessionServer struct {
	mu       sync.Mutex
	password string
	life     time.Duration
	token    string
	ends     time.Time
	opened   int
	closed   int
	served   []string
	refused  int
}

func (s *sessionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	bearer := r.Header.Get("Authorization")
	switch known := bearer == "Bearer "+s.token && time.Now().Before(s.ends); {
	case r.URL.Path == "/sessions" && r.Method == http.MethodPost:
		s.open(w, r)
	case !known:
		s.refused++
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/sessions":
		s.closed++
		s.token = ""
		w.WriteHeader(http.StatusNoContent)
	default:
		s.served = append(s.served, r.Method+" "+r.URL.Path)
		_, _ = fmt.Fprint(w, `{"id":"i-1","name":"web"}`)
	}
}

func (s *sessionServer) open(w http.ResponseWriter, r *http.Request) {
	s.opened++
	buf := make([]byte, 1000)
	n, _ := r.Body.Read(buf)
	if string(buf[:n]) != fmt.Sprintf(`{"username":"user","password":%q}`, s.password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.token = fmt.Sprintf("session-%d", s.opened)
	s.ends = time.Now().Add(s.life)
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"token":%q,"expiresAt":%q}`, s.token, s.ends.Format(time.RFC3339Nano))
}

func withPassword(password string) func(*Config) {
	return func(cfg *Config) { cfg.Credentials = Credentials{Username: "user", Password: password} }
}

func TestCallsShareOneSession(t *testing.T) {
	t.Parallel()
	s := &sessionServer{password: "pass", life: time.Hour}
	c := serve(t, s, withPassword("pass")).withCapabilities()
	var failed atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if err := verbs["get"](t.Context(), c); err != nil {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if failed.Load() != 0 || s.opened != 1 || s.refused != 0 {
		t.Errorf("%d failed, %d sessions opened, %d calls refused; want 0, 1, 0", failed.Load(), s.opened, s.refused)
	}
}

func TestSessionIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sessionServer{password: "pass", life: time.Hour}
		c := inBubble(t, s.ServeHTTP, withPassword("pass"))
		for range 5 {
			if err := verbs["get"](t.Context(), c); err != nil {
				t.Fatal(err)
			}
			time.Sleep(29*time.Minute + 50*time.Second)
		}
		if s.opened != 3 || s.refused != 0 {
			t.Errorf("%d sessions opened, %d calls refused; want 3, 0", s.opened, s.refused)
		}
	})
}

// A 401 proves that nothing was done, so even a create may be repeated.
func TestSessionIsRenewedOnceAfter401(t *testing.T) {
	t.Parallel()
	s := &sessionServer{password: "pass", life: time.Hour}
	c := serve(t, s, withPassword("pass")).withCapabilities()
	if err := verbs["get"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.token = "revoked"
	if err := verbs["create"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /servers/i-1", "POST /servers"}, s.served); diff != "" || s.opened != 2 || s.refused != 1 {
		t.Errorf("%d sessions opened, %d calls refused; want 2, 1; calls (-want +got):\n%s", s.opened, s.refused, diff)
	}
}

func TestRefusedCredentialsAreNotRetriedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sessionServer{password: "pass", life: time.Hour}
		c := inBubble(t, s.ServeHTTP, withPassword("wrong")).withCapabilities()
		for range 10 {
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: cloud.Unauthorized})
			wantText(t, err, `create server "web": logging in: the cloud refuses the credentials: check username and password in the Secret`)
		}
		if s.opened != 1 {
			t.Errorf("logged in %d times, want once", s.opened)
		}
		time.Sleep(transport.RefusalHolds)
		_ = verbs["get"](t.Context(), c)
		if s.opened != 2 {
			t.Errorf("logged in %d times after a while, want twice", s.opened)
		}
	})
}

func TestFailedLogin(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		login reply
		want  outcome
		text  string
	}{
		"a cloud without sessions": {
			problemReply(404, "notFound"), outcome{Kind: cloud.Unauthorized},
			"logging in: this cloud has no sessions: put a token in the Secret instead of username and password",
		},
		"a cloud that is unavailable": {reply{status: 503}, outcome{Kind: cloud.Unavailable}, "logging in: the cloud answered 503 Service Unavailable"},
		"a session without a token":   {reply{status: 201, body: `{}`}, outcome{Kind: cloud.Unreadable}, "logging in: the answer holds no token that can be sent"},
		"a token that breaks the header": {
			reply{status: 201, body: `{"token":"a\r\nb"}`}, outcome{Kind: cloud.Unreadable}, "logging in: the answer holds no token that can be sent",
		},
		"a portal": {
			reply{status: 200, media: "text/html", body: "<html>"}, outcome{Kind: cloud.Unreadable},
			"logging in: an answer that is not the cloud's own: 200 OK, text/html",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.login), withPassword("pass")).withCapabilities()
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, test.want)
			wantText(t, err, `create server "web": `+test.text)

			_, err = serve(t, answering(test.login), withPassword("pass")).Capabilities(t.Context())
			wantOutcome(t, err, test.want)
			wantText(t, err, "get capabilities: "+test.text)
		})
	}
}

func TestCloseEndsSession(t *testing.T) {
	t.Parallel()
	s := &sessionServer{password: "pass", life: time.Hour}
	serve(t, s, withPassword("pass")).Close(t.Context())
	if s.opened != 0 || s.closed != 0 {
		t.Errorf("before any call: %d opened, %d closed; want none", s.opened, s.closed)
	}
	c := serve(t, s, withPassword("pass"))
	_ = verbs["get"](t.Context(), c)
	c.Close(t.Context())
	if err := verbs["get"](t.Context(), c); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("a call after Close: %v, want Unavailable", err)
	}
	if s.opened != 1 || s.closed != 1 {
		t.Errorf("%d opened, %d closed; want 1, 1", s.opened, s.closed)
	}
}

func TestCloseWaitsForCallsUnderWay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow  time.Duration
		grace time.Duration
		took  time.Duration
	}{
		"a call that ends in time: served, then the session ends":     {slow: 4 * time.Second, grace: 20 * time.Second, took: 4 * time.Second},
		"a call that lasts: the session ends with time left for that": {slow: 9 * time.Second, grace: 8 * time.Second, took: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sessionServer{password: "pass", life: time.Hour}
				c := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet {
						time.Sleep(test.slow)
					}
					s.ServeHTTP(w, r)
				}, withPassword("pass")).withCapabilities()
				if err := verbs["create"](t.Context(), c); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- verbs["get"](t.Context(), c) }()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), test.grace)
				defer cancel()
				begun := time.Now()
				c.Close(ctx)
				if took := time.Since(begun); took != test.took || s.closed != 1 {
					t.Errorf("closed after %s, %d sessions ended; want %s, 1", took, s.closed, test.took)
				}
				if err := <-ended; test.slow <= test.took && err != nil {
					t.Errorf("the call under way: %v", err)
				}
				if s.opened != 1 {
					t.Errorf("%d sessions were opened, want 1", s.opened)
				}
				c.Close(ctx)
				if s.closed != 1 {
					t.Errorf("the second Close ended %d sessions more", s.closed-1)
				}
			})
		})
	}
}

func TestClosedClientSendsNothing(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 200, body: `{"id":"i-1","name":"web"}`})
	c := serve(t, answers, func(cfg *Config) { cfg.Credentials = Credentials{Token: "t"} }).withCapabilities(allCapabilities()...)
	c.Close(t.Context())
	for name, call := range verbs {
		wantOutcome(t, call(t.Context(), c), outcome{Kind: cloud.Unavailable})
		if answers.count() != 0 {
			t.Fatalf("%s was sent", name)
		}
	}
	c.Close(t.Context())
}
