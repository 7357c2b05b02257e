package openstack

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	novaNotFound    = `{"itemNotFound": {"code": 404, "message": "Instance could not be found."}}`
	neutronNotFound = `{"NeutronError": {"type": "NetworkNotFound", "message": "Network could not be found.", "detail": ""}}`
	overQuota       = `{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 4, but already used 8 of 10 cores"}}`
	conflict        = `{"conflictingRequest": {"code": 409, "message": "Cannot 'stop' instance while it is in vm_state building"}}`
)

type refusalCase struct {
	status int
	body   string
	want   outcome
}

// refusals are answers by the request to which they are given.
var refusals = map[string]map[string]refusalCase{
	"GET compute/servers/" + someID: {
		"404 with the service's code: NotFound":           {404, novaNotFound, outcome{Kind: cloud.NotFound}},
		"404 without a body: unproven":                    {404, "", outcome{Kind: cloud.NotFoundUnproven}},
		"404 of a path that the service lacks: unproven":  {404, `{"NeutronError": {"type": "HTTPNotFound", "message": "no"}}`, outcome{Kind: cloud.NotFoundUnproven}},
		"404 in HTML: unproven":                           {404, "<html>not here</html>", outcome{Kind: cloud.NotFoundUnproven}},
		"423: Busy, since somebody has locked it":         {423, `{}`, outcome{Kind: cloud.Busy}},
		"403: Forbidden, since it is about one server":    {403, `{"forbidden": {"message": "Policy does not allow this"}}`, outcome{Kind: cloud.Forbidden}},
		"429: Throttled":                                  {429, "", outcome{Kind: cloud.Throttled}},
		"500: Unavailable, and a read is never uncertain": {500, "", outcome{Kind: cloud.Unavailable}},
		"300: Unavailable":                                {300, "", outcome{Kind: cloud.Unavailable}},
		"200 without a server: Unreadable":                {200, `{}`, outcome{Kind: cloud.Unreadable}},
		"200 with HTML: Unreadable":                       {200, "<html>log in</html>", outcome{Kind: cloud.Unreadable}},
		"200 with another server: Unreadable":             {200, `{"server": {"id": "other", "name": "x"}}`, outcome{Kind: cloud.Unreadable}},
	},
	"POST compute/servers": {
		"quota: Quota":                                       {403, overQuota, outcome{Kind: cloud.Quota}},
		"quota as 413: Quota":                                {413, `{"overLimit": {"message": "Quota exceeded for instances"}}`, outcome{Kind: cloud.Quota}},
		"a quota of ports: Quota":                            {403, `{"forbidden": {"message": "Maximum number of ports exceeded"}}`, outcome{Kind: cloud.Quota}},
		"no host has room: NoHost":                           {400, `{"badRequest": {"message": "No valid host was found. "}}`, outcome{Kind: cloud.NoHost}},
		"a policy about quotas: Forbidden":                   {403, `{"forbidden": {"message": "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed."}}`, outcome{Kind: cloud.Forbidden}},
		"a name with the word quota: Rejected":               {400, `{"badRequest": {"message": "Quota exceeded is not a valid name"}}`, outcome{Kind: cloud.Rejected}},
		"a conflict with the word quota: Busy":               {409, `{"conflictingRequest": {"message": "the quota exceeded by another request is being updated"}}`, outcome{Kind: cloud.Busy}},
		"403 of a proxy with the word quota: Forbidden":      {403, `{"error": {"message": "Quota exceeded"}}`, outcome{Kind: cloud.Forbidden}},
		"413 of a limit of the rate: Throttled":              {413, `{"overLimit": {"message": "This request was rate-limited."}}`, outcome{Kind: cloud.Throttled}},
		"403 of a policy: Forbidden":                         {403, `{"forbidden": {"message": "Policy does not allow this"}}`, outcome{Kind: cloud.Forbidden}},
		"409 because names are unique: Taken":                {409, `{"conflictingRequest": {"message": "Instance 'web' already exists."}}`, outcome{Kind: cloud.Taken}},
		"409: Busy":                                          {409, conflict, outcome{Kind: cloud.Busy}},
		"400: Rejected":                                      {400, `{"badRequest": {"message": "Network x could not be found."}}`, outcome{Kind: cloud.Rejected}},
		"500: uncertain":                                     {500, "", outcome{cloud.Unavailable, true}},
		"504 of a proxy: uncertain":                          {504, "<html>", outcome{cloud.Unavailable, true}},
		"408: uncertain":                                     {408, "", outcome{cloud.Unavailable, true}},
		"202 without an id: uncertain":                       {202, `{}`, outcome{cloud.Unreadable, true}},
		"202 with a body that is no JSON: uncertain":         {202, `<html>`, outcome{cloud.Unreadable, true}},
		"202 with an id that is a path: uncertain":           {202, `{"server": {"id": "../x"}}`, outcome{cloud.Unreadable, true}},
		"404 with the service's code: what it names is gone": {404, novaNotFound, outcome{Kind: cloud.Rejected}},
	},
	"DELETE network/networks/" + someID: {
		"in use: Conflict":                      {409, `{"NeutronError": {"type": "NetworkInUse", "message": "in use"}}`, outcome{Kind: cloud.Conflict}},
		"404 with the service's type: NotFound": {404, neutronNotFound, outcome{Kind: cloud.NotFound}},
		"500: uncertain":                        {500, "", outcome{cloud.Unavailable, true}},
	},
	"POST network/networks": {
		"quota, which is a 409: Quota": {409, `{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['network']."}}`, outcome{Kind: cloud.Quota}},
	},
	"GET compute/servers/detail": {
		"403 of a listing: Unauthorized, since all depends on it": {403, `{"forbidden": {"message": "no"}}`, outcome{Kind: cloud.Unauthorized}},
		"404 of a listing: Unreadable":                            {404, novaNotFound, outcome{Kind: cloud.Unreadable}},
		"not a listing: Unreadable":                               {200, `{"flavors": []}`, outcome{Kind: cloud.Unreadable}},
		"a server without a name: Unreadable":                     {200, `{"servers": [{"id": "a"}]}`, outcome{Kind: cloud.Unreadable}},
		"cut short: Unreadable":                                   {200, `{"servers": [{"id": "a", "name": "b"}`, outcome{Kind: cloud.Unreadable}},
	},
}

func TestRefusalsAreClassified(t *testing.T) {
	calls := map[string]func(context.Context, *Client) error{
		"GET compute/servers/" + someID: func(ctx context.Context, c *Client) error { _, err := c.GetServer(ctx, someID); return err },
		"POST compute/servers": func(ctx context.Context, c *Client) error {
			_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web"})
			return err
		},
		"DELETE network/networks/" + someID: func(ctx context.Context, c *Client) error { return c.DeleteNetwork(ctx, someID) },
		"POST network/networks": func(ctx context.Context, c *Client) error {
			_, err := c.CreateNetwork(ctx, cloud.CreateNetwork{Name: "n", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
			return err
		},
		"GET compute/servers/detail": func(ctx context.Context, c *Client) error {
			_, err := c.ListServers(ctx, cloud.ListServers{})
			return err
		},
	}
	for request, cases := range refusals {
		for name, tc := range cases {
			t.Run(strings.ReplaceAll(request, "/", "_")+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newStub(t)
				s.on("GET network/networks", `{"networks": []}`)
				s.on("GET"+aboutNetOne, `{"network": `+bareNetwork+`}`)
				s.on(request, tc.body, tc.status)
				err := calls[request](t.Context(), s.client())
				if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

func TestLostAnswersAreUncertain(t *testing.T) {
	s := newStub(t)
	s.handle("POST compute/servers", cut)
	s.handle("DELETE compute/servers/"+someID, cut)
	s.handle("GET compute/servers/"+someID, cut)
	c := s.client()
	_, created := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"})
	_, deleted := c.DeleteServer(t.Context(), someID)
	_, read := c.GetServer(t.Context(), someID)
	got := []outcome{outcomeOf(created), outcomeOf(deleted), outcomeOf(read)}
	want := []outcome{{cloud.Unavailable, true}, {cloud.Unavailable, true}, {cloud.Unavailable, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("create, delete, get (-want +got):\n%s", diff)
	}
	creates := 0
	for _, request := range s.taken() {
		if strings.HasPrefix(request, "POST compute/servers") {
			creates++
		}
	}
	if creates != 1 {
		t.Errorf("the create was sent %d times, want once", creates)
	}
}

func TestErrorsQuoteNoSecretAndNoRequestID(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.handle("GET compute/servers/"+someID, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"badRequest": {"message": "bad ` + r.Header.Get("X-Auth-Token") + " and " + passphrase +
			` (Request-ID: req-42a4b2a1-6e2f-4b0a-9c11-6f9b6e0c1a2b)"}}`))
	})
	_, err := c.GetServer(t.Context(), someID)
	if err == nil {
		t.Fatal("GetServer succeeded")
	}
	if want := `get server "` + someID + `": bad REDACTED and REDACTED`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	if text := cloud.PublicMessage(err); strings.Contains(text, passphrase) {
		t.Errorf("%q contains the password", text)
	}
}

func TestHoldOfTheCloudIsKeptByFollowingClients(t *testing.T) {
	s := newStub(t)
	holds := transport.NewHolds()
	held := func(c *Config) { c.Holds = holds }
	s.handle("GET compute/servers/"+someID, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	if _, err := s.client(held).GetServer(t.Context(), someID); cloud.RetryAfter(err) != time.Minute {
		t.Errorf("%v with %s, want a minute", err, cloud.RetryAfter(err))
	}
	s.taken()
	if _, err := s.client(held).GetServer(t.Context(), someID); !cloud.Is(err, cloud.Throttled) || len(s.taken()) != 0 {
		t.Errorf("%v, want Throttled, and nothing sent", err)
	}
	holds.Forget("test")
	if _, err := s.client(held).GetServer(t.Context(), someID); len(s.taken()) == 0 {
		t.Errorf("%v, want a request after the Cloud was forgotten", err)
	}
}
