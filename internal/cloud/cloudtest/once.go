package cloudtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// inProgress reports whether a cloud refused a call because the first one with its key is in progress.
func inProgress(err error) bool { return cloud.Is(err, cloud.Busy) && cloud.Uncertain(err) }

var onceCases = []testCase{
	{name: "the same key and request twice: the same server", needs: []cloud.Capability{cloud.Idempotency, cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("once"), CPU: 2, IdempotencyKey: name("key")}
			first := mustCreate(ctx, t, f, req)
			second := mustCreate(ctx, t, f, req)
			sameServer(t, "second CreateServer", first, second)
			wantServers(ctx, t, f, first.ID)
		}},
	{name: "one key sent concurrently: one server", needs: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("race"), IdempotencyKey: name("key")}
			var results [8]cloud.Result
			var got [8]cloud.Server
			var errs [8]error
			var all sync.WaitGroup
			for i := range got {
				all.Go(func() { results[i], errs[i] = f.Client.CreateServer(ctx, req) })
			}
			all.Wait()
			last := mustCreate(ctx, t, f, req)
			for i := range got {
				if inProgress(errs[i]) {
					continue
				}
				if errs[i] == nil {
					got[i] = serverOf(ctx, t, f, results[i])
				}
				if errs[i] != nil || got[i].ID != last.ID {
					t.Errorf("CreateServer %d: id %q, %v; want id %q", i, got[i].ID, errs[i], last.ID)
				}
			}
			wantServers(ctx, t, f, last.ID)
		}},
	{name: "a key with another request: KeyReused", needs: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			key := name("key")
			first := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("mine"), IdempotencyKey: key})
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("other"), IdempotencyKey: key})
			wantKind(t, "CreateServer", err, cloud.KeyReused, false)
			wantServers(ctx, t, f, first.ID)
		}},
	{name: "a second server of a name, names are unique: Taken", needs: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("unique")}
			first := mustCreate(ctx, t, f, req)
			wantTaken(ctx, t, f, req)
			wantServers(ctx, t, f, first.ID)
		}},
	{name: "a second server of a name, names are not unique: another server", lacks: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("shared")}
			first, second := mustCreate(ctx, t, f, req), mustCreate(ctx, t, f, req)
			if first.ID == second.ID {
				t.Errorf("both have the id %s", first.ID)
			}
		}},
	{name: "a key that the cloud does not honor: is ignored", lacks: []cloud.Capability{cloud.Idempotency, cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("unkeyed"), IdempotencyKey: name("key")}
			first, second := mustCreate(ctx, t, f, req), mustCreate(ctx, t, f, req)
			if first.ID == second.ID {
				t.Errorf("both have the id %s", first.ID)
			}
		}},
	{name: "the answer of a create is lost, without keys: uncertain, and one server", losing: true, lacks: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			restore := f.LoseAnswer(t, OpCreateServer)
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("lost"), IdempotencyKey: name("key")})
			restore()
			wantKind(t, "CreateServer", err, cloud.Unavailable, true)
			if got := listAll(ctx, t, f, cloud.ListServers{}); len(got) != 1 {
				t.Errorf("servers %v, want one", ids(got))
			}
		}},
	{name: "the answer of a create is lost, with a key: uncertain, and a retry returns the one server", losing: true, needs: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("lost"), IdempotencyKey: name("key")}
			restore := f.LoseAnswer(t, OpCreateServer)
			_, err := f.Client.CreateServer(ctx, req)
			restore()
			wantKind(t, "CreateServer", err, cloud.Unavailable, true)
			wantServers(ctx, t, f, mustCreate(ctx, t, f, req).ID)
		}},
	{name: "the answer of a deletion is lost: the server is gone", losing: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("gone")})
			restore := f.LoseAnswer(t, OpDeleteServer)
			_, err := f.Client.DeleteServer(ctx, created.ID)
			restore()
			if !cloud.Uncertain(err) && !cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven) {
				t.Errorf("DeleteServer: %v, want it uncertain, or NotFound from a second try", err)
			}
			mustVanish(ctx, t, f)
		}},
}

// mustVanish waits until there are no servers. A cloud may work on a deletion whose answer was lost.
func mustVanish(ctx context.Context, t *testing.T, f Fixture) {
	t.Helper()
	for pause := time.NewTicker(f.pollTime()); ; {
		left := listAll(ctx, t, f, cloud.ListServers{})
		if len(left) == 0 {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("servers %v are left", ids(left))
		}
	}
}

// wantServers checks which servers there are.
func wantServers(ctx context.Context, t *testing.T, f Fixture, want ...string) {
	t.Helper()
	got := ids(listAll(ctx, t, f, cloud.ListServers{}))
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

// wantTaken checks that the name of a create is taken. A cloud may find that out after
// it accepted the create.
func wantTaken(ctx context.Context, t *testing.T, f Fixture, req cloud.CreateServer) {
	t.Helper()
	result, err := f.Client.CreateServer(ctx, req)
	if err == nil && result.Operation != "" {
		if fault := mustEnd(ctx, t, f, result.Operation).Err; fault != nil {
			err = fault
		}
	}
	wantKind(t, "second CreateServer", err, cloud.Taken, false)
}
