package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestRedirectToAnotherOriginIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := answering(reply{status: 200, body: `{"id":"i-1","name":"web"}`})
	other := httptest.NewServer(elsewhere)
	t.Cleanup(other.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	for name, location := range map[string]string{
		"another port": other.URL + "/servers/i-1",
		"another host": "http://localhost:" + port + "/servers/i-1",
		"TLS":          "https" + strings.TrimPrefix(other.URL, "http") + "/servers/i-1",
		"no scheme":    "//" + strings.TrimPrefix(other.URL, "http://") + "/servers/i-1",
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, verb := range []string{"get", "create", "update", "delete"} {
				t.Run(name+" "+verb+" "+http.StatusText(status), func(t *testing.T) {
					t.Parallel()
					c := serve(t, answering(reply{status: status, header: map[string]string{"Location": location}}), func(cfg *Config) {
						cfg.Credentials = Credentials{Token: "hunter2"}
					}).withCapabilities(allCapabilities()...)
					err := verbs[verb](t.Context(), c)
					wantOutcome(t, err, outcome{Kind: cloud.Unavailable, Uncertain: verb != "get"})
					if !strings.Contains(err.Error(), "redirects to") || strings.Contains(err.Error(), "/servers") {
						t.Errorf("%q, want the host it redirects to, and no path", err)
					}
				})
			}
		}
	}
	t.Cleanup(func() {
		if elsewhere.count() != 0 {
			t.Errorf("followed: %+v", elsewhere.sent())
		}
	})
}

func TestRedirectWithinOriginIsFollowedByGetOnly(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]struct {
		outcome
		requests int64
	}{
		"get":    {outcome{}, 2},
		"create": {outcome{Kind: cloud.Unavailable, Uncertain: true}, 1},
		"delete": {outcome{Kind: cloud.Unavailable, Uncertain: true}, 1},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if !strings.HasPrefix(r.URL.Path, "/v2") {
					http.Redirect(w, r, "/v2"+r.URL.Path, http.StatusTemporaryRedirect)
					return
				}
				if r.Header.Get("Authorization") != "Bearer hunter2" {
					t.Errorf("the redirected request has no token")
				}
				okServer(w, r)
			}), func(cfg *Config) { cfg.Credentials = Credentials{Token: "hunter2"} }).withCapabilities()
			wantOutcome(t, verbs[verb](t.Context(), c), want.outcome)
			if requests.Load() != want.requests {
				t.Errorf("%d requests, want %d", requests.Load(), want.requests)
			}
		})
	}
}

func TestRedirectLoopEnds(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	}))
	wantOutcome(t, verbs["get"](t.Context(), c), outcome{Kind: cloud.Unavailable})
	if requests.Load() != 4 {
		t.Errorf("%d requests, want the first and three that follow redirects", requests.Load())
	}
}
