package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var withSnapshots = []cloud.Capability{cloud.Snapshots}

var snapshotCases = []testCase{
	{name: "snapshots: listed once created, until one is deleted", needs: withSnapshots,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept")}), f.snapshots(t)
			first := mustSnapshot(ctx, t, c, cloud.CreateSnapshot{ServerID: server.ID, Name: name("first"), Description: "before the upgrade"})
			second := mustSnapshot(ctx, t, c, cloud.CreateSnapshot{ServerID: server.ID, Name: name("second")})
			wantSnapshots(ctx, t, c, server.ID, first, second)
			if err := c.DeleteSnapshot(ctx, server.ID, first.ID); err != nil {
				t.Fatalf("DeleteSnapshot: %v", err)
			}
			wantSnapshots(ctx, t, c, server.ID, second)
			wantGone(t, f, "second DeleteSnapshot", c.DeleteSnapshot(ctx, server.ID, first.ID))
		}},
	{name: "snapshots, with memory or a quiesced guest: taken, or Unsupported, and not sent", needs: withSnapshots,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("more")}), f.snapshots(t)
			want := []cloud.Snapshot{}
			for _, req := range []cloud.CreateSnapshot{{Name: name("memory"), Memory: true}, {Name: name("quiesced"), Quiesce: time.Minute}} {
				req.ServerID = server.ID
				made, err := c.CreateSnapshot(ctx, req)
				switch {
				case cloud.Is(err, cloud.Unsupported):
					unsent(t, f, "CreateSnapshot of "+req.Name, func() error {
						_, err := c.CreateSnapshot(ctx, req)
						return err
					})
				case err != nil:
					t.Errorf("CreateSnapshot of %s: %v", req.Name, err)
				default:
					want = append(want, made)
				}
			}
			wantSnapshots(ctx, t, c, server.ID, want...)
		}},
	{name: "snapshots, of a server that does not exist: NotFound", needs: withSnapshots,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("gone")}), f.snapshots(t)
			made := mustSnapshot(ctx, t, c, cloud.CreateSnapshot{ServerID: server.ID, Name: name("snapshot")})
			mustDelete(ctx, t, f, server.ID)
			_, err := c.ListSnapshots(ctx, server.ID)
			wantGone(t, f, "ListSnapshots", err)
			_, err = c.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: server.ID, Name: name("late")})
			wantGone(t, f, "CreateSnapshot", err)
			wantGone(t, f, "DeleteSnapshot", c.DeleteSnapshot(ctx, server.ID, made.ID))
		}},
	{name: "snapshots, twice with one key: one snapshot", needs: []cloud.Capability{cloud.Snapshots, cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("keyed")}), f.snapshots(t)
			req := cloud.CreateSnapshot{ServerID: server.ID, Name: name("snapshot"), IdempotencyKey: name("key")}
			first := mustSnapshot(ctx, t, c, req)
			if diff := cmp.Diff(first, mustSnapshot(ctx, t, c, req)); diff != "" {
				t.Errorf("second CreateSnapshot (-first +second):\n%s", diff)
			}
			wantSnapshots(ctx, t, c, server.ID, first)
		}},
	{name: "snapshots, with the answer lost: Uncertain, and listed", needs: withSnapshots, losing: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			server, c := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("lost")}), f.snapshots(t)
			restore := f.LoseAnswer(t, OpCreateSnapshot)
			wanted := name("snapshot")
			_, err := c.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: server.ID, Name: wanted})
			restore()
			wantKind(t, "CreateSnapshot", err, cloud.Unavailable, true)
			found, err := c.ListSnapshots(ctx, server.ID)
			if err != nil || len(found) != 1 || found[0].Name != wanted {
				t.Errorf("ListSnapshots: %+v, %v, want the snapshot %s alone", found, err, wanted)
			}
		}},
}

// snapshots returns the client of the fixture, which the capability promises to have the calls.
func (f Fixture) snapshots(t *testing.T) cloud.Snapshotter {
	t.Helper()
	c, ok := f.Client.(cloud.Snapshotter)
	if !ok {
		t.Fatalf("%T has the capability snapshots, and is no cloud.Snapshotter", f.Client)
	}
	return c
}

func mustSnapshot(ctx context.Context, t *testing.T, c cloud.Snapshotter, req cloud.CreateSnapshot) cloud.Snapshot {
	t.Helper()
	made, err := c.CreateSnapshot(ctx, req)
	if err != nil {
		t.Fatalf("CreateSnapshot(%+v): %v", req, err)
	}
	if made.ID == "" || made.Name != req.Name {
		t.Fatalf("CreateSnapshot(%+v): %+v, want an id, and the name of the request", req, made)
	}
	return made
}

// wantSnapshots checks the snapshots of a server, oldest first. Their sizes may change.
func wantSnapshots(ctx context.Context, t *testing.T, c cloud.Snapshotter, server string, want ...cloud.Snapshot) {
	t.Helper()
	got, err := c.ListSnapshots(ctx, server)
	if err != nil {
		t.Fatalf("ListSnapshots: %v", err)
	}
	for i := range got {
		got[i].SizeBytes = 0
	}
	for i := range want {
		want[i].SizeBytes = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ListSnapshots (-want +got):\n%s", diff)
	}
}
