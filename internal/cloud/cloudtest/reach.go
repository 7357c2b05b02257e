package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// Reach is what servers need to be reached.
type Reach struct {
	// Groups are two security groups.
	Groups [2]string
	// NetworkID is a network that is connected with Fixture.External; empty if servers need none.
	NetworkID string
}

var (
	withGroups  = []cloud.Capability{cloud.WithSecurityGroups}
	withPublic  = []cloud.Capability{cloud.PublicAddresses}
	withAllowed = []cloud.Capability{cloud.WithAllowedAddresses}
)

// groups returns security groups.
func groups(names ...string) cloud.SecurityGroups {
	all, _ := cloud.NewSecurityGroups(names)
	return all
}

var reachCases = []testCase{
	{name: "a create with security groups: a read and the listing show them", needs: withGroups,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			want := groups(r.Groups[0], r.Groups[1])
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("guarded"), NetworkID: r.NetworkID, SecurityGroups: want})
			wantReach(ctx, t, f, created.ID, want, "")
		}},
	{name: "a create with a security group that does not exist: Rejected, and no server", needs: withGroups,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			err := createError(ctx, t, f, cloud.CreateServer{Name: name("unguarded"), NetworkID: r.NetworkID, SecurityGroups: groups(r.Groups[0], "nowhere")})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "a change of the security groups: the server has these and no others, also when it is sent again", needs: withGroups,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("reguarded"), NetworkID: r.NetworkID, SecurityGroups: groups(r.Groups[0])})
			for range 2 {
				got := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetSecurityGroups(groups(r.Groups[1]))})
				if diff := cmp.Diff(groups(r.Groups[1]), got.SecurityGroups); diff != "" {
					t.Errorf("UpdateServer (-want +got):\n%s", diff)
				}
			}
			wantReach(ctx, t, f, created.ID, groups(r.Groups[1]), "")
		}},
	{name: "a change to a security group that does not exist: Rejected, and the server keeps its groups", needs: withGroups,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept"), NetworkID: r.NetworkID, SecurityGroups: groups(r.Groups[0])})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetSecurityGroups(groups(r.Groups[1], "nowhere"))})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantReach(ctx, t, f, created.ID, groups(r.Groups[0]), "")
		}},
	{name: "a change of the allowed addresses: the server has these and no others, also when it is sent again, and none when they are removed", needs: withAllowed,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("shared"), NetworkID: r.NetworkID})
			for _, want := range []cloud.AllowedAddresses{"10.7.0.200\nfd00:7::/120", "10.7.0.192/28\n10.7.0.250", "10.7.0.192/28\n10.7.0.250", "", ""} {
				got := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetAllowedAddresses(want)})
				if diff := cmp.Diff(want, got.AllowedAddresses); diff != "" {
					t.Errorf("UpdateServer (-want +got):\n%s", diff)
				}
				wantAllowed(ctx, t, f, created.ID, want)
			}
		}},
	{name: "a change to an address that no server can use: Rejected, and the server keeps its allowed addresses", needs: withAllowed,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept"), NetworkID: r.NetworkID})
			mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetAllowedAddresses("10.7.0.200")})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetAllowedAddresses("10.7.0.201\n127.0.0.1")})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantAllowed(ctx, t, f, created.ID, "10.7.0.200")
		}},
	{name: "a public address: a read and the listing show it, it stays when it is asked for again, and goes when it is removed", needs: withPublic,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("public"), NetworkID: r.NetworkID})
			address := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPublicAddress(f.External)}).PublicAddress
			if address == "" {
				t.Fatal("UpdateServer: the server has no public address")
			}
			if again := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPublicAddress(f.External)}).PublicAddress; again != address {
				t.Errorf("UpdateServer again: address %s, want %s as before", again, address)
			}
			for pause := time.NewTicker(f.pollTime()); read(ctx, t, f, created.ID).PublicAddress == cloud.AddressPending; <-pause.C {
			}
			wantReach(ctx, t, f, created.ID, read(ctx, t, f, created.ID).SecurityGroups, address)
			for range 2 {
				if left := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.RemovePublicAddress{}}).PublicAddress; left != "" {
					t.Errorf("UpdateServer to remove it: address %s, want none", left)
				}
			}
			wantReach(ctx, t, f, created.ID, read(ctx, t, f, created.ID).SecurityGroups, "")
		}},
	{name: "two servers with public addresses: they have different ones", needs: withPublic,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			var addresses []string
			for range 2 {
				created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("public"), NetworkID: r.NetworkID})
				addresses = append(addresses, mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPublicAddress(f.External)}).PublicAddress)
			}
			if addresses[0] == "" || addresses[0] == addresses[1] {
				t.Errorf("addresses %q, want two", addresses)
			}
		}},
	{name: "a public address of a network that does not exist: Rejected, and the server has none", needs: withPublic,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("private"), NetworkID: r.NetworkID})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetPublicAddress("nowhere")})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantReach(ctx, t, f, created.ID, read(ctx, t, f, created.ID).SecurityGroups, "")
		}},
	{name: "a deletion of a server with a public address: the address is free again", needs: withPublic,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			r := f.Reach(t)
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("public"), NetworkID: r.NetworkID})
			mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPublicAddress(f.External)})
			mustDelete(ctx, t, f, created.ID)
			if f.PublicAddresses != nil {
				if left := f.PublicAddresses(t); len(left) > 0 {
					t.Errorf("the cloud has the addresses %q, want none", left)
				}
			}
		}},
}

func read(ctx context.Context, t *testing.T, f Fixture, id string) cloud.Server {
	t.Helper()
	got, err := f.Client.GetServer(ctx, id)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	return got
}

// wantReach checks the groups and the public address of a server in a read and in the listing.
func wantReach(ctx context.Context, t *testing.T, f Fixture, id string, groups cloud.SecurityGroups, address string) {
	t.Helper()
	want := cloud.Server{SecurityGroups: groups, PublicAddress: address}
	reach := func(s cloud.Server) cloud.Server {
		return cloud.Server{SecurityGroups: s.SecurityGroups, PublicAddress: s.PublicAddress}
	}
	if diff := cmp.Diff(want, reach(read(ctx, t, f, id))); diff != "" {
		t.Errorf("GetServer (-want +got):\n%s", diff)
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id {
			if diff := cmp.Diff(want, reach(s)); diff != "" {
				t.Errorf("ListServers (-want +got):\n%s", diff)
			}
		}
	}
}

// wantAllowed checks the allowed addresses of a server in a read and in the listing.
func wantAllowed(ctx context.Context, t *testing.T, f Fixture, id string, want cloud.AllowedAddresses) {
	t.Helper()
	if got := read(ctx, t, f, id).AllowedAddresses; got != want {
		t.Errorf("GetServer: allowed addresses %q, want %q", got.List(), want.List())
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id && s.AllowedAddresses != want {
			t.Errorf("ListServers: allowed addresses %q, want %q", s.AllowedAddresses.List(), want.List())
		}
	}
}
