package cloud

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestOrphansAreRemovedIfTheirObjectIsGone(t *testing.T) {
	cut := func(key string) func(*cloud.Server) { return func(s *cloud.Server) { delete(s.Labels, key) } }
	tests := []struct {
		name   string
		orphan cloud.Server
		gone   bool
	}{
		{name: "its VM does not exist", orphan: server("x", ownedBy("gone", "here")), gone: true},
		{name: "its VM was made anew since", orphan: server("x", ownedBy("v00", "here"), func(s *cloud.Server) { s.Labels[inventory.UIDLabel] = "uid-former" }), gone: true},
		{name: "its VM exists, on another Cloud object of the same cloud", orphan: server("x", ownedBy("elsewhere", "here"))},
		{name: "its labels do not identify a VM: no namespace", orphan: server("x", ownedBy("gone", "here"), cut(inventory.NamespaceLabel))},
		{name: "its labels do not identify a VM: no name", orphan: server("x", ownedBy("gone", "here"), cut(inventory.NameLabel))},
		{name: "its VM exists, and the cloud altered the label", orphan: server("x", ownedBy("v00", "here"), func(s *cloud.Server) { s.Labels[inventory.UIDLabel] = "UID_V00" })},
		{name: "another cluster made it", orphan: server("x", ownedBy("gone", "there"))},
		{name: "without labels", orphan: server("x")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, tc.orphan, server("v00", ownedBy("v00", "here")))
			w := newWorld(t, home(removingOrphans), f, vm("v00"), vm("elsewhere", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} }))
			w.reconcile()
			there := f.HasServer("x")
			equal(t, "removed", tc.gone, !there)
			if !f.HasServer("v00") {
				t.Error("a server with a VM was removed")
			}
		})
	}
}

// Since the listing, the orphan is gone, and the cloud has given its id to another server.
func TestServerThatGotTheIDOfAnOrphanIsKept(t *testing.T) {
	for name, next := range map[string]cloud.Server{
		"a stranger's": server("x"), "that of another VM": server("x", ownedBy("v00", "here")), "that of another cluster": server("x", ownedBy("gone", "there"), func(s *cloud.Server) { s.Labels[inventory.UIDLabel] = "uid-there" }),
	} {
		t.Run(name, func(t *testing.T) {
			f := newCloud(nil, server("x", ownedBy("gone", "here")))
			w := newWorld(t, home(removingOrphans), f, vm("v00"))
			f.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb == cloudfake.ListServers {
					f.RemoveServers("x")
					f.AddServers(next)
				}
			})
			w.reconcile()
			if !f.HasServer("x") {
				t.Error("the server that got the id was deleted")
			}
		})
	}
}

func TestOrphanThatAGatewayAnswersWith404IsTriedAgain(t *testing.T) {
	f := newCloud(nil, server("x", ownedBy("gone", "here")))
	w := newWorld(t, home(removingOrphans), f)
	w.outlive = true
	f.Fail(cloudfake.GetServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get server"}, false)
	w.reconcile()
	equal(t, "the orphan exists", true, f.HasServer("x"))
	equal(t, "servers whose snapshots are deleted", []string(nil), w.cleared)
	w.later()
	equal(t, "the orphan exists", false, f.HasServer("x"))
}

func TestSnapshotsOfOrphansAreDeletedAfterThem(t *testing.T) {
	f := newCloud(nil, server("x", ownedBy("gone", "here")), server("y", ownedBy("v00", "here")))
	w := newWorld(t, home(removingOrphans), f, vm("v00"))
	w.outlive = true
	f.Fail(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.Busy, Op: "delete server"}, false)
	w.reconcile()
	equal(t, "servers whose snapshots are deleted after a refusal", []string(nil), w.cleared)
	w.later()
	equal(t, "servers whose snapshots are deleted", []string{"x of uid-gone"}, w.cleared)
	equal(t, "servers whose disks are deleted", []string{"x"}, w.emptied)
}

// More orphans than one step removes cannot be deleted.
func TestOrphansThatCannotBeRemovedDoNotKeepOthers(t *testing.T) {
	for _, kind := range []cloud.Kind{cloud.Busy, cloud.Forbidden, cloud.Rejected, cloud.Conflict, cloud.Unreadable} {
		t.Run(string(kind), func(t *testing.T) {
			f := newCloud(nil)
			w := newWorld(t, home(removingOrphans), f)
			w.locked = map[string]error{}
			for i := range 2 * maxOrphans {
				id := fmt.Sprintf("x%02d", i)
				f.AddServers(server(id, ownedBy("gone", "here")))
				w.locked[id] = &cloud.Error{Kind: kind, Op: "delete server", Detail: "it is locked"}
			}
			f.AddServers(server("z", ownedBy("gone", "here")))
			for range 200 {
				w.later()
				if !f.HasServer("z") {
					return
				}
			}
			t.Error("the orphan that can be deleted is left")
		})
	}
}

func TestOrphansAreKept(t *testing.T) {
	orphan := server("x", ownedBy("gone", "here"))
	tests := []struct {
		name  string
		cloud *pcapi.Cloud
		do    func(*world)
	}{
		{name: "they are only to be reported", cloud: home(), do: func(*world) {}},
		{name: "the brake is on", cloud: home(removingOrphans, brakedAt("S1")), do: func(*world) {}},
		{name: "the API server cannot be asked", cloud: home(removingOrphans), do: func(w *world) { w.unreadable = errAPIAway }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, orphan)
			w := newWorld(t, tc.cloud, f)
			tc.do(w)
			w.reconcile()
			equal(t, "calls", []string{"capabilities", "list"}, f.TakeCalls())
			equal(t, "orphaned", int32(1), w.stored().Status.Servers.Orphaned)
		})
	}
}

func TestOrphansAreRemovedAFewAtATime(t *testing.T) {
	f := newCloud(nil)
	for i := range 25 {
		s := server(fmt.Sprintf("x%02d", i), ownedBy("gone", "here"))
		f.AddServers(s)
	}
	w := newWorld(t, home(removingOrphans), f)
	var left []int
	for range 4 {
		w.later()
		left = append(left, len(f.ServerIDs()))
	}
	equal(t, "left after each reconcile", []int{15, 5, 0, 0}, left)
}

func TestOrphanThatCannotBeRemoved(t *testing.T) {
	orphan := server("x", ownedBy("gone", "here"))
	t.Run("because it is gone already", func(t *testing.T) {
		f := newCloud(nil, orphan)
		f.FailAlways(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFound, Op: "delete server"}, false)
		w := newWorld(t, home(removingOrphans), f)
		w.reconcile()
		w.wantCondition(pcapi.ReadyCondition, "True Connected")
	})
	t.Run("because the cloud fails: the Cloud reports it", func(t *testing.T) {
		f := newCloud(nil, orphan)
		f.FailAlways(cloudfake.DeleteServer, errRefused, false)
		w := newWorld(t, home(removingOrphans), f)
		w.reconcile()
		w.wantCondition(pcapi.ReadyCondition, "False Unreachable")
	})
}

func TestServersOfAnotherCloudObjectForTheSameCloudAreNoOrphans(t *testing.T) {
	of := func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} }
	f := newCloud(nil,
		server("a", ownedBy("a", "here")),
		server("b", ownedBy("b", "here"), func(s *cloud.Server) { s.Labels[inventory.UIDLabel] = "uid-former" }),
		server("c", ownedBy("gone", "here")),
	)
	w := newWorld(t, home(removingOrphans), f, vm("a", of), vm("b", of))
	w.reconcile()
	equal(t, "servers: a restored VM and one that is gone left theirs", &pcapi.CloudServers{Known: 3, Orphaned: 2}, w.stored().Status.Servers)
	equal(t, "left", []string{"a"}, f.ServerIDs())
}

// A listing that lags behind the release of a VM still shows the owner labels of its
// server, which is to be kept.
func TestServerThatWasReleasedIsNotRemovedByALaggingListing(t *testing.T) {
	released := server("x", ownedBy("a", "here"))
	f := newCloud(nil, released)
	a := vm("a", func(vm *pcapi.VM) { vm.Status.VMID = "x" })
	w := newWorld(t, home(removingOrphans, func(c *pcapi.Cloud) { c.Spec.SettleTime = &metav1.Duration{Duration: settleTime} }), f, a)
	w.reconcile()
	if err := w.client.Delete(t.Context(), a); err != nil { // released: the labels are removed
		t.Fatal(err)
	}
	w.now = w.now.Add(5 * time.Second)
	w.start() // also after a restart
	w.reconcile()
	w.later()
	if !f.HasServer("x") {
		t.Fatal("a server was deleted that had been released seconds before")
	}
	f.AddServers(server("x")) // the listing shows it as it is
	for range 10 {
		w.later()
	}
	if !f.HasServer("x") {
		t.Fatal("a server without labels was deleted")
	}
}

// A hostile cloud can list tens of thousands of servers with this cluster's labels.
func TestOrphansAreRememberedOnlyWhereTheyAreToBeRemoved(t *testing.T) {
	f := newCloud(nil, server("x", ownedBy("gone", "here")))
	w := newWorld(t, home(), f)
	remembered := func() int { return len(w.kind.memoryOf(w.stored()).orphans) }
	w.reconcile()
	equal(t, "orphans in the memory of a Cloud that reports them", 0, remembered())
	w.edit(func(c *pcapi.Cloud) { c.Spec.OrphanPolicy = pcapi.OrphanPolicyDelete })
	w.later()
	equal(t, "orphans in the memory of a Cloud that removes them", 1, remembered())
	if !f.HasServer("x") {
		t.Error("the orphan was removed as soon as the policy was changed")
	}
	w.now = w.now.Add(settleTime)
	w.later()
	if f.HasServer("x") {
		t.Error("the orphan was not removed after the settle time")
	}
}

// The 404 of a cloud without codes means that the orphan is gone already.
func TestOrphanThatIsGoneOnACloudWithoutCodes(t *testing.T) {
	f := newCloud(nil, server("x", ownedBy("gone", "here")), server("y", ownedBy("gone", "here")))
	f.Fail(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "delete server"}, false)
	w := newWorld(t, home(removingOrphans), f)
	w.reconcile()
	for range 5 {
		w.later()
	}
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	f.FailAlways(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "delete server"}, false)
	f.AddServers(server("z", ownedBy("gone", "here")))
	for range 6 {
		w.later()
		w.wantCondition(pcapi.ReadyCondition, "True Connected")
	}
}
