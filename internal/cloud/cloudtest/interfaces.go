package cloudtest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// interfaceCases are about servers with several network interfaces, and with static addresses.
var interfaceCases = []testCase{
	{name: "a create with two interfaces: the server is on both networks, and neither can be deleted", needs: []cloud.Capability{cloud.WithInterfaces, cloud.Networks},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			first, second := twoNetworks(ctx, t, f)
			server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("both"), Interfaces: []cloud.Attachment{{NetworkID: second.ID}, {NetworkID: first.ID}}})
			if server.NetworkID != second.ID {
				t.Errorf("the server's network is %q, want that of its first interface, %q", server.NetworkID, second.ID)
			}
			if f.Has.Has(cloud.Addresses) {
				wantAddressesIn(ctx, t, f, server.ID, first, second)
			}
			for _, n := range []cloud.Network{first, second} {
				wantKind(t, "DeleteNetwork", f.Client.DeleteNetwork(ctx, n.ID), cloud.Conflict, false)
			}
			mustDelete(ctx, t, f, server.ID)
			for _, n := range []cloud.Network{first, second} {
				if err := f.Client.DeleteNetwork(ctx, n.ID); err != nil {
					t.Errorf("DeleteNetwork without a server: %v", err)
				}
			}
		}},
	{name: "a create with two interfaces on networks of the cloud: the server has that of the first", needs: []cloud.Capability{cloud.WithInterfaces, cloud.NetworkAttach}, lacks: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("both"), Interfaces: []cloud.Attachment{{NetworkID: f.Networks[1].ID}, {NetworkID: f.Networks[0].ID}}})
			if server.NetworkID != f.Networks[1].ID {
				t.Errorf("the server's network is %q, want that of its first interface, %q", server.NetworkID, f.Networks[1].ID)
			}
		}},
	{name: "a create with two interfaces, and one of the networks does not exist: Rejected, and no server", needs: []cloud.Capability{cloud.WithInterfaces, cloud.Networks},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			network := mustCreateNetwork(ctx, t, f, aNetwork())
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("half"), Interfaces: []cloud.Attachment{{NetworkID: network.ID}, {NetworkID: nowhere}}})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "a create with a static address: the server has it, and no other one gets it", needs: []cloud.Capability{cloud.StaticAddresses, cloud.Networks, cloud.Addresses},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			network := mustCreateNetwork(ctx, t, f, aNetwork())
			req := cloud.CreateServer{Name: name("static"), Interfaces: []cloud.Attachment{{NetworkID: network.ID, Addresses: []string{"10.0.0.77"}}}}
			server := mustCreate(ctx, t, f, req)
			got, err := f.Client.GetServer(ctx, server.ID)
			if list := got.Interfaces.List(); err != nil || len(list) != 1 || len(list[0].Addresses) != 1 || list[0].Addresses[0] != "10.0.0.77" {
				t.Errorf("GetServer: interfaces %q, %v, want one with 10.0.0.77", got.Interfaces, err)
			}
			req.Name = name("rival")
			_, err = f.Client.CreateServer(ctx, req)
			wantKind(t, "CreateServer with an address in use", err, cloud.Rejected, false)
			wantServers(ctx, t, f, server.ID)
		}},
	{name: "a create with an address outside the network: refused, or its operation fails", needs: []cloud.Capability{cloud.StaticAddresses, cloud.Networks},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			network := mustCreateNetwork(ctx, t, f, aNetwork())
			result, err := f.Client.CreateServer(ctx, cloud.CreateServer{
				Name: name("outside"), Interfaces: []cloud.Attachment{{NetworkID: network.ID, Addresses: []string{"10.0.1.77"}}},
			})
			if err == nil && result.Operation != "" {
				if operation := mustEnd(ctx, t, f, result.Operation); operation.Err == nil {
					t.Errorf("the operation of the create: %+v, want an error", operation)
				}
				return
			}
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
}

// twoNetworks creates two networks with different ranges.
func twoNetworks(ctx context.Context, t *testing.T, f Fixture) (first, second cloud.Network) {
	t.Helper()
	first = mustCreateNetwork(ctx, t, f, aNetwork())
	second = mustCreateNetwork(ctx, t, f, cloud.CreateNetwork{Name: name("net"), CIDR: "10.0.1.0/24", Gateway: "10.0.1.1"})
	return first, second
}

// wantAddressesIn checks that a server has one interface with an address of each network.
func wantAddressesIn(ctx context.Context, t *testing.T, f Fixture, id string, networks ...cloud.Network) {
	t.Helper()
	got, err := f.Client.GetServer(ctx, id)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	list := got.Interfaces.List()
	if len(list) != len(networks) {
		t.Fatalf("GetServer: interfaces %q, want %d", got.Interfaces, len(networks))
	}
	for _, n := range networks {
		within, found := netip.MustParsePrefix(n.CIDR), 0
		for _, i := range list {
			for _, text := range i.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && within.Contains(address) {
					found++
				}
			}
		}
		if found != 1 {
			t.Errorf("GetServer: interfaces %q have %d addresses of %s, want one", got.Interfaces, found, n.CIDR)
		}
	}
}
