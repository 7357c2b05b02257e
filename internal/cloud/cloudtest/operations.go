package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var operationCases = []testCase{
	{name: "an operation that does not exist: NotFound", needs: []cloud.Capability{cloud.Operations}, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, id := range []string{nowhere, "..", "../servers"} {
			_, err := f.Client.GetOperation(ctx, id)
			wantGone(t, f, "GetOperation("+id+")", err)
		}
	}},
	{name: "an empty id of an operation: Rejected", needs: []cloud.Capability{cloud.Operations}, run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.GetOperation(ctx, "")
		wantKind(t, "GetOperation", err, cloud.Rejected, false)
	}},
	{name: "an operation, the cloud lacks operations: Unsupported, and not sent", lacks: []cloud.Capability{cloud.Operations},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			unsent(t, f, "GetOperation", func() error {
				_, err := f.Client.GetOperation(ctx, nowhere)
				return err
			})
		}},
	{name: "an operation whose caller has gone: makes the server", operating: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		f.Operating(t, true)
		caller, leave := context.WithCancel(ctx)
		result, err := f.Client.CreateServer(caller, cloud.CreateServer{Name: name("alone")})
		leave()
		if err != nil || result.Operation == "" {
			t.Fatalf("CreateServer: %+v, %v, want an operation", result, err)
		}
		created := serverOf(ctx, t, f, result)
		wantServers(ctx, t, f, created.ID)
	}},
	{name: "an operation that is done: is still known, with its server", operating: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		f.Operating(t, true)
		result, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("kept")})
		if err != nil {
			t.Fatalf("CreateServer: %v", err)
		}
		first, second := mustEnd(ctx, t, f, result.Operation), mustEnd(ctx, t, f, result.Operation)
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("GetOperation again (-want +got):\n%s", diff)
		}
		wantServers(ctx, t, f, first.ServerID)
	}},
	{name: "a second create of a name while the first runs, names are unique: Taken", operating: true, needs: []cloud.Capability{cloud.UniqueNames},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			f.Operating(t, true)
			req := cloud.CreateServer{Name: name("unique")}
			result, err := f.Client.CreateServer(ctx, req)
			if err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			wantTaken(ctx, t, f, req)
			wantServers(ctx, t, f, serverOf(ctx, t, f, result).ID)
		}},
	{name: "one key twice while the first create runs: one server", operating: true, needs: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			f.Operating(t, true)
			req := cloud.CreateServer{Name: name("once"), IdempotencyKey: name("key")}
			first, err := f.Client.CreateServer(ctx, req)
			if err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			second, err := f.Client.CreateServer(ctx, req)
			if err != nil {
				t.Fatalf("second CreateServer: %v", err)
			}
			a, b := serverOf(ctx, t, f, first), serverOf(ctx, t, f, second)
			sameServer(t, "second CreateServer", a, b)
			wantServers(ctx, t, f, a.ID)
		}},
	{name: "a create that fails later: the operation has the fault, and there is no server", operating: true, failing: true,
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			f.Operating(t, true)
			restore := f.FailOperations(t)
			result, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("failed"), IdempotencyKey: name("key")})
			if err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			operation := mustEnd(ctx, t, f, result.Operation)
			restore()
			if operation.Err == nil || operation.Err.Kind == "" || operation.Err.Detail == "" {
				t.Errorf("GetOperation: %+v, want an error with a kind and a reason", operation)
			}
			wantServers(ctx, t, f)
		}},
	{name: "a create that failed later, sent again with its key: makes the server", operating: true, failing: true, needs: []cloud.Capability{cloud.Idempotency},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			f.Operating(t, true)
			req := cloud.CreateServer{Name: name("again"), IdempotencyKey: name("key")}
			restore := f.FailOperations(t)
			result, err := f.Client.CreateServer(ctx, req)
			if err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			mustEnd(ctx, t, f, result.Operation)
			restore()
			wantServers(ctx, t, f, mustCreate(ctx, t, f, req).ID)
		}},
	{name: "a change and a deletion that take time: take effect", operating: true, needs: []cloud.Capability{cloud.Resize, cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("grown"), CPU: 1, MemoryMiB: 1 << 10})
			f.Operating(t, true)
			got, want := mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetCPU(4)}), created.Clone()
			want.CPU, want.Flavor = 4, got.Flavor
			sameServer(t, "UpdateServer", want, got)
			mustDelete(ctx, t, f, created.ID)
			_, err := f.Client.GetServer(ctx, created.ID)
			wantGone(t, f, "GetServer after DeleteServer", err)
		}},
}
