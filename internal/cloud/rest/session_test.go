package rest

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// door is a cloud that lets nobody in without a session.
type door struct {
	mu       sync.Mutex
	password string
	life     time.Duration
	token    string
	ends     time.Time
	opened   int
	closed   int
	inside   []string
	refused  int
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	bearer := r.Header.Get("Authorization")
	switch known := bearer == "Bearer "+d.token && time.Now().Before(d.ends); {
	case r.URL.Path == "/sessions" && r.Method == http.MethodPost:
		d.open(w, r)
	case !known:
		d.refused++
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/sessions":
		d.closed++
		d.token = ""
		w.WriteHeader(http.StatusNoContent)
	default:
		d.inside = append(d.inside, r.Method+" "+r.URL.Path)
		_, _ = fmt.Fprint(w, `{"id":"i-1","name":"web"}`)
	}
}

func (d *door) open(w http.ResponseWriter, r *http.Request) {
	d.opened++
	buf := make([]byte, 1000)
	n, _ := r.Body.Read(buf)
	if string(buf[:n]) != fmt.Sprintf(`{"username":"user","password":%q}`, d.password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	d.token = fmt.Sprintf("session-%d", d.opened)
	d.ends = time.Now().Add(d.life)
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"token":%q,"expiresAt":%q}`, d.token, d.ends.Format(time.RFC3339Nano))
}

func withPassword(password string) func(*Config) {
	return func(cfg *Config) { cfg.Credentials = Credentials{Username: "user", Password: password} }
}

func TestManyCallsShareOneSession(t *testing.T) {
	t.Parallel()
	d := &door{password: "pass", life: time.Hour}
	c := serving(t, d, withPassword("pass")).can()
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
	if failed.Load() != 0 || d.opened != 1 || d.refused != 0 {
		t.Errorf("%d failed, %d sessions opened, %d calls refused; want 0, 1, 0", failed.Load(), d.opened, d.refused)
	}
}

func TestASessionIsRenewedBeforeItEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &door{password: "pass", life: time.Hour}
		c := bubbled(t, d.ServeHTTP, withPassword("pass"))
		for range 5 {
			if err := verbs["get"](t.Context(), c); err != nil {
				t.Fatal(err)
			}
			time.Sleep(29*time.Minute + 50*time.Second)
		}
		if d.opened != 3 || d.refused != 0 {
			t.Errorf("%d sessions opened, %d calls refused; want 3, 0", d.opened, d.refused)
		}
	})
}

// A 401 proves that nothing was done, so even a create may be sent again.
func TestASessionThatEndedEarlyIsRenewedOnce(t *testing.T) {
	t.Parallel()
	d := &door{password: "pass", life: time.Hour}
	c := serving(t, d, withPassword("pass")).can()
	if err := verbs["get"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	d.token = "revoked"
	if err := verbs["create"](t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET /servers/i-1", "POST /servers"}, d.inside); diff != "" || d.opened != 2 || d.refused != 1 {
		t.Errorf("%d sessions opened, %d calls refused; want 2, 1; calls (-want +got):\n%s", d.opened, d.refused, diff)
	}
}

func TestRefusedCredentialsAreNotTriedOverAndOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &door{password: "pass", life: time.Hour}
		c := bubbled(t, d.ServeHTTP, withPassword("wrong")).can()
		for range 10 {
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, outcome{Kind: cloud.Unauthorized})
			wantText(t, err, `create server "web": logging in: the cloud refuses the credentials: check username and password in the Secret`)
		}
		if d.opened != 1 {
			t.Errorf("logged in %d times, want once", d.opened)
		}
		time.Sleep(refusalHolds)
		_ = verbs["get"](t.Context(), c)
		if d.opened != 2 {
			t.Errorf("logged in %d times after a while, want twice", d.opened)
		}
	})
}

func TestLoginsThatCannotWork(t *testing.T) {
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
		"a cloud that is away":      {reply{status: 503}, outcome{Kind: cloud.Unavailable}, "logging in: the cloud answered 503 Service Unavailable"},
		"a session without a token": {reply{status: 201, body: `{}`}, outcome{Kind: cloud.Unreadable}, "logging in: the answer holds no token that can be sent"},
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
			c := serving(t, script(test.login), withPassword("pass")).can()
			err := verbs["create"](t.Context(), c)
			wantOutcome(t, err, test.want)
			wantText(t, err, `create server "web": `+test.text)

			_, err = serving(t, script(test.login), withPassword("pass")).Capabilities(t.Context())
			wantOutcome(t, err, test.want)
			wantText(t, err, "get capabilities: "+test.text)
		})
	}
}

func TestCloseEndsTheSession(t *testing.T) {
	t.Parallel()
	d := &door{password: "pass", life: time.Hour}
	serving(t, d, withPassword("pass")).Close(t.Context())
	if d.opened != 0 || d.closed != 0 {
		t.Errorf("before any call: %d opened, %d closed; want none", d.opened, d.closed)
	}
	c := serving(t, d, withPassword("pass"))
	_ = verbs["get"](t.Context(), c)
	c.Close(t.Context())
	if err := verbs["get"](t.Context(), c); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("a call by who still holds the client: %v, want it to be sent through another", err)
	}
	if d.opened != 1 || d.closed != 1 {
		t.Errorf("%d opened, %d closed; want 1, 1", d.opened, d.closed)
	}
}
