package fake_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

var everything = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus, cloud.Async, cloud.Power, cloud.Resize,
	cloud.Folders, cloud.Networks, cloud.Hosts, cloud.Events, cloud.Sessions, cloud.Sizing, cloud.Operations, cloud.PowerAtCreate, cloud.WithUserData, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.WithDisks,
	cloud.Zones, cloud.WithAntiAffinity, cloud.GuestHeartbeat, cloud.Suspend, cloud.WithInterfaces, cloud.StaticAddresses, cloud.Flavors,
	cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.NetworkDNS, cloud.Routers, cloud.DualStack, cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks, cloud.Console,
)

func without(caps ...cloud.Capability) cloud.Capabilities {
	return slices.DeleteFunc(slices.Clone(everything), func(c cloud.Capability) bool { return slices.Contains(caps, c) })
}

func TestCloudPassesTheSuite(t *testing.T) {
	profiles := map[string]cloud.Capabilities{
		"core":                     cloud.NewCapabilities(),
		"core with unique names":   cloud.NewCapabilities(cloud.UniqueNames),
		"everything":               everything,
		"neither keys nor labels":  without(cloud.Idempotency, cloud.Labels),
		"neither keys nor names":   without(cloud.Idempotency, cloud.UniqueNames),
		"names per folder":         cloud.NewCapabilities(append(slices.Clone(everything), cloud.FolderNames)...),
		"networks that exist":      cloud.NewCapabilities(append(without(cloud.Networks), cloud.NetworkAttach)...),
		"sizing alone":             cloud.NewCapabilities(cloud.Sizing),
		"everything without pages": without(cloud.Sizing),
	}
	for _, c := range everything {
		profiles["without "+string(c)] = without(c)
	}
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloudtest.Run(t, func(*testing.T) cloudtest.Fixture { return fixture(caps) })
		})
	}
}

// Each case runs on the cloud with everything, but for those about clouds that have less.
func TestEverythingIsAllThatTheSuiteNeeds(t *testing.T) {
	less := cloud.NewCapabilities(cloud.FolderNames, cloud.NetworkAttach, cloud.Addresses)
	for _, needed := range cloudtest.Needed() {
		if everything.Has(needed) == less.Has(needed) {
			t.Errorf("everything has %s: %t", needed, everything.Has(needed))
		}
	}
}

func fixture(caps cloud.Capabilities) cloudtest.Fixture {
	hosts := []cloud.Host{{Name: "h1", AvailableHours: 8}, {Name: "h2", GPU: true, AvailableHours: 16}}
	c := fake.New(fake.Options{Capabilities: caps, Prohibited: []string{"forbidden"}, Hosts: hosts})
	var failing atomic.Bool
	verbs := map[cloudtest.Op]fake.Verb{
		cloudtest.OpCreateServer: fake.CreateServer, cloudtest.OpUpdateServer: fake.UpdateServer, cloudtest.OpDeleteServer: fake.DeleteServer,
		cloudtest.OpCreateNetwork: fake.CreateNetwork, cloudtest.OpUpdateNetwork: fake.UpdateNetwork, cloudtest.OpDeleteNetwork: fake.DeleteNetwork,
		cloudtest.OpCreateSnapshot: fake.CreateSnapshot,
		cloudtest.OpRevert:         fake.RevertServer,
	}
	var networks []cloud.Network
	if caps.Has(cloud.NetworkAttach) {
		networks = []cloud.Network{{ID: "n1", Name: "VM Network"}, {ID: "n2", Name: "storage", CIDR: "10.9.0.0/24"}}
		c.AddNetworks(networks...)
	}
	return cloudtest.Fixture{
		Networks:  networks,
		Zone:      "zone-a",
		Reach:     func(*testing.T) cloudtest.Reach { return cloudtest.Reach{Groups: [2]string{"ssh", "web"}} },
		KeptDisks: func(_ *testing.T, id string) []string { return c.KeptDisks(id) },
		External:  fake.ExternalNetwork,
		Flavors:   [2]string{"small", "large"},
		RootDisk:  fake.TemplateDiskMiB + 1<<10, SmallRootDisk: fake.TemplateDiskMiB - 1<<10, DiskTypes: [2]string{"fast", "a slow type"},
		Client: c, Has: caps, Prohibited: "forbidden", Codes: true, Filters: true, Sent: func() int { return c.Sent() }, Hosts: hosts,
		Operating: func(_ *testing.T, on bool) {
			c.SetOperating(on)
			c.OnCall(func(_ context.Context, verb fake.Verb, _ string) {
				if verb == fake.GetOperation && failing.Load() {
					c.FailOperations(errFull)
				} else if verb == fake.GetOperation {
					c.FinishOperations()
				}
			})
		},
		HasUserData: func(t *testing.T, id string, data cloud.UserData) bool {
			t.Helper()
			s, err := c.GetServer(t.Context(), id)
			return err == nil && slices.Equal(c.UserData(s.Name), []string{string(data)})
		},
		BootConsole: func(_ *testing.T, server cloud.Server) {
			c.SetConsole(server.ID, "booting\n"+server.Name+" login: ")
		},
		HalfMake: func(_ *testing.T, name string) {
			c.AddNetworks(cloud.Network{ID: "half", Name: name, HalfMade: true})
		},
		FailOperations: func(*testing.T) func() {
			failing.Store(true)
			return func() { failing.Store(false) }
		},
		EndWatches: func(*testing.T) { c.EndWatches() },
		LoseAnswer: func(_ *testing.T, op cloudtest.Op) func() {
			c.FailAlways(verbs[op], errLost, true)
			return func() { c.Heal(verbs[op]) }
		},
	}
}

func TestSlowCloudBuildsAndDeletesUntilFinish(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	c.SetSlow(true)
	on := mustCreate(t, c, "on")
	off, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "off", PowerState: cloud.PowerOff})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "states", []cloud.State{cloud.StateBuilding, cloud.StateBuilding}, states(c))
	_, err = c.UpdateServer(t.Context(), on, cloud.Update{cloud.SetCPU(8)})
	if !cloud.Is(err, cloud.Busy) {
		t.Errorf("UpdateServer of a server that is BUILDING: %v, want Busy", err)
	}
	c.Finish()
	equal(t, "states once built", []cloud.State{cloud.StateActive, cloud.StateStopped}, states(c))
	if result, err := c.DeleteServer(t.Context(), off.Server.ID); result.Gone() || err != nil {
		t.Errorf("DeleteServer: %+v, %v, want it begun", result, err)
	}
	equal(t, "states of a deletion", []cloud.State{cloud.StateActive, cloud.StateDeleting}, states(c))
	c.Finish()
	equal(t, "servers", []string{on}, c.ServerIDs())
}

func TestListingLeavesOutHiddenAndNewServers(t *testing.T) {
	now := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	c := fake.New(fake.Options{Capabilities: everything, Clock: func() time.Time { return now }})
	mustCreate(t, c, "a")
	mustCreate(t, c, "b")
	c.Hide("s1")
	equal(t, "listed", []string{"s2"}, listed(t, c))
	c.SetLag(time.Minute)
	equal(t, "listed before the lag is over", []string(nil), listed(t, c))
	now = now.Add(time.Minute)
	c.Show()
	equal(t, "listed after the lag", []string{"s1", "s2"}, listed(t, c))
}

func TestCallsAreLogged(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: cloud.NewCapabilities(cloud.Networks)})
	if err := c.CheckName(t.Context(), cloud.Name{Name: "web"}); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, c, "web")
	listed(t, c)
	c.Fail(fake.GetServer, errRefused, false)
	if _, err := c.GetServer(t.Context(), "s1"); err == nil {
		t.Error("GetServer: no error")
	}
	if _, err := c.ListNetworks(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls", []string{"check web", "create web", "get s1", "list networks"}, c.TakeCalls(fake.ListServers))
	equal(t, "calls since", []string(nil), c.TakeCalls())
	equal(t, "calls in all", 5, c.Sent())
	equal(t, "calls about servers that were sent", 2, c.Sent(fake.CreateServer, fake.GetServer))
}

func TestMisuseIsTheFirstCallThatTheCloudCannotServe(t *testing.T) {
	c := fake.New(fake.Options{})
	mustCreate(t, c, "web")
	if err := c.Misuse(); err != nil {
		t.Errorf("Misuse: %v, want none", err)
	}
	_, first := c.ListHosts(t.Context())
	if _, err := c.ListNetworks(t.Context()); err == nil {
		t.Error("ListNetworks: no error")
	}
	equal(t, "misuse", first.Error(), c.Misuse().Error())
}

func TestOnCallHoldsACallUntilItsContextEnds(t *testing.T) {
	c := fake.New(fake.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	c.OnCall(func(ctx context.Context, _ fake.Verb, _ string) {
		cancel()
		<-ctx.Done()
	})
	_, err := c.CreateServer(ctx, cloud.CreateServer{Name: "web"})
	if !cloud.Uncertain(err) || !errors.Is(err, context.Canceled) {
		t.Errorf("CreateServer: %v, want it uncertain", err)
	}
	equal(t, "servers", []string(nil), c.ServerIDs())
}

func TestKeyOfADeletedServerReturnsTheFirstAnswer(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	req := cloud.CreateServer{Name: "web", IdempotencyKey: "key"}
	first, err := c.CreateServer(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	c.RemoveServers(first.Server.ID)
	again, err := c.CreateServer(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "server", first, again)
	equal(t, "servers", []string(nil), c.ServerIDs())
	equal(t, "request", req, c.Request("key"))
}

func TestIDsInUseAreNotGivenAgain(t *testing.T) {
	c := fake.New(fake.Options{})
	c.AddServers(cloud.Server{ID: "s1", Name: "theirs"})
	equal(t, "id", "s2", mustCreate(t, c, "ours"))
}

// TestConcurrentUse finds data races; run it with -race.
func TestConcurrentUse(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			id := string(rune('a' + i))
			c.AddServers(cloud.Server{ID: id, Name: id})
			c.ModifyServer(id, func(s *cloud.Server) { s.CPU++ })
			if _, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetLabel{Key: "k", Value: id}}); err != nil {
				t.Errorf("UpdateServer: %v", err)
			}
			if _, err := c.ListServers(t.Context(), cloud.ListServers{}); err != nil {
				t.Errorf("ListServers: %v", err)
			}
			c.Fail(fake.GetServer, nil, false)
			c.TakeCalls()
			c.RemoveServers(id)
		})
	}
	all.Wait()
	equal(t, "servers", []string(nil), c.ServerIDs())
}

func mustCreate(t *testing.T, c *fake.Cloud, name string) string {
	t.Helper()
	s, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: name})
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	return s.Server.ID
}

func listed(t *testing.T, c *fake.Cloud) []string {
	t.Helper()
	page, err := c.ListServers(t.Context(), cloud.ListServers{})
	if err != nil {
		t.Fatalf("ListServers: %v", err)
	}
	var ids []string
	for _, s := range page.Servers {
		ids = append(ids, s.ID)
	}
	return ids
}

func states(c *fake.Cloud) []cloud.State {
	var states []cloud.State
	for _, s := range c.Servers() {
		states = append(states, s.State)
	}
	return states
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestEditsAreSeenByTheNextCall(t *testing.T) {
	c := fake.New(fake.Options{})
	c.SetCapabilities(everything)
	c.SetHosts(cloud.Host{Name: "h1"})
	c.SetUtilization(7)
	c.Prohibit("root")
	c.AddServers(cloud.Server{ID: "x", Name: "theirs"}, cloud.Server{ID: "y"})
	c.RemoveServers("y")
	c.AddNetworks(cloud.Network{ID: "a"}, cloud.Network{ID: "b"})
	c.RemoveNetworks("b")
	modified := []bool{
		c.ModifyServer("x", func(s *cloud.Server) { s.CPU = 3 }), c.ModifyServer("y", func(*cloud.Server) {}),
		c.ModifyNetwork("a", func(n *cloud.Network) { n.Gateway = "10.0.0.9" }), c.ModifyNetwork("b", func(*cloud.Network) {}),
	}
	equal(t, "modified", []bool{true, false, true, false}, modified)

	page, err := c.ListServers(t.Context(), cloud.ListServers{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "servers", []cloud.Server{{ID: "x", Name: "theirs", CPU: 3, CPUUtilization: new(7)}}, page.Servers)
	networks, err := c.ListNetworks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "networks", []cloud.Network{{ID: "a", Gateway: "10.0.0.9"}}, networks)
	if err := c.CheckName(t.Context(), cloud.Name{Name: "root"}); !cloud.Is(err, cloud.Prohibited) {
		t.Errorf("CheckName: %v, want Prohibited", err)
	}
	if s, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "ours"}); err != nil || s.Server.Host != "h1" {
		t.Errorf("CreateServer: host %q, %v; want h1", s.Server.Host, err)
	}
	c.Clear()
	equal(t, "servers and networks", 0, len(c.Servers())+len(c.Networks()))
}

func TestCloseLeavesTheCloudToOtherClients(t *testing.T) {
	c := fake.New(fake.Options{})
	mustCreate(t, c, "web")
	c.Close(t.Context())
	c.Close(t.Context())
	<-c.Closed()
	equal(t, "closes", 2, c.Closes())
	equal(t, "servers", []string{"s1"}, listed(t, c))
}

func TestIDsAreUsedAgainAtOnceWhereTheCloudReusesThem(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	c.SetReusesIDs(true)
	first, kept := mustCreate(t, c, "first"), mustCreate(t, c, "kept")
	var taken string
	c.OnAnswer(func(ctx context.Context, verb fake.Verb, _ string) {
		if verb == fake.DeleteServer {
			result, err := c.CreateServer(ctx, cloud.CreateServer{Name: "second", IdempotencyKey: "second"})
			if err != nil {
				t.Error(err)
			}
			taken = result.Server.ID
		}
	})
	if _, err := c.DeleteServer(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	c.OnAnswer(nil)
	equal(t, "ids of the first, of the second before the deletion was answered, and of the kept server", []string{"s1", "s1", "s2"}, []string{first, taken, kept})
	equal(t, "id of the next server", "s3", mustCreate(t, c, "next"))
	equal(t, "the server of the second key", "second", c.Server("s1").Name)
}

func TestAKeyDoesNotLeadToTheServerThatHasTheIDOfItsOwnOne(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	c.SetReusesIDs(true)
	req := cloud.CreateServer{Name: "first", IdempotencyKey: "first"}
	create := func() cloud.Server {
		t.Helper()
		result, err := c.CreateServer(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return result.Server
	}
	first := create()
	if _, err := c.DeleteServer(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, c, "second")
	equal(t, "name in the answer to the repeated create", "first", create().Name)
}

func TestAnOpenOperationDoesNotChangeTheServerThatGotTheIDSince(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	c.SetReusesIDs(true)
	id := mustCreate(t, c, "first")
	c.SetOperating(true)
	if _, err := c.DeleteServer(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	c.SetOperating(false)
	c.RemoveServers(id)
	equal(t, "id of the second server", id, mustCreate(t, c, "second"))
	c.FinishOperations()
	equal(t, "servers", []string{id}, c.ServerIDs())
}
