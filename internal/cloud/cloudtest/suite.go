package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

// callTime bounds one test's calls. It only ends a test that hangs.
const callTime = 20 * time.Second

// Fixture is one fresh cloud and a client of it. The suite skips nothing: where
// an optional field is nil, what it is for is not among the subtests.
type Fixture struct {
	Client cloud.Client
	// Has is what the cloud can do, in truth.
	Has cloud.Capabilities
	// Prohibited is a name that the cloud refuses.
	Prohibited string
	// Sent tells how many requests reached the cloud so far, the client's own
	// and those about names, servers and networks alike.
	Sent func() int
	// Hosts are the cloud's; needed with the capability Hosts.
	Hosts []cloud.Host
	// LoseAnswer has the cloud do the next change of this method and path glob
	// ("POST /servers"), each time it is sent, and break the connection in place
	// of an answer, until the returned function is called.
	LoseAnswer func(t *testing.T, method, path string) (restore func())
}

// Run runs the suite. newCloud is called for each subtest and cleans up by t.
func Run(t *testing.T, newCloud func(t *testing.T) Fixture) {
	t.Helper()
	probe := newCloud(t)
	for _, c := range cases() {
		if !c.fits(probe) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newCloud(t)
			ctx, cancel := context.WithTimeout(t.Context(), callTime)
			defer cancel()
			// As in production, the cloud is asked what it can do before all else.
			if _, err := f.Client.Capabilities(ctx); err != nil {
				t.Fatalf("Capabilities: %v", err)
			}
			c.run(ctx, t, f)
		})
	}
}

// testCase is a subtest for the clouds that have all of needs and none of lacks.
type testCase struct {
	name         string
	needs, lacks []cloud.Capability
	// losing cases need Fixture.LoseAnswer.
	losing bool
	run    func(ctx context.Context, t *testing.T, f Fixture)
}

func (c testCase) fits(f Fixture) bool {
	for _, name := range c.needs {
		if !f.Has.Has(name) {
			return false
		}
	}
	if slices.ContainsFunc(c.lacks, f.Has.Has) {
		return false
	}
	return !c.losing || f.LoseAnswer != nil
}

func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{probeCases, lifeCases, onceCases, listCases, changeCases, networkCases, hostCases, refuseCases} {
		all = append(all, group...)
	}
	return all
}

var serial atomic.Int64

// name returns a name that no other test uses.
func name(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

func mustCreate(ctx context.Context, t *testing.T, f Fixture, req cloud.CreateServer) cloud.Server {
	t.Helper()
	server, err := f.Client.CreateServer(ctx, req)
	if err != nil {
		t.Fatalf("CreateServer(%+v): %v", req, err)
	}
	return server
}

// listAll follows the markers to the last page. It fails the test rather than
// follow them forever.
func listAll(ctx context.Context, t *testing.T, f Fixture, opts cloud.ListServers) []cloud.Server {
	t.Helper()
	var all []cloud.Server
	for range 1000 {
		page, err := f.Client.ListServers(ctx, opts)
		if err != nil {
			t.Fatalf("ListServers(%+v): %v", opts, err)
		}
		all = append(all, page.Servers...)
		if page.Next == "" {
			return all
		}
		opts.Marker = page.Next
	}
	t.Fatal("ListServers: the markers never end")
	return nil
}

func ids(servers []cloud.Server) []string {
	out := make([]string, 0, len(servers))
	for _, s := range servers {
		out = append(out, s.ID)
	}
	return out
}

// wantKind checks how a call ended and that the contract's promises about
// errors hold: *cloud.Error alone, with an Op, and certain or not.
func wantKind(t *testing.T, what string, err error, kind cloud.Kind, uncertain bool) {
	t.Helper()
	type outcome struct {
		Kind      cloud.Kind
		Uncertain bool
		HasOp     bool
	}
	got := outcome{}
	if e, ok := errors.AsType[*cloud.Error](err); ok {
		got = outcome{e.Kind, e.Uncertain, e.Op != ""}
	}
	want := outcome{kind, uncertain, kind != ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
}

// sameServer compares what a cloud may not change by itself; utilisation, times
// and a build in progress may differ between two looks.
func sameServer(t *testing.T, what string, want, got cloud.Server) {
	t.Helper()
	ignore := cmpopts.IgnoreFields(cloud.Server{}, "CPUUtilization", "CPUUsageMHz", "MemoryUsageMB", "UpdatedAt", "State")
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// unsent checks that the call is refused and that nothing reached the cloud.
func unsent(t *testing.T, f Fixture, what string, call func() error) {
	t.Helper()
	before := 0
	if f.Sent != nil {
		before = f.Sent()
	}
	wantKind(t, what, call(), cloud.Unsupported, false)
	if f.Sent == nil {
		return
	}
	if after := f.Sent(); after != before {
		t.Errorf("%s: %d requests reached the cloud, want none", what, after-before)
	}
}
