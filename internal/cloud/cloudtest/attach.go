package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var attach = []cloud.Capability{cloud.NetworkAttach}

// attachCases are about networks that servers can be created on, and that the operator
// does not create: those of Fixture.Networks.
var attachCases = []testCase{
	{name: "networks of the cloud: are listed and found", needs: attach, lacks: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		wantNetworks(ctx, t, f, f.Networks...)
		for _, want := range f.Networks {
			got, err := f.Client.GetNetwork(ctx, want.ID)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("GetNetwork(%s): %v (-want +got):\n%s", want.ID, err, diff)
			}
		}
	}},
	{name: "a create on a network of the cloud: the server has it, and the network stays as it is", needs: attach, lacks: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			for _, network := range f.Networks {
				server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("wired"), NetworkID: network.ID})
				got, err := f.Client.GetServer(ctx, server.ID)
				if diff := cmp.Diff([]string{network.ID, network.ID}, []string{server.NetworkID, got.NetworkID}); diff != "" || err != nil {
					t.Errorf("the server's network, as created and as read: %v (-want +got):\n%s", err, diff)
				}
				mustDelete(ctx, t, f, server.ID)
			}
			wantNetworks(ctx, t, f, f.Networks...)
		}},
	{name: "a create on a network that the cloud does not have: Rejected, and no server", needs: attach, lacks: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("adrift"), NetworkID: nowhere})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "a network that the cloud does not have: NotFound, and Rejected without an id", needs: attach, lacks: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			for _, id := range []string{nowhere, "..", "../servers", "?" + nowhere} {
				_, err := f.Client.GetNetwork(ctx, id)
				wantGone(t, f, "GetNetwork("+id+")", err)
			}
			_, err := f.Client.GetNetwork(ctx, "")
			wantKind(t, "GetNetwork", err, cloud.Rejected, false)
		}},
	{name: "one key with two networks: KeyReused, and one server", needs: []cloud.Capability{cloud.NetworkAttach, cloud.Idempotency}, lacks: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("keyed"), NetworkID: f.Networks[0].ID, IdempotencyKey: name("key")}
			first := mustCreate(ctx, t, f, req)
			req.NetworkID = f.Networks[1].ID
			_, err := f.Client.CreateServer(ctx, req)
			wantKind(t, "CreateServer", err, cloud.KeyReused, false)
			wantServers(ctx, t, f, first.ID)
		}},
}
