package cloudtest

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

var withRevert = []cloud.Capability{cloud.Snapshots, cloud.Revert}

var revertCases = []testCase{
	{name: "a revert: the server has the size of the snapshot, and the snapshots stay", needs: append([]cloud.Capability{cloud.Resize, cloud.Sizing}, withRevert...),
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			c, server, snapshot := mustFreeze(ctx, t, f)
			server = mustResize(ctx, t, f, server.ID, cloud.Update{cloud.SetCPU(4)})
			req := cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID, IdempotencyKey: name("key")}
			if got := mustRevert(ctx, t, f, c, req); got.ID != server.ID || !f.NoRestore && got.CPU != 1 {
				t.Errorf("the server after the revert: %+v, want %s with 1 core", got, server.ID)
			}
			wantSnapshots(ctx, t, f.snapshots(t), server.ID, snapshot)
		}},
	{name: "a revert, sent again with its key: one revert", needs: append([]cloud.Capability{cloud.Idempotency, cloud.Resize, cloud.Sizing}, withRevert...),
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			c, server, snapshot := mustFreeze(ctx, t, f)
			req := cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID, IdempotencyKey: name("key")}
			mustRevert(ctx, t, f, c, req)
			mustResize(ctx, t, f, server.ID, cloud.Update{cloud.SetCPU(4)})
			req.Again = true
			if _, err := c.RevertServer(ctx, req); err != nil {
				wantKind(t, "RevertServer again", err, cloud.Unsupported, false)
			}
			got, err := f.Client.GetServer(ctx, server.ID)
			if err != nil || got.CPU != 4 {
				t.Errorf("the server after the second call: %+v, %v, want its 4 cores kept", got, err)
			}
		}},
	{name: "a revert to a snapshot that does not exist: NotFound", needs: withRevert,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			c, server, snapshot := mustFreeze(ctx, t, f)
			if err := f.snapshots(t).DeleteSnapshot(ctx, server.ID, snapshot.ID); err != nil {
				t.Fatalf("DeleteSnapshot: %v", err)
			}
			_, err := c.RevertServer(ctx, cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID})
			wantGone(t, f, "RevertServer", err)
			mustDelete(ctx, t, f, server.ID)
			_, err = c.RevertServer(ctx, cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID})
			wantGone(t, f, "RevertServer of a server that is gone", err)
		}},
	{name: "a revert with the answer lost: Uncertain, and sent again only with a key that the cloud honours", needs: withRevert, losing: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			c, server, snapshot := mustFreeze(ctx, t, f)
			req := cloud.RevertServer{ServerID: server.ID, SnapshotID: snapshot.ID}
			restore := f.LoseAnswer(t, OpRevert)
			_, err := c.RevertServer(ctx, req)
			restore()
			wantKind(t, "RevertServer", err, cloud.Unavailable, true)
			req.Again = true
			unsent(t, f, "RevertServer again, without a key", func() error {
				_, err := c.RevertServer(ctx, req)
				return err
			})
		}},
}

// reverter returns the client of the fixture, which the capability promises to have the call.
func (f Fixture) reverter(t *testing.T) cloud.Reverter {
	t.Helper()
	c, ok := f.Client.(cloud.Reverter)
	if !ok {
		t.Fatalf("%T has the capability revert, and is no cloud.Reverter", f.Client)
	}
	return c
}

// mustFreeze creates a server with one core, and a snapshot of it.
func mustFreeze(ctx context.Context, t *testing.T, f Fixture) (cloud.Reverter, cloud.Server, cloud.Snapshot) {
	t.Helper()
	req := cloud.CreateServer{Name: name("reverted")}
	if f.Has.Has(cloud.Sizing) {
		req.CPU, req.MemoryMiB = 1, 2<<10
	}
	server := mustCreate(ctx, t, f, req)
	return f.reverter(t), server, mustSnapshot(ctx, t, f.snapshots(t), cloud.CreateSnapshot{ServerID: server.ID, Name: name("before")})
}

func mustRevert(ctx context.Context, t *testing.T, f Fixture, c cloud.Reverter, req cloud.RevertServer) cloud.Server {
	t.Helper()
	result, err := c.RevertServer(ctx, req)
	if err != nil {
		t.Fatalf("RevertServer(%+v): %v", req, err)
	}
	return serverOf(ctx, t, f, result)
}
