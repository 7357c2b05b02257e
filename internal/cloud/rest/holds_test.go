package rest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

func sharing(h *transport.Holds) func(*Config) { return func(cfg *Config) { cfg.Holds = h } }

func withToken(token string) func(*Config) {
	return func(cfg *Config) { cfg.Credentials = Credentials{Token: token} }
}

func named(name string) func(*Config) { return func(cfg *Config) { cfg.Name = name } }

func TestRefusedPasswordIsNotTriedByANewClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change []func(*Config)
		forget bool
		after  time.Duration
		// opened is how often a login was tried in all.
		opened int
	}{
		"the same password: held":                          {opened: 1},
		"the same password after the hold: tried":          {after: transport.RefusalHolds, opened: 2},
		"another password: tried":                          {change: []func(*Config){withPassword("other")}, opened: 2},
		"the same password of another Cloud: tried":        {change: []func(*Config){named("other")}, opened: 2},
		"the same password after the Cloud is gone: tried": {forget: true, opened: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, holds := &sessionServer{password: "pass", life: time.Hour}, transport.NewHolds()
				first := inBubble(t, s.ServeHTTP, withPassword("wrong"), sharing(holds)).withCapabilities()
				wantOutcome(t, verbs["get"](t.Context(), first), outcome{Kind: cloud.Unauthorized})
				first.Close(t.Context())
				if test.forget {
					holds.Forget("test")
				}
				time.Sleep(test.after)
				next := inBubble(t, s.ServeHTTP, append([]func(*Config){withPassword("wrong"), sharing(holds)}, test.change...)...).withCapabilities()
				err := verbs["get"](t.Context(), next)
				wantOutcome(t, err, outcome{Kind: cloud.Unauthorized})
				wantText(t, err, `get server "i-1": logging in: the cloud refuses the credentials: check username and password in the Secret`)
				if s.opened != test.opened {
					t.Errorf("logged in %d times, want %d", s.opened, test.opened)
				}
			})
		})
	}
}

func TestAcceptedPasswordEndsHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, holds := &sessionServer{password: "new", life: time.Hour}, transport.NewHolds()
		c := inBubble(t, s.ServeHTTP, withPassword("pass"), sharing(holds)).withCapabilities()
		wantOutcome(t, verbs["get"](t.Context(), c), outcome{Kind: cloud.Unauthorized})
		s.password = "pass"
		time.Sleep(transport.RefusalHolds)
		if err := verbs["get"](t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := verbs["get"](t.Context(), inBubble(t, s.ServeHTTP, withPassword("pass"), sharing(holds)).withCapabilities()); err != nil {
			t.Errorf("a new client: %v", err)
		}
	})
}

func TestRetryAfterOutlivesClient(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Config)
		held   bool
	}{
		"the same token: held":                   {func(*Config) {}, true},
		"other limits with the same token: held": {func(cfg *Config) { cfg.Limits.Burst = 3 }, true},
		"another token: not held":                {withToken("other"), false},
		"another Cloud: not held":                {named("other"), false},
		"another endpoint: not held":             {func(cfg *Config) { cfg.Endpoint += "/v2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				holds := transport.NewHolds()
				answers := answering(reply{status: 429, header: map[string]string{"Retry-After": "300"}}, reply{status: 200, body: `{"id":"i-1","name":"web"}`})
				first := inBubble(t, answers.ServeHTTP, withToken("t"), sharing(holds)).withCapabilities()
				wantOutcome(t, verbs["create"](t.Context(), first), outcome{Kind: cloud.Throttled, RetryAfter: 5 * time.Minute})
				first.Close(t.Context())
				next := inBubble(t, answers.ServeHTTP, withToken("t"), sharing(holds), test.change).withCapabilities()
				if err := verbs["check"](t.Context(), next); cloud.Is(err, cloud.Throttled) != test.held {
					t.Errorf("%v, want it held: %t", err, test.held)
				}
				time.Sleep(5 * time.Minute)
				if err := verbs["check"](t.Context(), next); err != nil {
					t.Errorf("after the time: %v", err)
				}
			})
		})
	}
}
