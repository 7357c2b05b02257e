package rest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// verbs are the calls by name, for tables.
var verbs = map[string]func(context.Context, *Client) error{
	"check": func(ctx context.Context, c *Client) error { return c.CheckName(ctx, cloud.Name{Name: "web"}) },
	"create": func(ctx context.Context, c *Client) error {
		_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web"})
		return err
	},
	"get":    func(ctx context.Context, c *Client) error { _, err := c.GetServer(ctx, "i-1"); return err },
	"status": func(ctx context.Context, c *Client) error { _, err := c.ServerStatus(ctx, "i-1"); return err },
	"list": func(ctx context.Context, c *Client) error {
		_, err := c.ListServers(ctx, cloud.ListServers{})
		return err
	},
	"update": func(ctx context.Context, c *Client) error {
		_, err := c.UpdateServer(ctx, "i-1", cloud.Update{cloud.SetCPU(2)})
		return err
	},
	"delete":       func(ctx context.Context, c *Client) error { _, err := c.DeleteServer(ctx, "i-1"); return err },
	"capabilities": func(ctx context.Context, c *Client) error { _, err := c.Capabilities(ctx); return err },
}

func TestCodeDeterminesKind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb   string
		status int
		code   string
		want   outcome
	}{
		{"check", 403, "nameProhibited", outcome{Kind: cloud.Prohibited}},
		{"check", 409, "nameTaken", outcome{Kind: cloud.Taken}},
		{"create", 403, "nameProhibited", outcome{Kind: cloud.Prohibited}},
		{"create", 409, "nameTaken", outcome{Kind: cloud.Taken}},
		{"create", 422, "keyReused", outcome{Kind: cloud.KeyReused}},
		{"create", 403, "quotaExceeded", outcome{Kind: cloud.Quota}},
		{"create", 400, "invalid", outcome{Kind: cloud.Rejected}},
		{"create", 400, "unsupported", outcome{Kind: cloud.Rejected}},
		{"create", 422, "templateProhibited", outcome{Kind: cloud.Rejected}},
		{"create", 422, "templateUnknown", outcome{Kind: cloud.Rejected}},
		{"create", 404, "notFound", outcome{Kind: cloud.Rejected}},
		{"create", 403, "unauthorized", outcome{Kind: cloud.Unauthorized}},
		{"create", 403, "rateLimited", outcome{Kind: cloud.Throttled, RetryAfter: 5 * time.Second}},
		{"update", 409, "invalidState", outcome{Kind: cloud.Busy}},
		{"update", 409, "needsStop", outcome{Kind: cloud.NeedsStop}},
		{"update", 409, "guestUnavailable", outcome{Kind: cloud.GuestUnavailable}},
		{"delete", 409, "attached", outcome{Kind: cloud.Conflict}},
		{"get", 404, "notFound", outcome{Kind: cloud.NotFound}},
		{"status", 404, "notFound", outcome{Kind: cloud.NotFound}},
		{"delete", 404, "notFound", outcome{Kind: cloud.NotFound}},
		{"check", 404, "notFound", outcome{Kind: cloud.Unreadable}},
		{"list", 404, "notFound", outcome{Kind: cloud.Unreadable}},
		{"get", 400, "sunspots", outcome{Kind: cloud.Rejected}},
		{"check", 403, "forbidden", outcome{Kind: cloud.Forbidden}},
		{"delete", 403, "forbidden", outcome{Kind: cloud.Forbidden}},
		{"update", 423, "locked", outcome{Kind: cloud.Busy}},
		// A server error proves nothing about what did not happen.
		{"create", 500, "nameTaken", outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"get", 500, "notFound", outcome{Kind: cloud.Unavailable}},
	} {
		t.Run(test.verb+" "+test.code, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(problemReply(test.status, test.code))).withCapabilities(allCapabilities()...)
			err := verbs[test.verb](t.Context(), c)
			wantOutcome(t, err, test.want)
		})
	}
}

func TestStatusDeterminesKindWithoutCode(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verb   string
		status int
		want   outcome
	}{
		{"check", 200, outcome{}},
		{"check", 204, outcome{}},
		{"check", 403, outcome{Kind: cloud.Prohibited}},
		{"check", 409, outcome{Kind: cloud.Taken}},
		{"check", 400, outcome{Kind: cloud.Rejected}},
		{"create", 402, outcome{Kind: cloud.Forbidden}},
		{"create", 403, outcome{Kind: cloud.Forbidden}},
		{"create", 423, outcome{Kind: cloud.Busy}},
		{"create", 404, outcome{Kind: cloud.Unreadable}},
		{"create", 408, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"create", 409, outcome{Kind: cloud.Taken}},
		{"create", 422, outcome{Kind: cloud.Rejected}},
		{"create", 429, outcome{Kind: cloud.Throttled, RetryAfter: 5 * time.Second}},
		{"create", 401, outcome{Kind: cloud.Unauthorized}},
		{"create", 204, outcome{Kind: cloud.Unreadable, Uncertain: true}},
		{"create", 206, outcome{Kind: cloud.Unreadable, Uncertain: true}},
		{"create", 500, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"create", 503, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"create", 304, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"update", 403, outcome{Kind: cloud.Forbidden}},
		{"update", 400, outcome{Kind: cloud.Rejected}},
		{"update", 405, outcome{Kind: cloud.Rejected}},
		{"update", 409, outcome{Kind: cloud.Busy}},
		{"update", 412, outcome{Kind: cloud.Busy}},
		{"update", 421, outcome{Kind: cloud.Unavailable}},
		{"update", 422, outcome{Kind: cloud.Rejected}},
		{"update", 423, outcome{Kind: cloud.Busy}},
		{"update", 424, outcome{Kind: cloud.Busy}},
		{"delete", 403, outcome{Kind: cloud.Forbidden}},
		{"delete", 409, outcome{Kind: cloud.Busy}},
		{"delete", 423, outcome{Kind: cloud.Busy}},
		{"update", 502, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"delete", 200, outcome{}},
		{"delete", 202, outcome{}},
		{"delete", 204, outcome{}},
		{"delete", 404, outcome{Kind: cloud.NotFoundUnproven}},
		{"delete", 410, outcome{Kind: cloud.NotFoundUnproven}},
		{"delete", 504, outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"get", 202, outcome{Kind: cloud.Unreadable}},
		{"get", 403, outcome{Kind: cloud.Forbidden}},
		{"get", 404, outcome{Kind: cloud.NotFoundUnproven}},
		{"update", 404, outcome{Kind: cloud.NotFoundUnproven}},
		{"get", 418, outcome{Kind: cloud.Rejected}},
		{"get", 503, outcome{Kind: cloud.Unavailable}},
		{"list", 403, outcome{Kind: cloud.Unauthorized}},
		{"list", 404, outcome{Kind: cloud.Unreadable}},
		{"list", 410, outcome{Kind: cloud.Unreadable}},
		{"list", 407, outcome{Kind: cloud.Unavailable}},
	} {
		t.Run(test.verb+" "+http.StatusText(test.status), func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: test.status})).withCapabilities(cloud.Resize)
			err := verbs[test.verb](t.Context(), c)
			wantOutcome(t, err, test.want)
		})
	}
}

// After NotFound a VM counts as lost and its finalizer is removed, so the 404 of
// an ingress without a backend must not become one. A cloud's own 404 in HTML must
// not keep a deletion from its end either.
func TestNotFoundNeedsCodeOfCloudItself(t *testing.T) {
	t.Parallel()
	core, extended := cloud.NewCapabilities(), cloud.NewCapabilities(cloud.Sizing)
	for name, test := range map[string]struct {
		has  cloud.Capabilities
		got  reply
		want cloud.Kind
	}{
		"core: with the code":                     {core, problemReply(404, "notFound"), cloud.NotFound},
		"core: the code in text/json":             {core, reply{status: 404, media: "text/json", body: `{"code":"notFound"}`}, cloud.NotFound},
		"core: JSON":                              {core, reply{status: 404, body: `{"message":"no such server"}`}, cloud.NotFoundUnproven},
		"core: another code":                      {core, reply{status: 404, body: `{"code":"noRoute"}`}, cloud.NotFoundUnproven},
		"core: empty":                             {core, reply{status: 404, media: "text/plain"}, cloud.NotFoundUnproven},
		"core: text of an ingress":                {core, reply{status: 404, media: "text/plain", body: "default backend - 404"}, cloud.NotFoundUnproven},
		"core: HTML":                              {core, reply{status: 404, media: "text/html", body: "<h1>404</h1>"}, cloud.NotFoundUnproven},
		"core: empty HTML":                        {core, reply{status: 404, media: "text/html"}, cloud.NotFoundUnproven},
		"core: a truncated body":                  {core, reply{status: 404, body: "{", header: map[string]string{"Content-Length": "100"}}, cloud.NotFoundUnproven},
		"core: a name that differs in its case":   {core, reply{status: 404, body: `{"Code":"notFound"}`}, cloud.NotFoundUnproven},
		"extended: with the code":                 {extended, problemReply(404, "notFound"), cloud.NotFound},
		"extended: JSON of a gateway":             {extended, reply{status: 404, body: `{"message":"no Route matched"}`}, cloud.NotFoundUnproven},
		"extended: empty, as from a service mesh": {extended, reply{status: 404}, cloud.NotFoundUnproven},
		"extended: the code in a body of HTML":    {extended, reply{status: 404, media: "text/html", body: `{"code":"notFound"}`}, cloud.NotFoundUnproven},
		"extended: the code, but not as a string": {extended, reply{status: 404, body: `{"code":["notFound"]}`}, cloud.NotFoundUnproven},
		"extended: 410 with the code":             {extended, problemReply(410, "notFound"), cloud.NotFound},
		"extended: 410 without":                   {extended, reply{status: 410}, cloud.NotFoundUnproven},
	} {
		for _, verb := range []string{"get", "status", "delete"} {
			t.Run(name+", "+verb, func(t *testing.T) {
				t.Parallel()
				c := serve(t, answering(test.got)).withCapabilities(test.has...)
				wantOutcome(t, verbs[verb](t.Context(), c), outcome{Kind: test.want})
			})
		}
	}
}

// Portals and firewalls answer in HTML with any status.
func TestHTMLAnswerIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 202, 400, 403, 404, 409} {
		for verb, call := range verbs {
			if verb == "capabilities" && status == 404 {
				continue // Asks for the listing next; see TestProfileDetection.
			}
			t.Run(verb+" "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				c := serve(t, answering(reply{status: status, media: "text/html", body: "<html>Sign in</html>"})).withCapabilities(allCapabilities()...)
				changing := verb == "create" || verb == "update" || verb == "delete"
				want := outcome{Kind: cloud.Unreadable, Uncertain: changing && status < 400}
				if status == 404 && verb != "create" && verb != "check" && verb != "list" {
					want.Kind = cloud.NotFoundUnproven
				}
				wantOutcome(t, call(t.Context(), c), want)
			})
		}
	}
}

func TestAnswerAboutAnotherServerIsUnreadable(t *testing.T) {
	t.Parallel()
	const other = `{"id":"i-2","name":"other"}`
	for verb, want := range map[string]outcome{
		"update": {Kind: cloud.Unreadable, Uncertain: true},
		"get":    {Kind: cloud.Unreadable},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 200, body: other})).withCapabilities(allCapabilities()...)
			wantOutcome(t, verbs[verb](t.Context(), c), want)
		})
	}
}

// The answer to a create is about what it created: thrown away, its server would
// have no owner.
func TestCreateServerReturnsServerOfAnotherName(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]string{
		"a name in lower case": "web", "a name that is trimmed": "Web", "another name": "i-9.internal",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 201, body: `{"id":9,"name":"` + answered + `"}`})).withCapabilities()
			got, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "Web "})
			want := cloud.Server{ID: "9", Name: answered, State: cloud.StateActive}
			if diff := cmp.Diff(cloud.Result{Server: want}, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A cloud may accept a create and build later.
func TestCreateServerTakes202(t *testing.T) {
	t.Parallel()
	c := serve(t, answering(reply{status: 202, body: `{"id":"i-1","name":"web","state":"BUILDING"}`})).withCapabilities()
	got, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(cloud.Result{Server: cloud.Server{ID: "i-1", Name: "web", State: cloud.StateBuilding}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListingErrorSaysWhatNeedsIt(t *testing.T) {
	t.Parallel()
	const without = "; if the cloud has no GET /servers, nothing on it can be created, changed or deleted: what exists is proved by the listing"
	for status, want := range map[int]string{
		404: "list servers: an answer that is not the cloud's own (404, empty): check the path of the Cloud's endpoint and the proxies in front of the cloud" + without,
		405: "list servers: the cloud answered 405 Method Not Allowed" + without,
		501: "list servers: the cloud answered 501 Not Implemented" + without,
		500: "list servers: the cloud answered 500 Internal Server Error",
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: status})).withCapabilities()
			wantText(t, verbs["list"](t.Context(), c), want)
		})
	}
}

func TestErrorTextsAreStableAndGiveAdvice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		got   reply
		creds Credentials
		want  string
	}{
		"the cloud's reason": {problemReply(400, "invalid"), Credentials{}, `get server "i-1": because`},
		"the title where there is no detail": {
			reply{status: 400, body: `{"title":"Bad","detail":""}`}, Credentials{}, `get server "i-1": Bad`,
		},
		"a 404 without the code": {
			reply{status: 404, body: `{"detail":"no route"}`}, Credentials{},
			`get server "i-1": the answer 404 without the code notFound (application/json) may not be the cloud's own: a complete listing decides (no route)`,
		},
		"no reason": {reply{status: 500}, Credentials{}, `get server "i-1": the cloud answered 500 Internal Server Error`},
		"a refused token": {
			reply{status: 401}, Credentials{Token: "t"},
			`get server "i-1": the cloud refuses the token: check the key token of the Secret`,
		},
		"no token": {
			problemReply(401, "unauthorized"), Credentials{},
			`get server "i-1": the cloud wants credentials: name a Secret in spec.credentialsSecretRef (because)`,
		},
		"the host of the endpoint is removed, since tenants read the reason": {
			reply{status: 400, body: `{"detail":"127.0.0.1:80 denies it, ask the owner of 127.0.0.1."}`}, Credentials{},
			`get server "i-1": … denies it, ask the owner of ….`,
		},
		"ids, times, control characters and secrets are removed": {
			reply{
				status: 400, header: map[string]string{"X-Request-Id": "req-12345678"},
				body: `{"detail":"\u001b[31mtoken hunter2/x aka hunter2%2Fx\r\nof 2026-01-02T03:04:05.678Z, request req-12345678\u202e"}`,
			}, Credentials{Token: "hunter2/x"},
			`get server "i-1": [31mtoken REDACTED aka REDACTED  of …, request …`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.got), func(cfg *Config) { cfg.Credentials = test.creds })
			wantText(t, verbs["get"](t.Context(), c), test.want)
		})
	}
}
