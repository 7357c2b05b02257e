package cloudtest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

var hostCases = []testCase{
	{name: "a listing of hosts: every host with its properties", needs: []cloud.Capability{cloud.Hosts},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			got := mustListHosts(ctx, t, f)
			byName := cmpopts.SortSlices(func(a, b cloud.Host) bool { return a.Name < b.Name })
			if diff := cmp.Diff(f.Hosts, got, byName); diff != "" {
				t.Errorf("ListHosts (-want +got):\n%s", diff)
			}
		}},
	{name: "a server: runs on one of the hosts", needs: []cloud.Capability{cloud.Hosts},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("hosted")})
			hosts := mustListHosts(ctx, t, f)
			if !slices.ContainsFunc(hosts, func(h cloud.Host) bool { return h.Name == created.Host }) {
				t.Errorf("the server is on host %q, which is not among %v", created.Host, hosts)
			}
		}},
	{name: "a listing of hosts, the cloud lacks them: Unsupported, and not sent", lacks: []cloud.Capability{cloud.Hosts},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			unsent(t, f, "ListHosts", func() error {
				_, err := f.Client.ListHosts(ctx)
				return err
			})
		}},
}

func mustListHosts(ctx context.Context, t *testing.T, f Fixture) []cloud.Host {
	t.Helper()
	hosts, err := f.Client.ListHosts(ctx)
	if err != nil {
		t.Fatalf("ListHosts: %v", err)
	}
	return hosts
}
