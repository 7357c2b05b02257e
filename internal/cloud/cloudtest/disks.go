package cloudtest

import (
	"context"
	"slices"
	"testing"

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
				if want := cloud.Disks("data=3072 logs=1024 more=2048"); !shownAs(want, got.Disks) {
					t.Errorf("UpdateServer: disks %q, want %q", got.Disks, want)
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

// noType is a type of disks that no cloud has.
const noType = "nowhere"

// typed returns a disk of each of these types, with the names a, b and so on, and 1 GiB.
func typed(types ...string) cloud.Disks {
	var list []cloud.Disk
	for i, of := range types {
		list = append(list, cloud.Disk{Name: string(rune('a' + i)), SizeMiB: 1024, Type: of})
	}
	disks, _ := cloud.NewDisks(list)
	return disks
}

var withDiskTypes = []cloud.Capability{cloud.WithDisks, cloud.DiskTypes}

var diskTypeCases = []testCase{
	{name: "a create with disks of types: a read and the listing show the disks, and no other types", needs: withDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			want := typed(f.DiskTypes[0], f.DiskTypes[1])
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("typed"), Disks: want})
			wantDisks(ctx, t, f, created.ID, want)
		}},
	{name: "a new disk with a type, and another type for a disk that grows: the disk that grows keeps its type", needs: withDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("retyped"), Disks: typed(f.DiskTypes[0])})
			add := cloud.SetDisk{Name: "b", SizeMiB: 1024, Type: f.DiskTypes[1]}
			mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetDisk{Name: "a", SizeMiB: 2048, Type: f.DiskTypes[1]}, add})
			wantDisks(ctx, t, f, created.ID, typed(f.DiskTypes[0], f.DiskTypes[1]).With("a=2048"))
		}},
	{name: "a create with a disk of a type that does not exist: Rejected, and no server", needs: withDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			err := createError(ctx, t, f, cloud.CreateServer{Name: name("untyped"), Disks: typed(f.DiskTypes[0], noType)})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
	{name: "a new disk of a type that does not exist: Rejected, and no disk changes", needs: withDiskTypes,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept"), Disks: typed(f.DiskTypes[0])})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetDisk{Name: "a", SizeMiB: 2048}, cloud.SetDisk{Name: "b", SizeMiB: 1024, Type: noType}})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantDisks(ctx, t, f, created.ID, typed(f.DiskTypes[0]))
		}},
}

var withKeptDisks = []cloud.Capability{cloud.WithDisks, cloud.KeepDisks}

var keepDiskCases = []testCase{
	{name: "a create with a disk that is kept: a read and the listing show that of this disk alone", needs: withKeptDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("keeping"), Disks: "data=1024==keep logs=1024"})
			wantDisks(ctx, t, f, created.ID, "data=1024==keep logs=1024")
		}},
	{name: "a change of whether a disk is kept: shown, also when it is sent again, and other disks stay as they are", needs: withKeptDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("changing"), Disks: "data=1024 logs=1024==keep"})
			for _, keep := range []bool{true, true, false, false} {
				want := cloud.Disks("data=1024 logs=1024==keep").Keeping("data", keep)
				got := mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetDiskKeep{Name: "data", Keep: keep}})
				if !shownAs(want, got.Disks) {
					t.Errorf("UpdateServer: disks %q, want %q", got.Disks, want)
				}
				wantDisks(ctx, t, f, created.ID, want)
			}
		}},
	{name: "a new disk that is kept, and one that is kept and grows: both are kept", needs: withKeptDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("growing"), Disks: "data=1024==keep"})
			mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}, cloud.SetDisk{Name: "logs", SizeMiB: 1024, Keep: true}})
			wantDisks(ctx, t, f, created.ID, "data=2048==keep logs=1024==keep")
		}},
	{name: "a change of a disk that the server does not have: Rejected, and no disk is made", needs: withKeptDisks,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("without"), Disks: "data=1024"})
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetDiskKeep{Name: "logs", Keep: true}})
			wantKind(t, "UpdateServer", err, cloud.Rejected, false)
			wantDisks(ctx, t, f, created.ID, "data=1024")
		}},
	{name: "a revert: disks that are kept stay, and are kept", needs: append(slices.Clone(withKeptDisks), cloud.Snapshots, cloud.Revert),
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("reverted")})
			mustResize(ctx, t, f, server.ID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}})
			snapshot := mustSnapshot(ctx, t, f.snapshots(t), cloud.CreateSnapshot{ServerID: server.ID, Name: name("before")})
			mustResize(ctx, t, f, server.ID, cloud.Update{cloud.SetDiskKeep{Name: "data", Keep: true}, cloud.SetDisk{Name: "logs", SizeMiB: 1024, Keep: true}})
			mustRevert(ctx, t, f, f.reverter(t), cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID})
			wantDisks(ctx, t, f, server.ID, "data=1024==keep logs=1024==keep")
		}},
	{name: "a deletion: the disks that are kept stay, and no others", needs: withKeptDisks, kept: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("leaving"), Disks: "a=1024==keep b=1024 c=1024==keep d=1024"})
			mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetDiskKeep{Name: "c", Keep: false}, cloud.SetDiskKeep{Name: "d", Keep: true}})
			mustDelete(ctx, t, f, created.ID)
			if got, want := f.KeptDisks(t, created.ID), []string{"a", "d"}; !slices.Equal(got, want) {
				t.Errorf("after the deletion, there are the disks %q, want %q", got, want)
			}
		}},
}

// shownAs reports whether a cloud shows these disks: their names and sizes, and their types or none. It may show the type
// of a disk that was created without one.
func shownAs(want, got cloud.Disks) bool {
	disks, shown := want.List(), got.List()
	return slices.EqualFunc(disks, shown, func(disk, shown cloud.Disk) bool {
		if disk.Type == "" || shown.Type == "" {
			disk.Type, shown.Type = "", ""
		}
		return disk == shown
	})
}

// wantDisks checks the disks of a server in a read and in the listing.
func wantDisks(ctx context.Context, t *testing.T, f Fixture, id string, want cloud.Disks) {
	t.Helper()
	got, err := f.Client.GetServer(ctx, id)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	if !shownAs(want, got.Disks) {
		t.Errorf("GetServer: disks %q, want %q", got.Disks, want)
	}
	for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
		if s.ID == id && !shownAs(want, s.Disks) {
			t.Errorf("ListServers: disks %q, want %q", s.Disks, want)
		}
	}
}
