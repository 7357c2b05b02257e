package cloudtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// sink collects servers, or refuses them.
type sink struct {
	servers []cloud.Server
	begun   int
	refuse  *cloud.Error
}

func (s *sink) Begin() {
	s.begun++
	s.servers = []cloud.Server{}
}

func (s *sink) Take(server cloud.Server) error {
	server.Labels = maps.Clone(server.Labels)
	s.servers = append(s.servers, server)
	if s.refuse != nil {
		return s.refuse
	}
	return nil
}

var listCases = []testCase{
	{name: "no servers: an empty list", run: func(ctx context.Context, t *testing.T, f Fixture) {
		page, err := f.Client.ListServers(ctx, cloud.ListServers{})
		if err != nil {
			t.Fatalf("ListServers: %v", err)
		}
		if diff := cmp.Diff(cloud.ServerPage{Servers: []cloud.Server{}}, page); diff != "" {
			t.Errorf("ListServers (-want +got):\n%s", diff)
		}
	}},
	{name: "a limit, the cloud has no pages: every server on one page", lacks: []cloud.Capability{cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			want := createMany(ctx, t, f, 5)
			if diff := cmp.Diff(want, sortedIDs(listAll(ctx, t, f, cloud.ListServers{Limit: 2}))); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		}},
	{name: "several pages: each server once", needs: []cloud.Capability{cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			want := createMany(ctx, t, f, 7)
			for _, limit := range []int{1, 3, 7, 1000} {
				if diff := cmp.Diff(want, sortedIDs(listAll(ctx, t, f, cloud.ListServers{Limit: limit}))); diff != "" {
					t.Errorf("limit %d (-want +got):\n%s", limit, diff)
				}
			}
		}},
	{name: "a page with a limit: no more servers than that, and a marker", needs: []cloud.Capability{cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			createMany(ctx, t, f, 3)
			page, err := f.Client.ListServers(ctx, cloud.ListServers{Limit: 2})
			if err != nil {
				t.Fatalf("ListServers: %v", err)
			}
			if len(page.Servers) != 2 || page.Next == "" {
				t.Errorf("ListServers: %d servers, next %q; want 2 and a marker", len(page.Servers), page.Next)
			}
		}},
	{name: "servers are streamed: those of the page", run: func(ctx context.Context, t *testing.T, f Fixture) {
		streamer, ok := f.Client.(cloud.ServerStreamer)
		if !ok {
			return // optional
		}
		createMany(ctx, t, f, 3)
		for _, opts := range []cloud.ListServers{{}, {Limit: 2}} {
			page, err := f.Client.ListServers(ctx, opts)
			if err != nil {
				t.Fatalf("ListServers: %v", err)
			}
			var to sink
			next, err := streamer.StreamServers(ctx, opts, &to)
			if diff := cmp.Diff(sortedIDs(page.Servers), sortedIDs(to.servers)); diff != "" || err != nil || to.begun != 1 {
				t.Errorf("StreamServers: %v, begun %d times (-ListServers +StreamServers):\n%s", err, to.begun, diff)
			}
			if (next == "") != (page.Next == "") {
				t.Errorf("StreamServers: next %q, ListServers: %q", next, page.Next)
			}
		}
		refused := &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "too many"}
		if _, err := streamer.StreamServers(ctx, cloud.ListServers{}, &sink{refuse: refused}); !errors.Is(err, refused) {
			t.Errorf("StreamServers: %v, want the error of the sink", err)
		}
	}},
	{name: "a limit out of bounds: Rejected", run: func(ctx context.Context, t *testing.T, f Fixture) {
		for _, limit := range []int{-1, 1001} {
			_, err := f.Client.ListServers(ctx, cloud.ListServers{Limit: limit})
			wantKind(t, "ListServers", err, cloud.Rejected, false)
		}
	}},
	{name: "labels: are listed as they were given", needs: []cloud.Capability{cloud.Labels},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("labelled"), Labels: oddLabels})
			for what, servers := range map[string][]cloud.Server{"the answer": {created}, "the listing": listAll(ctx, t, f, cloud.ListServers{})} {
				for _, s := range servers {
					if diff := cmp.Diff(oddLabels, s.Labels); diff != "" {
						t.Errorf("labels in %s (-want +got):\n%s", what, diff)
					}
				}
			}
		}},
	{name: "a filter by several labels: the servers that carry all of them", filters: true, needs: []cloud.Capability{cloud.Labels},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			both := oddLabels
			mine := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("mine"), Labels: both})
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("half"), Labels: map[string]string{"odd": "a=b&c d/é"}})
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("bare")})
			got := ids(listAll(ctx, t, f, cloud.ListServers{Limit: 1, Labels: both}))
			if diff := cmp.Diff([]string{mine.ID}, got); diff != "" {
				t.Errorf("filtered (-want +got):\n%s", diff)
			}
		}},
}

// oddLabels have characters that mean something in a query.
var oddLabels = map[string]string{"samplecontroller.k8s.io/uid": "1", "odd": "a=b&c d/é"}

func createMany(ctx context.Context, t *testing.T, f Fixture, n int) []string {
	t.Helper()
	out := make([]string, n)
	for i := range out {
		out[i] = mustCreate(ctx, t, f, cloud.CreateServer{Name: name("many")}).ID
	}
	slices.Sort(out)
	return out
}

func sortedIDs(servers []cloud.Server) []string {
	out := ids(servers)
	slices.Sort(out)
	return out
}
