package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var withDisks = []cloud.Capability{cloud.WithDisks}

// tooLarge are 1 EiB, in MiB.
const tooLarge = cloud.Disks("data=1099511627776")

var diskCases = []testCase{
	{name: "a create with disks: a read and the listing show them", needs: withDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("stored"), Disks: "data=2048 logs=1024"})
			wantDisks(ctx, t, f, created.ID, "data=2048 logs=1024")
		}},
	{name: "a change of disks: they grow or are added, and others stay, also when it is sent again", needs: withDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("filled"), Disks: "data=1024 logs=1024"})
			for range 2 {
				got := mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 3072}, cloud.SetDisk{Name: "more", SizeMiB: 2048}})
				if diff := cmp.Diff(cloud.Disks("data=3072 logs=1024 more=2048"), got.Disks); diff != "" {
					t.Errorf("UpdateServer (-want +got):\n%s", diff)
				}
			}
			wantDisks(ctx, t, f, created.ID, "data=3072 logs=1024 more=2048")
		}},
	{name: "a change to a smaller disk: Rejected, and no disk changes", needs: withDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("shrunk"), Disks: "data=2048 logs=1024"})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}, cloud.SetDisk{Name: "logs", SizeMiB: 2048}})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantDisks(ctx, t, f, created.ID, "data=2048 logs=1024")
		}},
	{name: "a disk that is too large: Rejected, and no server", needs: withDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("huge"), Disks: tooLarge})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
}

// wantDisks checks the disks of a server in a read and in the listing.
func wantDisks(ctx context.Context, t *testing.T, f Fixture, id string, want cloud.Disks) {
	t.Helper()
	got, err := f.Client.GetServer(ctx, id)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	if diff := cmp.Diff(want, got.Disks); diff != "" {
		t.Errorf("GetServer: disks (-want +got):\n%s", diff)
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id && s.Disks != want {
			t.Errorf("ListServers: disks %q, want %q", s.Disks, want)
		}
	}
}
