package cloudtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var (
	networks = []cloud.Capability{cloud.Networks}
	// attachable are the capabilities of which a cloud with networks has one.
	attachable = []cloud.Capability{cloud.Networks, cloud.NetworkAttach}
)

// networkCases are about networks that can be created. All but the last three need the
// capability Networks.
var networkCases = []testCase{
	{name: "a network: is created, found, listed and deleted", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		created := mustCreateNetwork(ctx, t, f, aNetwork())
		got, err := f.Client.GetNetwork(ctx, created.ID)
		if diff := cmp.Diff(created, got); diff != "" || err != nil {
			t.Errorf("GetNetwork: %v (-want +got):\n%s", err, diff)
		}
		wantNetworks(ctx, t, f, created)
		if err := f.Client.DeleteNetwork(ctx, created.ID); err != nil {
			t.Fatalf("DeleteNetwork: %v", err)
		}
		_, err = f.Client.GetNetwork(ctx, created.ID)
		wantGone(t, f, "GetNetwork after DeleteNetwork", err)
		wantGone(t, f, "second DeleteNetwork", f.Client.DeleteNetwork(ctx, created.ID))
		wantNetworks(ctx, t, f)
	}},
	{name: "a create with a range and a gateway: the network has them", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		created := mustCreateNetwork(ctx, t, f, req)
		got := cloud.CreateNetwork{Name: created.Name, CIDR: created.CIDR, Gateway: created.Gateway}
		if diff := cmp.Diff(req, got); diff != "" {
			t.Errorf("created (-want +got):\n%s", diff)
		}
	}},
	{name: "a change of the gateway: nothing else changes", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		want := mustCreateNetwork(ctx, t, f, aNetwork())
		got, err := f.Client.UpdateNetwork(ctx, want.ID, cloud.UpdateNetwork{Gateway: "10.0.0.2"})
		want.Gateway = "10.0.0.2"
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("UpdateNetwork: %v (-want +got):\n%s", err, diff)
		}
		wantNetworks(ctx, t, f, want)
	}},
	{name: "DNS servers: a network is created with them, and they are replaced", needs: []cloud.Capability{cloud.Networks, cloud.NetworkDNS},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			req.DNSNameservers = []string{"10.0.0.53", "10.9.0.53"}
			want := mustCreateNetwork(ctx, t, f, req)
			if diff := cmp.Diff(req.DNSNameservers, want.DNSNameservers); diff != "" {
				t.Errorf("created with DNS servers (-want +got):\n%s", diff)
			}
			wantNetworks(ctx, t, f, want)
			want.DNSNameservers = []string{"10.9.0.54", "10.0.0.53"}
			got, err := f.Client.UpdateNetwork(ctx, want.ID, cloud.UpdateNetwork{DNSNameservers: want.DNSNameservers})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("UpdateNetwork: %v (-want +got):\n%s", err, diff)
			}
			wantNetworks(ctx, t, f, want)
			want.Gateway = "10.0.0.2"
			got, err = f.Client.UpdateNetwork(ctx, want.ID, cloud.UpdateNetwork{Gateway: want.Gateway})
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("UpdateNetwork of the gateway: %v (-want +got):\n%s", err, diff)
			}
		}},
	{name: "a DNS server that is no address: Rejected", needs: []cloud.Capability{cloud.Networks, cloud.NetworkDNS},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			req.DNSNameservers = []string{"resolver"}
			_, err := f.Client.CreateNetwork(ctx, req)
			wantKind(t, "CreateNetwork", err, cloud.Rejected, false)
			wantNetworks(ctx, t, f)
		}},
	{name: "a gateway outside the network: Rejected", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		created := mustCreateNetwork(ctx, t, f, req)
		_, err := f.Client.UpdateNetwork(ctx, created.ID, cloud.UpdateNetwork{Gateway: "10.1.0.1"})
		wantKind(t, "UpdateNetwork", err, cloud.Rejected, false)
		req.Name, req.Gateway = name("outside"), "10.1.0.1"
		_, err = f.Client.CreateNetwork(ctx, req)
		wantKind(t, "CreateNetwork", err, cloud.Rejected, false)
		wantNetworks(ctx, t, f, created)
	}},
	{name: "a network that does not exist: NotFound from every call", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, id := range []string{nowhere, "..", "../servers", "?" + nowhere} {
			_, err := f.Client.GetNetwork(ctx, id)
			wantGone(t, f, "GetNetwork("+id+")", err)
			_, err = f.Client.UpdateNetwork(ctx, id, cloud.UpdateNetwork{Gateway: "10.0.0.2"})
			wantGone(t, f, "UpdateNetwork("+id+")", err)
			wantGone(t, f, "DeleteNetwork("+id+")", f.Client.DeleteNetwork(ctx, id))
		}
	}},
	{name: "an empty id of a network: Rejected", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.GetNetwork(ctx, "")
		wantKind(t, "GetNetwork", err, cloud.Rejected, false)
		_, err = f.Client.UpdateNetwork(ctx, "", cloud.UpdateNetwork{Gateway: "10.0.0.2"})
		wantKind(t, "UpdateNetwork", err, cloud.Rejected, false)
		wantKind(t, "DeleteNetwork", f.Client.DeleteNetwork(ctx, ""), cloud.Rejected, false)
	}},
	{name: "a deletion of a network with a server attached: Conflict", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		network := mustCreateNetwork(ctx, t, f, aNetwork())
		server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("wired"), NetworkID: network.ID})
		if diff := cmp.Diff(network.ID, server.NetworkID); diff != "" {
			t.Errorf("the server's network (-want +got):\n%s", diff)
		}
		wantKind(t, "DeleteNetwork", f.Client.DeleteNetwork(ctx, network.ID), cloud.Conflict, false)
		mustDelete(ctx, t, f, server.ID)
		if err := f.Client.DeleteNetwork(ctx, network.ID); err != nil {
			t.Errorf("DeleteNetwork: %v", err)
		}
	}},
	{name: "a create with a network that does not exist: Rejected, and no server", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("adrift"), NetworkID: nowhere})
		wantKind(t, "CreateServer", err, cloud.Rejected, false)
		wantServers(ctx, t, f)
	}},
	{name: "a network with a prohibited name: Prohibited, and no network", needs: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		req.Name = f.Prohibited
		_, err := f.Client.CreateNetwork(ctx, req)
		wantProhibited(t, f, "CreateNetwork", err)
		wantNetworks(ctx, t, f)
	}},
	{name: "one key sent concurrently: one network", needs: []cloud.Capability{cloud.Networks, cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			req.IdempotencyKey = name("key")
			var got [8]cloud.Network
			var errs [8]error
			var all sync.WaitGroup
			for i := range got {
				all.Go(func() { got[i], errs[i] = f.Client.CreateNetwork(ctx, req) })
			}
			all.Wait()
			last, err := f.Client.CreateNetwork(ctx, req)
			if err != nil {
				t.Fatalf("CreateNetwork at the end: %v", err)
			}
			for i := range got {
				if !inProgress(errs[i]) && (errs[i] != nil || got[i].ID != last.ID) {
					t.Errorf("CreateNetwork %d: id %q, %v; want id %q", i, got[i].ID, errs[i], last.ID)
				}
			}
			wantNetworks(ctx, t, f, last)
		}},
	{name: "a key with another network: KeyReused", needs: []cloud.Capability{cloud.Networks, cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			req.IdempotencyKey = name("key")
			first := mustCreateNetwork(ctx, t, f, req)
			req.Gateway = "10.0.0.2"
			_, err := f.Client.CreateNetwork(ctx, req)
			wantKind(t, "CreateNetwork", err, cloud.KeyReused, false)
			wantNetworks(ctx, t, f, first)
		}},
	{name: "a second network of a name, names are unique: Taken", needs: []cloud.Capability{cloud.Networks, cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			first := mustCreateNetwork(ctx, t, f, req)
			_, err := f.Client.CreateNetwork(ctx, req)
			wantKind(t, "CreateNetwork", err, cloud.Taken, false)
			wantNetworks(ctx, t, f, first)
		}},
	{name: "a second network of a name, names are not unique: another network", needs: networks, lacks: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			wantNetworks(ctx, t, f, mustCreateNetwork(ctx, t, f, req), mustCreateNetwork(ctx, t, f, req))
		}},
	{name: "a half-made network: is listed as such, and completed by a create", needs: networks, halves: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		req := aNetwork()
		f.HalfMake(t, req.Name)
		half := mustListNetworks(ctx, t, f)
		if len(half) != 1 || !half[0].HalfMade || half[0].Name != req.Name {
			t.Fatalf("networks %+v, want the half-made one", half)
		}
		made := mustCreateNetwork(ctx, t, f, req)
		if made.HalfMade || made.ID != half[0].ID || made.CIDR != req.CIDR {
			t.Errorf("CreateNetwork: %+v, want network %s complete", made, half[0].ID)
		}
		wantNetworks(ctx, t, f, made)
	}},
	{name: "the answer of a network's create is lost, without keys: uncertain, and one network", losing: true,
		needs: networks, lacks: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			restore := f.LoseAnswer(t, OpCreateNetwork)
			_, err := f.Client.CreateNetwork(ctx, aNetwork())
			restore()
			wantKind(t, "CreateNetwork", err, cloud.Unavailable, true)
			if got := mustListNetworks(ctx, t, f); len(got) != 1 {
				t.Errorf("networks %+v, want one", got)
			}
		}},
	{name: "the answer of a network's create is lost, with a key: uncertain, and a retry returns the one network", losing: true,
		needs: []cloud.Capability{cloud.Networks, cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := aNetwork()
			req.IdempotencyKey = name("key")
			restore := f.LoseAnswer(t, OpCreateNetwork)
			_, err := f.Client.CreateNetwork(ctx, req)
			restore()
			wantKind(t, "CreateNetwork", err, cloud.Unavailable, true)
			wantNetworks(ctx, t, f, mustCreateNetwork(ctx, t, f, req))
		}},
	{name: "the answer of a network's change is lost: uncertain", losing: true, needs: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreateNetwork(ctx, t, f, aNetwork())
			restore := f.LoseAnswer(t, OpUpdateNetwork)
			_, err := f.Client.UpdateNetwork(ctx, created.ID, cloud.UpdateNetwork{Gateway: "10.0.0.2"})
			restore()
			wantKind(t, "UpdateNetwork", err, cloud.Unavailable, true)
		}},
	{name: "the answer of a network's deletion is lost: the network is gone", losing: true, needs: networks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreateNetwork(ctx, t, f, aNetwork())
			restore := f.LoseAnswer(t, OpDeleteNetwork)
			err := f.Client.DeleteNetwork(ctx, created.ID)
			restore()
			if !cloud.Uncertain(err) && !cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven) {
				t.Errorf("DeleteNetwork: %v, want it uncertain, or NotFound from a second try", err)
			}
			wantNetworks(ctx, t, f)
		}},
	{name: "a read of networks, the cloud lacks them: Unsupported, and not sent", lacks: attachable, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for what, call := range map[string]func() error{
			"ListNetworks": func() error { _, err := f.Client.ListNetworks(ctx); return err },
			"GetNetwork":   func() error { _, err := f.Client.GetNetwork(ctx, nowhere); return err },
		} {
			unsent(t, f, what, call)
		}
	}},
	{name: "DNS servers, the cloud lacks them: Unsupported, and not sent", lacks: []cloud.Capability{cloud.NetworkDNS},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req, servers := aNetwork(), []string{"10.0.0.53"}
			req.DNSNameservers = servers
			unsent(t, f, "CreateNetwork", func() error { _, err := f.Client.CreateNetwork(ctx, req); return err })
			unsent(t, f, "UpdateNetwork", func() error {
				_, err := f.Client.UpdateNetwork(ctx, nowhere, cloud.UpdateNetwork{DNSNameservers: servers})
				return err
			})
		}},
	{name: "a change of networks, the cloud cannot create them: Unsupported, and not sent", lacks: networks, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for what, call := range map[string]func() error{
			"CreateNetwork": func() error { _, err := f.Client.CreateNetwork(ctx, aNetwork()); return err },
			"UpdateNetwork": func() error {
				_, err := f.Client.UpdateNetwork(ctx, nowhere, cloud.UpdateNetwork{Gateway: "10.0.0.2"})
				return err
			},
			"DeleteNetwork": func() error { return f.Client.DeleteNetwork(ctx, nowhere) },
		} {
			unsent(t, f, what, call)
		}
	}},
}

func aNetwork() cloud.CreateNetwork {
	return cloud.CreateNetwork{Name: name("net"), CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}
}

func mustCreateNetwork(ctx context.Context, t *testing.T, f Fixture, req cloud.CreateNetwork) cloud.Network {
	t.Helper()
	network, err := processed(ctx, f, func() (cloud.Network, error) { return f.Client.CreateNetwork(ctx, req) })
	if err != nil {
		t.Fatalf("CreateNetwork(%+v): %v", req, err)
	}
	return network
}

// mustListNetworks lists the networks, without those that others share.
func mustListNetworks(ctx context.Context, t *testing.T, f Fixture) []cloud.Network {
	t.Helper()
	listed, err := f.Client.ListNetworks(ctx)
	if err != nil {
		t.Fatalf("ListNetworks: %v", err)
	}
	return slices.DeleteFunc(listed, func(n cloud.Network) bool { return n.Shared })
}

// wantNetworks checks which networks there are, in any order.
func wantNetworks(ctx context.Context, t *testing.T, f Fixture, want ...cloud.Network) {
	t.Helper()
	got := mustListNetworks(ctx, t, f)
	for _, list := range [][]cloud.Network{got, want} {
		slices.SortFunc(list, func(a, b cloud.Network) int {
			if a.ID < b.ID {
				return -1
			}
			return 1
		})
	}
	if diff := cmp.Diff(append([]cloud.Network{}, want...), got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
}
