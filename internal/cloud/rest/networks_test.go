package rest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const aNetwork = `{"id":"n-1","name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1","createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z"}`

var wantNetwork = cloud.Network{
	ID: "n-1", Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

// networkVerbs are the calls about networks by name.
var networkVerbs = map[string]func(context.Context, *Client) error{
	"list": func(ctx context.Context, c *Client) error { _, err := c.ListNetworks(ctx); return err },
	"get":  func(ctx context.Context, c *Client) error { _, err := c.GetNetwork(ctx, "n-1"); return err },
	"create": func(ctx context.Context, c *Client) error {
		_, err := c.CreateNetwork(ctx, cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", IdempotencyKey: "k"})
		return err
	},
	"update": func(ctx context.Context, c *Client) error {
		_, err := c.UpdateNetwork(ctx, "n-1", cloud.UpdateNetwork{Gateway: "10.0.0.2"})
		return err
	},
	"delete": func(ctx context.Context, c *Client) error { return c.DeleteNetwork(ctx, "n-1") },
}

func TestNetworkRequestsAsSent(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]received{
		"list":   {method: "GET", target: "/networks"},
		"get":    {method: "GET", target: "/networks/n-1"},
		"create": {method: "POST", target: "/networks", key: "k", body: `{"name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`},
		"update": {method: "PATCH", target: "/networks/n-1", body: `{"gateway":"10.0.0.2"}`},
		"delete": {method: "DELETE", target: "/networks/n-1"},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			body := aNetwork
			if verb == "list" {
				body = `{"networks":[` + aNetwork + `]}`
			}
			server := answering(reply{status: 200, body: body})
			if err := networkVerbs[verb](t.Context(), serve(t, server).withCapabilities(allCapabilities()...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]received{want}, server.sent(), cmp.AllowUnexported(received{})); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCreateNetworkSendsNoKeyToCloudWithoutIdempotency(t *testing.T) {
	t.Parallel()
	server := answering(reply{drop: true})
	err := networkVerbs["create"](t.Context(), serve(t, server).withCapabilities(cloud.Networks))
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable, Uncertain: true})
	if sent := server.sent(); len(sent) != 1 || sent[0].key != "" {
		t.Errorf("sent %+v, want one create without a key", sent)
	}
}

func TestNetworkAnswersDetermineKind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, verb string
		answer     reply
		want       outcome
	}{
		{"409 nameTaken: Taken", "create", problemReply(409, "nameTaken"), outcome{Kind: cloud.Taken}},
		{"403 nameProhibited: Prohibited", "create", problemReply(403, "nameProhibited"), outcome{Kind: cloud.Prohibited}},
		{"422 keyReused: KeyReused", "create", problemReply(422, "keyReused"), outcome{Kind: cloud.KeyReused}},
		{"400 invalid: Rejected", "create", problemReply(400, "invalid"), outcome{Kind: cloud.Rejected}},
		{"403 quotaExceeded: Quota", "create", problemReply(403, "quotaExceeded"), outcome{Kind: cloud.Quota}},
		{"a create that gets 500: uncertain", "create", problemReply(500, "internal"), outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"409 attached: Conflict", "delete", problemReply(409, "attached"), outcome{Kind: cloud.Conflict}},
		{"409 without a code: Conflict", "delete", reply{status: 409}, outcome{Kind: cloud.Conflict}},
		{"get of a network that does not exist: NotFound", "get", problemReply(404, "notFound"), outcome{Kind: cloud.NotFound}},
		{"delete of a network that does not exist: NotFound", "delete", problemReply(404, "notFound"), outcome{Kind: cloud.NotFound}},
		{"404 in HTML: NotFoundUnproven", "get", reply{status: 404, media: "text/html"}, outcome{Kind: cloud.NotFoundUnproven}},
		{"404 without a code: NotFoundUnproven", "delete", reply{status: 404}, outcome{Kind: cloud.NotFoundUnproven}},
		{"404 for the listing: Unreadable", "list", problemReply(404, "notFound"), outcome{Kind: cloud.Unreadable}},
		{"403 for one network: Forbidden", "get", reply{status: 403}, outcome{Kind: cloud.Forbidden}},
		{"403 for the listing: Unauthorized", "list", reply{status: 403}, outcome{Kind: cloud.Unauthorized}},
		{"get answered with another network: Unreadable", "get", reply{status: 200, body: `{"id":"n-2","name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`}, outcome{Kind: cloud.Unreadable}},
		{"update answered with another network: uncertain", "update", reply{status: 200, body: `{"id":"n-2","name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.2"}`}, outcome{Kind: cloud.Unreadable, Uncertain: true}},
		{"create answered without an id: uncertain", "create", reply{status: 201, body: `{"name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`}, outcome{Kind: cloud.Unreadable, Uncertain: true}},
		{"create answered with an empty body: uncertain", "create", reply{status: 201}, outcome{Kind: cloud.Unreadable, Uncertain: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.answer)).withCapabilities(allCapabilities()...)
			wantOutcome(t, networkVerbs[test.verb](t.Context(), c), test.want)
		})
	}
}

// The id in the answer to a create is that of what it created.
func TestCreateNetworkReturnsNormalizedName(t *testing.T) {
	t.Parallel()
	c := serve(t, answering(reply{status: 201, body: `{"id":"n-2","name":"NET ","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`})).withCapabilities(allCapabilities()...)
	got, err := c.CreateNetwork(t.Context(), cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	want := cloud.Network{ID: "n-2", Name: "NET ", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestListNetworks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want []cloud.Network
		text string
	}{
		"one":                        {body: `{"networks":[` + aNetwork + `]}`, want: []cloud.Network{wantNetwork}},
		"none":                       {body: `{"networks":[]}`, want: []cloud.Network{}},
		"unknown fields are ignored": {body: `{"networks":[],"new":[1]}`, want: []cloud.Network{}},
		"an object without a list":   {body: `{"items":[]}`, text: "list networks: the answer holds no list of networks"},
		"a list that is null":        {body: `{"networks":null}`, text: "list networks: the answer holds no list of networks"},
		"a bare list":                {body: `[]`, text: "list networks: a value of the wrong type in the answer"},
		"one without an id":          {body: `{"networks":[` + aNetwork + `,{"name":"net"}]}`, text: "list networks: network 2 of the listing: it has no id"},
		"one without a name":         {body: `{"networks":[{"id":"n-1"}]}`, text: `list networks: network 1 of the listing: it has no name, and its id is "n-1": give it a name in the cloud, since it may be that of an object of this operator`},
		"one without a range":        {body: `{"networks":[{"id":"n-1","name":"net"}]}`, want: []cloud.Network{{ID: "n-1", Name: "net"}}},
		"one without a gateway":      {body: `{"networks":[{"id":"n-1","name":"net","cidr":"10.0.0.0/24","gateway":null}]}`, want: []cloud.Network{{ID: "n-1", Name: "net", CIDR: "10.0.0.0/24"}}},
		"one with a path as id":      {body: `{"networks":[{"id":"..","name":"net"}]}`, text: "list networks: network 1 of the listing: its id is a path"},
		"a range that is a number":   {body: `{"networks":[{"id":"n-1","name":"net","cidr":8}]}`, want: []cloud.Network{{ID: "n-1", Name: "net"}}},
		"an id that is an integer": {
			body: `{"networks":[{"id":12345678901234567890,"name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}]}`,
			want: []cloud.Network{{ID: "12345678901234567890", Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}},
		},
		"a time of the wrong type": {
			body: `{"networks":[{"id":"n-1","name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1","createdAt":1700000000,"CIDR":"x"}]}`,
			want: []cloud.Network{{ID: "n-1", Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := serve(t, answering(reply{status: 200, body: test.body})).withCapabilities(allCapabilities()...).ListNetworks(t.Context())
			if test.text != "" {
				wantText(t, err, test.text)
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
