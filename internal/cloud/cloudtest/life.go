package cloudtest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const nowhere = "00000000-0000-4000-8000-000000000000"

var lifeCases = []testCase{
	{name: "a server: is created, found, listed and deleted", run: func(ctx context.Context, t *testing.T, f Fixture) {
		created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("life")})
		got, err := f.Client.GetServer(ctx, created.ID)
		if err != nil {
			t.Fatalf("GetServer: %v", err)
		}
		sameServer(t, "GetServer", created, got)
		listed := listAll(ctx, t, f, cloud.ListServers{})
		at := slices.IndexFunc(listed, func(s cloud.Server) bool { return s.ID == created.ID })
		if at < 0 {
			t.Fatalf("ListServers: %s is not in %v", created.ID, ids(listed))
		}
		sameServer(t, "ListServers", created, listed[at])
		mustDelete(ctx, t, f, created.ID)
		_, err = f.Client.GetServer(ctx, created.ID)
		wantGone(t, f, "GetServer after DeleteServer", err)
		_, err = f.Client.DeleteServer(ctx, created.ID)
		wantGone(t, f, "second DeleteServer", err)
	}},
	{name: "a server that does not exist: NotFound from every call", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.GetServer(ctx, nowhere)
		wantGone(t, f, "GetServer", err)
		_, err = f.Client.ServerStatus(ctx, nowhere)
		wantGone(t, f, "ServerStatus", err)
		_, err = f.Client.DeleteServer(ctx, nowhere)
		wantGone(t, f, "DeleteServer", err)
	}},
	{name: "an id that is a path: NotFound, and no other server is affected", run: func(ctx context.Context, t *testing.T, f Fixture) {
		kept := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept")})
		for _, id := range []string{"..", ".", "../servers", kept.ID + "/", kept.ID + "/..", "x/../" + kept.ID, "?" + kept.ID, kept.ID + "#"} {
			_, err := f.Client.GetServer(ctx, id)
			wantGone(t, f, "GetServer("+id+")", err)
			_, err = f.Client.DeleteServer(ctx, id)
			wantGone(t, f, "DeleteServer("+id+")", err)
		}
		if _, err := f.Client.GetServer(ctx, kept.ID); err != nil {
			t.Errorf("GetServer(%s): %v", kept.ID, err)
		}
	}},
	{name: "an empty id: Rejected", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.GetServer(ctx, "")
		wantKind(t, "GetServer", err, cloud.Rejected, false)
		_, err = f.Client.DeleteServer(ctx, "")
		wantKind(t, "DeleteServer", err, cloud.Rejected, false)
	}},
	{name: "the status of a server: a percentage", run: func(ctx context.Context, t *testing.T, f Fixture) {
		created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("busy")})
		status, err := f.Client.ServerStatus(ctx, created.ID)
		if err != nil {
			t.Fatalf("ServerStatus: %v", err)
		}
		if use := status.CPUUtilization; use != nil && (*use < 0 || *use > 100) {
			t.Errorf("ServerStatus: %d%%, want 0-100", *use)
		}
	}},
	{name: "a name in capitals: the id of the answer is the server's, whatever its name has become", run: func(ctx context.Context, t *testing.T, f Fixture) {
		created := mustCreate(ctx, t, f, cloud.CreateServer{Name: strings.ToUpper(name("loud"))})
		got, err := f.Client.GetServer(ctx, created.ID)
		if err != nil {
			t.Fatalf("GetServer: %v", err)
		}
		sameServer(t, "GetServer", created, got)
		wantServers(ctx, t, f, created.ID)
	}},
	{name: "a name in any script: is returned as it was given", oddNames: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, odd := range f.names() {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: odd})
			got, err := f.Client.GetServer(ctx, created.ID)
			if err != nil {
				t.Fatalf("GetServer(%s): %v", created.ID, err)
			}
			if diff := cmp.Diff(odd, got.Name); diff != "" {
				t.Errorf("name (-want +got):\n%s", diff)
			}
		}
	}},
	{name: "a create with a size and a template: the server has them", needs: []cloud.Capability{cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("sized"), CPU: 3, MemoryMiB: 5 << 10, Template: "small"}
			created := mustCreate(ctx, t, f, req)
			got := cloud.CreateServer{Name: created.Name, CPU: created.CPU, MemoryMiB: created.MemoryMiB, Template: created.Image.Name}
			if diff := cmp.Diff(req, got); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
		}},
	{name: "a create with a folder: the server is in it", needs: []cloud.Capability{cloud.Folders},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("filed"), Folder: "team-a"})
			if diff := cmp.Diff("team-a", created.Folder); diff != "" {
				t.Errorf("folder (-want +got):\n%s", diff)
			}
		}},
	{name: "a listing, the cloud has bulk status: each server has its utilization", needs: []cloud.Capability{cloud.BulkStatus},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("measured")})
			for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
				if s.CPUUtilization == nil {
					t.Errorf("server %s has no utilisation", s.ID)
				}
			}
		}},
	{name: "a create with a prohibited name: Prohibited, and no server", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: f.Prohibited})
		wantProhibited(t, f, "CreateServer", err)
		if got := listAll(ctx, t, f, cloud.ListServers{}); len(got) != 0 {
			t.Errorf("ListServers: %v, want none", ids(got))
		}
	}},
}
