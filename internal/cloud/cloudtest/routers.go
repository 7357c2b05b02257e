package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var routers = []cloud.Capability{cloud.Networks, cloud.Routers}

// routerCases are about routers of networks. All but the last need the capability Routers.
var routerCases = []testCase{
	{name: "a network with a router: is connected, and deleted with it", needs: routers, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.ExternalNetwork, req.IdempotencyKey = f.External, name("key")
		made := mustCreateNetwork(ctx, t, f, req)
		if !made.Router.ConnectedTo(f.External) {
			t.Errorf("the router is %+v, want one to %s", made.Router, f.External)
		}
		wantNetworks(ctx, t, f, made)
		got, err := f.Client.GetNetwork(ctx, made.ID)
		if diff := cmp.Diff(made, got); diff != "" || err != nil {
			t.Errorf("GetNetwork: %v (-want +got):\n%s", err, diff)
		}
		if err := f.Client.DeleteNetwork(ctx, made.ID); err != nil {
			t.Errorf("DeleteNetwork: %v", err)
		}
		wantNetworks(ctx, t, f)
	}},
	{name: "a network that gets a router later: one, however often it is asked for", needs: routers, run: func(ctx context.Context, t *testing.T, f Fixture) {
		made := mustCreateNetwork(ctx, t, f, aNetwork())
		change := cloud.UpdateNetwork{ExternalNetwork: f.External}
		first, err := f.Client.UpdateNetwork(ctx, made.ID, change)
		if err != nil || !first.Router.ConnectedTo(f.External) {
			t.Fatalf("UpdateNetwork: %+v, %v", first, err)
		}
		second, err := f.Client.UpdateNetwork(ctx, made.ID, change)
		if diff := cmp.Diff(first, second); diff != "" || err != nil {
			t.Errorf("UpdateNetwork again: %v (-want +got):\n%s", err, diff)
		}
		wantNetworks(ctx, t, f, first)
		if err := f.Client.DeleteNetwork(ctx, made.ID); err != nil {
			t.Errorf("DeleteNetwork: %v", err)
		}
	}},
	{name: "a deletion of a network with a router and a server: Conflict, and all stays as it is", needs: routers, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.ExternalNetwork = f.External
		made := mustCreateNetwork(ctx, t, f, req)
		server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("routed"), NetworkID: made.ID})
		wantKind(t, "DeleteNetwork", f.Client.DeleteNetwork(ctx, made.ID), cloud.Conflict, false)
		wantNetworks(ctx, t, f, made)
		mustDelete(ctx, t, f, server.ID)
		if err := f.Client.DeleteNetwork(ctx, made.ID); err != nil {
			t.Errorf("DeleteNetwork: %v", err)
		}
		wantNetworks(ctx, t, f)
	}},
	{name: "a router to an unknown network: Rejected, and no network", needs: routers, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.ExternalNetwork = nowhere
		_, err := f.Client.CreateNetwork(ctx, req)
		wantKind(t, "CreateNetwork", err, cloud.Rejected, false)
		req.ExternalNetwork = "no-such-network"
		_, err = f.Client.CreateNetwork(ctx, req)
		wantKind(t, "CreateNetwork", err, cloud.Rejected, false)
		wantNetworks(ctx, t, f)
	}},
	{name: "a router, the cloud lacks them: Unsupported, and not sent", lacks: []cloud.Capability{cloud.Routers}, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.ExternalNetwork = "ext-net"
		unsent(t, f, "CreateNetwork", func() error { _, err := f.Client.CreateNetwork(ctx, req); return err })
		unsent(t, f, "UpdateNetwork", func() error {
			_, err := f.Client.UpdateNetwork(ctx, nowhere, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
			return err
		})
	}},
}
