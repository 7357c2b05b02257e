package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// ipv6Range is the IPv6 range of networks.
const ipv6Range = "fd00:10::/64"

var dualStack = []cloud.Capability{cloud.Networks, cloud.DualStack}

// dualStackCases are about networks with an IPv6 range. All but the last need the capability DualStack.
var dualStackCases = []testCase{
	{name: "a network with an IPv6 range: has both", needs: dualStack, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.IPv6CIDR, req.IdempotencyKey = ipv6Range, name("key")
		made := mustCreateNetwork(ctx, t, f, req)
		if made.CIDR != req.CIDR || made.IPv6CIDR != ipv6Range {
			t.Errorf("CreateNetwork: %+v, want the ranges %s and %s", made, req.CIDR, ipv6Range)
		}
		wantNetworks(ctx, t, f, made)
		got, err := f.Client.GetNetwork(ctx, made.ID)
		if diff := cmp.Diff(made, got); diff != "" || err != nil {
			t.Errorf("GetNetwork: %v (-want +got):\n%s", err, diff)
		}
	}},
	{name: "a network that gets an IPv6 range later: one, however often it is asked for", needs: dualStack, run: func(ctx context.Context, t *testing.T, f Fixture) {
		want := mustCreateNetwork(ctx, t, f, aNetwork())
		want.IPv6CIDR = ipv6Range
		for range 2 {
			got, err := f.Client.UpdateNetwork(ctx, want.ID, cloud.UpdateNetwork{IPv6CIDR: ipv6Range})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("UpdateNetwork: %v (-want +got):\n%s", err, diff)
			}
		}
		wantNetworks(ctx, t, f, want)
		_, err := f.Client.UpdateNetwork(ctx, want.ID, cloud.UpdateNetwork{IPv6CIDR: "fd00:11::/64"})
		wantKind(t, "UpdateNetwork with another range", err, cloud.Rejected, false)
		wantNetworks(ctx, t, f, want)
	}},
	{name: "an IPv6 range, with a router: is attached, and deleted with the network", needs: append(routers, cloud.DualStack), run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.ExternalNetwork = f.External
		made := mustCreateNetwork(ctx, t, f, req)
		change := cloud.UpdateNetwork{IPv6CIDR: ipv6Range, ExternalNetwork: f.External}
		got, err := f.Client.UpdateNetwork(ctx, made.ID, change)
		if made.IPv6CIDR = ipv6Range; err != nil || got.Router != made.Router {
			t.Errorf("UpdateNetwork: %+v, %v, want %+v", got, err, made)
		}
		wantNetworks(ctx, t, f, made)
		if err := f.Client.DeleteNetwork(ctx, made.ID); err != nil {
			t.Errorf("DeleteNetwork: %v", err)
		}
		wantNetworks(ctx, t, f)
	}},
	{name: "an IPv6 range, the cloud lacks them: Unsupported, and not sent", lacks: []cloud.Capability{cloud.DualStack}, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.IPv6CIDR = ipv6Range
		unsent(t, f, "CreateNetwork", func() error { _, err := f.Client.CreateNetwork(ctx, req); return err })
		unsent(t, f, "UpdateNetwork", func() error {
			_, err := f.Client.UpdateNetwork(ctx, nowhere, cloud.UpdateNetwork{IPv6CIDR: ipv6Range})
			return err
		})
	}},
}
