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
		_, err := c.UpdateNetwork(ctx, "n-1", "10.0.0.2")
		return err
	},
	"delete": func(ctx context.Context, c *Client) error { return c.DeleteNetwork(ctx, "n-1") },
}

func TestCallsAboutNetworksAsTheyAreSent(t *testing.T) {
	t.Parallel()
	for verb, want := range map[string]seen{
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
			tape := script(reply{status: 200, body: body})
			if err := networkVerbs[verb](t.Context(), serving(t, tape).can(everything()...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]seen{want}, tape.sent(), cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACloudWithoutKeysIsSentNoneForANetwork(t *testing.T) {
	t.Parallel()
	tape := script(reply{drop: true})
	err := networkVerbs["create"](t.Context(), serving(t, tape).can(cloud.Networks))
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable, Uncertain: true})
	if sent := tape.sent(); len(sent) != 1 || sent[0].key != "" {
		t.Errorf("sent %+v, want one create without a key", sent)
	}
}

func TestWhatAnAnswerAboutNetworksMeans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, verb string
		answer     reply
		want       outcome
	}{
		{"its name is taken", "create", problemReply(409, "nameTaken"), outcome{Kind: cloud.Taken}},
		{"its name is prohibited", "create", problemReply(403, "nameProhibited"), outcome{Kind: cloud.Prohibited}},
		{"its key made another", "create", problemReply(422, "keyReused"), outcome{Kind: cloud.KeyReused}},
		{"it cannot be", "create", problemReply(400, "invalid"), outcome{Kind: cloud.Rejected}},
		{"there is no room", "create", problemReply(403, "quotaExceeded"), outcome{Kind: cloud.Quota}},
		{"a create that failed may have taken effect", "create", problemReply(500, "internal"), outcome{Kind: cloud.Unavailable, Uncertain: true}},
		{"servers are attached", "delete", problemReply(409, "attached"), outcome{Kind: cloud.Conflict}},
		{"servers are attached, in a cloud without codes", "delete", reply{status: 409}, outcome{Kind: cloud.Conflict}},
		{"it is gone", "get", problemReply(404, "notFound"), outcome{Kind: cloud.NotFound}},
		{"it was gone already", "delete", problemReply(404, "notFound"), outcome{Kind: cloud.NotFound}},
		{"an ingress without a cloud behind it", "get", reply{status: 404, media: "text/html"}, outcome{Kind: cloud.Unreadable}},
		{"a 404 that is not the cloud's own", "delete", reply{status: 404}, outcome{Kind: cloud.Unreadable}},
		{"a listing that is not there", "list", problemReply(404, "notFound"), outcome{Kind: cloud.Unreadable}},
		{"about this one network nothing may be known", "get", reply{status: 403}, outcome{Kind: cloud.Rejected}},
		{"the credentials are not good for networks", "list", reply{status: 403}, outcome{Kind: cloud.Unauthorized}},
		{"an answer about another network", "get", reply{status: 200, body: `{"id":"n-2","name":"net","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`}, outcome{Kind: cloud.Unreadable}},
		{"an answer about somebody else's new network", "create", reply{status: 201, body: `{"id":"n-2","name":"other","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`}, outcome{Kind: cloud.Unreadable, Uncertain: true}},
		{"an empty answer to a create", "create", reply{status: 201}, outcome{Kind: cloud.Unreadable, Uncertain: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := serving(t, script(test.answer)).can(everything()...)
			wantOutcome(t, networkVerbs[test.verb](t.Context(), c), test.want)
		})
	}
}

func TestListingsOfNetworks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want []cloud.Network
		says string
	}{
		"one":                            {body: `{"networks":[` + aNetwork + `]}`, want: []cloud.Network{wantNetwork}},
		"none":                           {body: `{"networks":[]}`, want: []cloud.Network{}},
		"what is new counts for nothing": {body: `{"networks":[],"new":[1]}`, want: []cloud.Network{}},
		"an object without a list":       {body: `{"items":[]}`, says: "list networks: the answer holds no list of networks"},
		"a list that is null":            {body: `{"networks":null}`, says: "list networks: the answer holds no list of networks"},
		"a bare list":                    {body: `[]`, says: "list networks: a value of the wrong type in the answer"},
		"one without an id":              {body: `{"networks":[` + aNetwork + `,{"name":"net"}]}`, says: "list networks: network 2 of the listing: it has no id"},
		"one without a name":             {body: `{"networks":[{"id":"n-1"}]}`, says: "list networks: network 1 of the listing: it has no name"},
		"one without a range":            {body: `{"networks":[{"id":"n-1","name":"net"}]}`, says: "list networks: network 1 of the listing: it has no cidr"},
		"one without a gateway":          {body: `{"networks":[{"id":"n-1","name":"net","cidr":"10.0.0.0/24"}]}`, says: "list networks: network 1 of the listing: it has no gateway"},
		"one whose id is a path":         {body: `{"networks":[{"id":"..","name":"net"}]}`, says: "list networks: network 1 of the listing: its id is a path"},
		"a range that is no text":        {body: `{"networks":[{"id":"n-1","name":"net","cidr":8}]}`, says: `list networks: field "networks.cidr" of the answer has the wrong type`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := serving(t, script(reply{status: 200, body: test.body})).can(everything()...).ListNetworks(t.Context())
			if test.says != "" {
				wantText(t, err, test.says)
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
