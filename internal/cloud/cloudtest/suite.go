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

// callTime bounds the calls of one case, so that a client that hangs fails it, unless
// the Fixture has a CallTime.
const callTime = 20 * time.Second

// pollTime is the time between two looks at an operation, unless the Fixture has a PollTime.
const pollTime = 20 * time.Millisecond

// Op is a call that changes a cloud.
type Op string

// The operations whose answers Fixture.LoseAnswer loses.
const (
	OpCreateServer  Op = "CreateServer"
	OpUpdateServer  Op = "UpdateServer"
	OpDeleteServer  Op = "DeleteServer"
	OpCreateNetwork Op = "CreateNetwork"
	OpUpdateNetwork Op = "UpdateNetwork"
	OpDeleteNetwork Op = "DeleteNetwork"
	// OpCreateSnapshot is needed with the capability Snapshots.
	OpCreateSnapshot Op = "CreateSnapshot"
	// OpRevert is needed with the capability Revert.
	OpRevert Op = "Revert"
)

// Fixture is one fresh cloud and a client of it. The suite skips no case: a case
// that needs an optional field which is nil is not a subtest.
type Fixture struct {
	Client cloud.Client
	// Has is what the cloud can do, whatever the client reports.
	Has cloud.Capabilities
	// Prohibited is a name that the cloud refuses.
	Prohibited string
	// Codes is set for a cloud whose refusals are problem documents with the codes
	// of the REST API, or whose API is as clear. Then NotFound and Prohibited are
	// required where NotFoundUnproven and Rejected would do as well.
	Codes bool
	// Filters is set for a cloud that honours label filters in listings, which the
	// operator does not use.
	Filters bool
	// PlainNames is set for a cloud that refuses or changes names with other
	// characters than lower-case letters, digits and hyphens.
	PlainNames bool
	// Names are names that the cloud allows; nil for a cloud that allows any name.
	Names []string
	// Sent returns how many calls have reached the cloud, of any kind. A call that
	// the client refuses does not reach it. Optional.
	Sent func() int
	// Hosts are the cloud's; needed with the capability Hosts.
	Hosts []cloud.Host
	// Zone is a zone of the cloud; needed with the capability Zones.
	Zone string
	// External is an external network of the cloud; needed with the capabilities Routers and PublicAddresses.
	External string
	// Flavors are two of the cloud; needed with the capability Flavors.
	Flavors [2]string
	// RootDisk is a size of a root disk in MiB that servers can be created with, and be grown from by 1 GiB; needed with
	// the capability WithRootDisk. SmallRootDisk is one that is smaller than the root disk of the template. Optional.
	RootDisk, SmallRootDisk int
	// DiskTypes are two types of disks of the cloud; needed with the capability DiskTypes.
	DiskTypes [2]string
	// KeptDisks returns the names of the disks that are left of a server that was deleted, in their order; with the capability
	// KeepDisks. Optional.
	KeptDisks func(t *testing.T, serverID string) []string
	// Reach prepares the cloud for servers with security groups and public addresses; needed with the capabilities
	// WithSecurityGroups and PublicAddresses.
	Reach func(t *testing.T) Reach
	// PublicAddresses returns the public addresses of all servers. Optional.
	PublicAddresses func(t *testing.T) []string
	// Networks are those that the cloud has; needed with the capability NetworkAttach.
	Networks []cloud.Network
	// Operating makes the cloud answer changes of servers with operations that take a
	// moment, or stops that. Needed with the capability Operations for the cases about
	// operations. Optional.
	Operating func(t *testing.T, on bool)
	// FailOperations makes operations that begin from now on fail, until restore is
	// called. Optional.
	FailOperations func(t *testing.T) (restore func())
	// HalfMake puts a network into the cloud that is half-made. Nil for clouds that make
	// networks in one call.
	HalfMake func(t *testing.T, name string)
	// HasUserData reports whether a server got this user data. Optional.
	HasUserData func(t *testing.T, id string, data cloud.UserData) bool
	// BootGuest makes the guest of a server report an address and send heartbeats. Nil for
	// clouds where it does so by itself.
	BootGuest func(t *testing.T, server cloud.Server)
	// BootConsole makes the console of a server print several lines. Nil for clouds where it does so by itself.
	BootConsole func(t *testing.T, server cloud.Server)
	// CallTime bounds the calls of one case, and PollTime is the time between two looks at an
	// operation, for clouds that are slow. Optional.
	CallTime, PollTime time.Duration
	// LoseAnswer makes the cloud carry out each call of op without an answer that
	// reaches the client, until restore is called. Optional.
	LoseAnswer func(t *testing.T, op Op) (restore func())
	// NoRestore is set for a cloud whose reverts do not change the size of a server.
	NoRestore bool
	// EndWatches ends the sessions or connections of the watches under way. Optional.
	EndWatches func(t *testing.T)
}

// Run runs the suite. newCloud is called for each subtest and cleans up with t.Cleanup.
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
			limit := f.CallTime
			if limit == 0 {
				limit = callTime
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			// The operator asks for the capabilities before it makes any other call.
			if _, err := f.Client.Capabilities(ctx); err != nil {
				t.Fatalf("Capabilities: %v", err)
			}
			c.run(ctx, t, f)
		})
	}
}

// testCase is a subtest for clouds that have all of needs and none of lacks.
type testCase struct {
	name         string
	needs, lacks []cloud.Capability
	// losing means that the case needs Fixture.LoseAnswer, and filters that it needs
	// Fixture.Filters. A case of odd names does without Fixture.PlainNames.
	losing, filters, oddNames bool
	// operating means that the case needs Fixture.Operating, and failing that it needs
	// Fixture.FailOperations.
	operating, failing bool
	// halves means that the case needs Fixture.HalfMake.
	halves bool
	// watching means that the case needs the capability Events, and ending that it needs
	// Fixture.EndWatches.
	watching, ending bool
	// data means that the case needs Fixture.HasUserData, small that it needs Fixture.SmallRootDisk, and kept that it needs
	// Fixture.KeptDisks.
	data, small, kept bool
	// create is what a case of refuseCases sends, if it is a create.
	create cloud.CreateServer
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
	if c.operating && (f.Operating == nil || !f.Has.Has(cloud.Operations)) || c.failing && f.FailOperations == nil || c.halves && f.HalfMake == nil || c.data && f.HasUserData == nil {
		return false
	}
	if c.small && f.SmallRootDisk == 0 || c.kept && f.KeptDisks == nil {
		return false
	}
	if c.watching && !f.Has.Has(cloud.Events) || c.ending && f.EndWatches == nil {
		return false
	}
	return (!c.losing || f.LoseAnswer != nil) && (!c.filters || f.Filters) && (!c.oddNames || !f.PlainNames)
}

func cases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{probeCases, lifeCases, onceCases, listCases, changeCases, networkCases, routerCases, dualStackCases, attachCases, hostCases, operationCases, watchCases, userDataCases, addressCases, snapshotCases, revertCases, diskCases, diskTypeCases, keepDiskCases, rootDiskCases, reachCases, placementCases, interfaceCases, flavorCases, consoleCases, refuseCases} {
		all = append(all, group...)
	}
	return all
}

// Needed returns the capabilities that cases need.
func Needed() cloud.Capabilities {
	var needed []cloud.Capability
	for _, c := range cases() {
		needed = append(needed, c.needs...)
		if c.watching {
			needed = append(needed, cloud.Events)
		}
	}
	return cloud.NewCapabilities(needed...)
}

var serial atomic.Int64

// name returns a name that no other case uses.
func name(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

// listAll follows the markers to the last page. It fails the test when there are
// more pages than any case needs.
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
	t.Fatal("ListServers: more than 1000 pages")
	return nil
}

func ids(servers []cloud.Server) []string {
	out := make([]string, 0, len(servers))
	for _, s := range servers {
		out = append(out, s.ID)
	}
	return out
}

// wantKind checks that a call ended with an error of this kind, which is a
// *cloud.Error with an Op, or with nil if kind is empty.
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

// wantGone checks that a call ended because its object does not exist.
func wantGone(t *testing.T, f Fixture, what string, err error) {
	t.Helper()
	if !f.Codes && cloud.Is(err, cloud.NotFoundUnproven) {
		wantKind(t, what, err, cloud.NotFoundUnproven, false)
		return
	}
	wantKind(t, what, err, cloud.NotFound, false)
}

// wantProhibited checks that a create ended because its name may not be used.
func wantProhibited(t *testing.T, f Fixture, what string, err error) {
	t.Helper()
	if !f.Codes && cloud.Is(err, cloud.Rejected, cloud.Forbidden) {
		wantKind(t, what, err, cloud.KindOf(err), false)
		return
	}
	wantKind(t, what, err, cloud.Prohibited, false)
}

// sameServer compares the fields that a cloud does not change by itself. The
// utilization, the time of the last update, the state and the addresses may differ between
// two reads.
func sameServer(t *testing.T, what string, want, got cloud.Server) {
	t.Helper()
	ignore := cmpopts.IgnoreFields(cloud.Server{}, "CPUUtilization", "CPUUsageMHz", "MemoryUsageMB", "UpdatedAt", "State", "Interfaces", "Heartbeat")
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// unsent checks that the call is refused and that no call reached the cloud.
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
		t.Errorf("%s: %d calls reached the cloud, want none", what, after-before)
	}
}
