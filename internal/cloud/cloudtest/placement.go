package cloudtest

import (
	"context"
	"slices"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// unknownZone is a zone that no cloud has.
const unknownZone = "nowhere"

var placementCases = []testCase{
	{name: "a create in a zone: a read and the listing show it", needs: []cloud.Capability{cloud.Zones},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("zoned"), Zone: f.Zone})
			wantZone(ctx, t, f, created.ID)
		}},
	{name: "a create in a zone that does not exist: Rejected, and no server", needs: []cloud.Capability{cloud.Zones},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("nowhere"), Zone: unknownZone})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "servers with one required anti-affinity: run on different hosts", needs: []cloud.Capability{cloud.WithAntiAffinity, cloud.Hosts},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			var used []string
			for _, host := range f.Hosts {
				created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("apart"), AntiAffinity: cloud.AntiAffinity{Group: "c/ns/g", Required: true}})
				if slices.Contains(used, created.Host) {
					t.Errorf("two servers of the group run on host %q; one of the hosts is %q", created.Host, host.Name)
				}
				used = append(used, created.Host)
			}
			err := createError(ctx, t, f, cloud.CreateServer{Name: name("surplus"), AntiAffinity: cloud.AntiAffinity{Group: "c/ns/g", Required: true}})
			wantKind(t, "CreateServer, no host is left", err, cloud.NoHost, false)
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("other"), AntiAffinity: cloud.AntiAffinity{Group: "c/ns/h", Required: true}})
		}},
	{name: "servers with one preferred anti-affinity: the surplus one is created, too", needs: []cloud.Capability{cloud.WithAntiAffinity, cloud.Hosts},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			used := map[string]bool{}
			for range len(f.Hosts) + 1 {
				used[mustCreate(ctx, t, f, cloud.CreateServer{Name: name("spread"), AntiAffinity: cloud.AntiAffinity{Group: "c/ns/g"}}).Host] = true
			}
			if len(used) != len(f.Hosts) {
				t.Errorf("the servers run on %d hosts, want all %d", len(used), len(f.Hosts))
			}
		}},
}

// wantZone checks that a read and the listing show the zone of the fixture.
func wantZone(ctx context.Context, t *testing.T, f Fixture, id string) {
	t.Helper()
	got, err := f.Client.GetServer(ctx, id)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	if got.Zone != f.Zone {
		t.Errorf("GetServer: zone %q, want %q", got.Zone, f.Zone)
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id && s.Zone != f.Zone {
			t.Errorf("ListServers: zone %q, want %q", s.Zone, f.Zone)
		}
	}
}
