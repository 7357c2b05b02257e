package cloudtest

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

var (
	withRootDisk      = []cloud.Capability{cloud.WithRootDisk}
	withRootDiskTypes = []cloud.Capability{cloud.WithRootDisk, cloud.DiskTypes}
)

var rootDiskCases = []testCase{
	{name: "a create with the size of the root disk: a read and the listing show it", needs: withRootDisk,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("rooted"), RootDisk: cloud.RootDisk{SizeMiB: f.RootDisk}})
			wantRootDisk(ctx, t, f, created.ID, cloud.RootDisk{SizeMiB: f.RootDisk})
		}},
	{name: "a larger root disk: a read and the listing show its size, also when it is sent again", needs: withRootDisk,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("grown"), RootDisk: cloud.RootDisk{SizeMiB: f.RootDisk}})
			larger := f.RootDisk + 1024
			for range 2 {
				got := mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetRootDisk(larger)})
				if size := got.RootDisk.SizeMiB; size != larger {
					t.Errorf("UpdateServer: a root disk of %d MiB, want %d", size, larger)
				}
			}
			wantRootDisk(ctx, t, f, created.ID, cloud.RootDisk{SizeMiB: larger})
		}},
	{name: "a change to a smaller root disk: Rejected, and it keeps its size", needs: withRootDisk,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("shrunk"), RootDisk: cloud.RootDisk{SizeMiB: f.RootDisk}})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetRootDisk(f.RootDisk - 1024)})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantRootDisk(ctx, t, f, created.ID, cloud.RootDisk{SizeMiB: f.RootDisk})
		}},
	{name: "a create with a root disk that is smaller than that of the template: Rejected, and no server", needs: withRootDisk, small: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			err := createError(ctx, t, f, cloud.CreateServer{Name: name("small"), RootDisk: cloud.RootDisk{SizeMiB: f.SmallRootDisk}})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "a create with the type of the root disk: the server has no other one", needs: withRootDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			want := cloud.RootDisk{SizeMiB: f.RootDisk, Type: f.DiskTypes[0]}
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("typed"), RootDisk: want})
			wantRootDisk(ctx, t, f, created.ID, want)
			other := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("typed"), RootDisk: cloud.RootDisk{Type: f.DiskTypes[1]}})
			if of := read(ctx, t, f, other.ID).RootDisk.Type; of != "" && of != f.DiskTypes[1] {
				t.Errorf("GetServer: a root disk of the type %q, want %q", of, f.DiskTypes[1])
			}
		}},
	{name: "a create with a type of the root disk that does not exist: Rejected, and no server", needs: withRootDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			err := createError(ctx, t, f, cloud.CreateServer{Name: name("untyped"), RootDisk: cloud.RootDisk{SizeMiB: f.RootDisk, Type: noType}})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
}

// wantRootDisk checks the root disk of a server in a read and in the listing. A cloud may show its type, and no other one
// than the one that was asked for.
func wantRootDisk(ctx context.Context, t *testing.T, f Fixture, id string, want cloud.RootDisk) {
	t.Helper()
	same := func(got cloud.RootDisk) bool {
		return got.SizeMiB == want.SizeMiB && (want.Type == "" || got.Type == "" || got.Type == want.Type)
	}
	if got := read(ctx, t, f, id).RootDisk; !same(got) {
		t.Errorf("GetServer: root disk %+v, want %+v", got, want)
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id && !same(s.RootDisk) {
			t.Errorf("ListServers: root disk %+v, want %+v", s.RootDisk, want)
		}
	}
}
