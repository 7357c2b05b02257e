package cloud

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// fleet returns the VMs v00 to v07 and their servers.
func fleet() (vms []client.Object, servers []cloud.Server) {
	for i := range 8 {
		name := fmt.Sprintf("v%02d", i)
		vms, servers = append(vms, vm(name)), append(servers, server(name, ownedBy(name, "here")))
	}
	return vms, servers
}

func TestServersAreListedWhenThatIsDue(t *testing.T) {
	f := newCloud(cloud.NewCapabilities(cloud.Labels), server("a"))
	w := newWorld(t, home(), f)
	w.reconcile()
	equal(t, "calls of the first reconcile", []string{"capabilities", "list"}, f.TakeCalls())
	equal(t, "writes", []string{"object", "status"}, w.writes)
	w.wantCondition(pcapi.ReadyCondition, "True Connected", "the younger is removed")
	w.wantCondition(pcapi.AuthenticatedCondition, "True Accepted")
	equal(t, "servers", &pcapi.CloudServers{Known: 1}, w.stored().Status.Servers)
	equal(t, "known to all", "", w.inv.View().Unavailable)
	equal(t, "capabilities known to all", f.Can(), w.inv.View().Capabilities)

	w.now = w.now.Add(time.Second)
	result := w.reconcile()
	equal(t, "calls before the next is due", []string(nil), f.TakeCalls())
	if result.RequeueAfter < pollInterval*9/10-time.Second || result.RequeueAfter > pollInterval*11/10-time.Second {
		t.Errorf("again after %v, want the rest of the interval", result.RequeueAfter)
	}
	w.later()
	equal(t, "calls once it is due", []string{"list"}, f.TakeCalls())
	equal(t, "writes at rest", []string{"object", "status"}, w.writes)
}

func TestNewClientIsListedAtOnce(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.reconcile()
	w.cloud = newCloud(cloud.NewCapabilities(cloud.Async), server("a"))
	w.edit(func(c *pcapi.Cloud) { c.Spec.Endpoint += "/v2" })
	w.reconcile()
	equal(t, "calls", []string{"capabilities", "list"}, w.cloud.TakeCalls())
	equal(t, "capabilities", w.cloud.Can(), w.inv.View().Capabilities)
	equal(t, "capabilities in the status", []string{"async"}, w.stored().Status.Capabilities)
}

func TestNewClientIsListedAtOnceAfterAFailedReconcile(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.reconcile()
	w.cloud = newCloud(nil, server("a"))
	w.edit(func(c *pcapi.Cloud) { c.Spec.Endpoint += "/v2" })
	once := func() {
		if _, err := w.runs.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "home"}}); err != nil {
			t.Logf("Reconcile: %v", err)
		}
	}
	once()
	equal(t, "calls of the reconcile that connects", []string{"capabilities"}, w.cloud.TakeCalls())
	listable := w.kind.client
	w.kind.client = unlistable{listable}
	once()
	equal(t, "calls of the reconcile that fails", []string(nil), w.cloud.TakeCalls())
	w.kind.client = listable
	w.reconcile()
	equal(t, "calls of the next", []string{"list"}, w.cloud.TakeCalls())
	w.reconcile()
	equal(t, "calls before the next listing is due", []string(nil), w.cloud.TakeCalls())
}

// login returns the Secret that withSecret refers to.
func login(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "login", Labels: map[string]string{pcapi.CredentialsForLabel: "home"}},
		Data:       map[string][]byte{"token": []byte(token)},
	}
}

// rotate replaces the token. From then on, next answers new clients.
func (w *world) rotate(token string, next *cloudfake.Cloud) {
	w.t.Helper()
	w.cloud = next
	if err := w.client.Update(w.t.Context(), login(token)); err != nil {
		w.t.Fatalf("Update: %v", err)
	}
}

func TestClientIsUsedUntilTheNextHasAnswered(t *testing.T) {
	tests := []struct {
		name  string
		err   error
		edit  func(*pcapi.Cloud)
		ready string
		// goesOn is whether the client in use is used on.
		goesOn bool
	}{
		{name: "the new token is refused: the old one is used on", err: errLogin, ready: "False AuthenticationFailed", goesOn: true},
		{name: "the new token cannot be tried: the old one is used on", err: errRefused, ready: "False Unreachable", goesOn: true},
		{name: "the new CA does not fit: nothing is used", err: errUntrusted, ready: "False Untrusted"},
		{name: "the endpoint changed, too: nothing is used", err: errLogin, edit: func(c *pcapi.Cloud) { c.Spec.Endpoint += "/v2" }, ready: "False AuthenticationFailed"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			old := newCloud(nil, server("a"))
			w := newWorld(t, home(withSecret), old, login("old"))
			w.reconcile()
			w.wantCondition(pcapi.ReadyCondition, "True Connected")
			old.TakeCalls()

			refusing := newCloud(nil)
			refusing.FailAlways(cloudfake.Capabilities, tc.err, false)
			w.rotate("wrong", refusing)
			if tc.edit != nil {
				w.edit(tc.edit)
			}
			w.later()
			w.wantCondition(pcapi.ReadyCondition, tc.ready)
			if tc.err == errLogin {
				w.wantCondition(pcapi.AuthenticatedCondition, "False AuthenticationFailed")
			}
			wantClosed(t, refusing)
			view := w.inv.View()
			if goesOn := view.Client == cloud.Client(old) && view.Unavailable == ""; goesOn != tc.goesOn {
				t.Errorf("the client is used on: %t (%s), want %t", goesOn, view.Unavailable, tc.goesOn)
			}
			if tc.goesOn {
				equal(t, "calls of the client in use", []string{"list"}, old.TakeCalls())
				equal(t, "times that it was closed", 0, old.Closes())
			} else {
				equal(t, "calls of the client in use", []string(nil), old.TakeCalls())
			}
			if tc.edit != nil {
				wantClosed(t, old)
			}

			next := newCloud(nil, server("a"))
			w.rotate("new", next)
			w.now = w.now.Add(time.Second)
			w.reconcile()
			w.wantCondition(pcapi.ReadyCondition, "True Connected")
			w.wantCondition(pcapi.AuthenticatedCondition, "True Accepted")
			equal(t, "calls of the next client", []string{"capabilities", "list"}, next.TakeCalls())
			wantClosed(t, old)
		})
	}
}

func TestFailedPollMakesTheCloudUnavailable(t *testing.T) {
	tests := []struct {
		name   string
		verb   cloudfake.Verb
		err    error
		ready  string
		stall  bool
		closed bool
	}{
		{name: "it cannot be reached", verb: cloudfake.Capabilities, err: errRefused, ready: "False Unreachable", closed: true},
		{name: "it refuses the credentials", verb: cloudfake.Capabilities, err: errLogin, ready: "False AuthenticationFailed", stall: true, closed: true},
		{name: "it cannot be trusted", verb: cloudfake.Capabilities, err: errUntrusted, ready: "False Untrusted", stall: true, closed: true},
		{name: "it does not list its servers", verb: cloudfake.ListServers, err: errRefused, ready: "False Unreachable"},
		{name: "its listing cannot be read", verb: cloudfake.ListServers, err: errGarbage, ready: "False PollFailed"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, server("a"))
			f.FailAlways(tc.verb, tc.err, false)
			w := newWorld(t, home(), f)
			result := w.reconcile()
			if result.RequeueAfter < recheck || result.RequeueAfter > recheck*11/10 {
				t.Errorf("again after %v, want about %v", result.RequeueAfter, recheck)
			}
			w.wantCondition(pcapi.ReadyCondition, tc.ready)
			if tc.stall {
				w.wantCondition(pcapi.StalledCondition, "True "+strings.TrimPrefix(tc.ready, "False "))
			}
			view := w.inv.View()
			if view.Unavailable == "" || view.Snapshot != nil {
				t.Errorf("VMs can use it: unavailable %q", view.Unavailable)
			}
			if tc.closed {
				wantClosed(t, f)
			}
			equal(t, "servers", (*pcapi.CloudServers)(nil), w.stored().Status.Servers)
		})
	}
}

func TestOutageIsReportedOnce(t *testing.T) {
	f := newCloud(nil, server("a"))
	w := newWorld(t, home(), f)
	w.reconcile()
	f.FailAlways(cloudfake.ListServers, errRefused, false)
	writes := len(w.writes)
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "False Unreachable", "connection refused")
	for range 5 {
		w.now = w.now.Add(recheck)
		w.reconcile()
	}
	equal(t, "writes", 1, len(w.writes)-writes)
	equal(t, "servers: what was known stays", &pcapi.CloudServers{Known: 1}, w.stored().Status.Servers)
	if w.inv.View().Snapshot == nil {
		t.Error("what was known of the cloud is lost")
	}

	f.Heal(cloudfake.ListServers)
	w.enqueued = nil
	w.inv.EnqueueWhenAvailable(inventory.Ref{Namespace: "ns", Name: "v"}, w.inv.View())
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	equal(t, "enqueued", []inventory.Event{{Cloud: "home", Refs: []inventory.Ref{{Namespace: "ns", Name: "v"}}}}, w.enqueued)
}

func TestReconcileBeforeTheNextPollKeepsTheStatus(t *testing.T) {
	f := newCloud(nil)
	f.FailAlways(cloudfake.ListServers, errRefused, false)
	w := newWorld(t, home(claimed), f)
	w.reconcile()
	writes := len(w.writes)
	w.now = w.now.Add(time.Second)
	f.TakeCalls()
	result := w.reconcile()
	equal(t, "calls", []string(nil), f.TakeCalls())
	equal(t, "writes", writes, len(w.writes))
	if result.RequeueAfter <= 0 || result.RequeueAfter > recheck {
		t.Errorf("again after %v, want the time until the next try", result.RequeueAfter)
	}
}

func TestServersAreCountedByOwner(t *testing.T) {
	labels := func(change func(map[string]string)) func(*cloud.Server) {
		return func(s *cloud.Server) { change(s.Labels) }
	}
	f := newCloud(nil,
		server("v00", ownedBy("v00", "here")),
		server("gone", ownedBy("gone", "here")),
		server("going", ownedBy("gone", "here"), func(s *cloud.Server) { s.State = cloud.StateDeleting }),
		server("abroad", ownedBy("v99", "there")),
		server("nobody"),
		server("new", ownedBy("unrecorded", "here")),
		server("half", ownedBy("v00", "here"), labels(func(l map[string]string) { delete(l, inventory.ClusterLabel) })),
	)
	w := newWorld(t, home(), f, vm("v00"), vm("unrecorded", func(vm *pcapi.VM) { vm.Status.VMID = "" }),
		vm("elsewhere", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} }))
	w.reconcile()
	equal(t, "servers", &pcapi.CloudServers{Known: 7, Managed: 1, Orphaned: 1}, w.stored().Status.Servers)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
}

func TestBrakeHoldsUntilAcknowledged(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	f.RemoveServers("v00")
	w.later()
	w.wantCondition(pcapi.BrakedCondition, "False Released")

	f.Clear()
	w.later()
	snapshot := w.stored().Status.BrakedSnapshot
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 7 servers", "v01 among them", "kubectl annotate cloud home --overwrite samplecontroller.k8s.io/acknowledge="+snapshot)
	w.wantCondition(pcapi.ReadyCondition, "False ServersVanished")
	w.wantCondition(pcapi.StalledCondition, "True ServersVanished")
	equal(t, "braked for VMs", true, w.inv.View().Braked)
	for _, s := range servers {
		f.AddServers(s)
	}
	w.later()
	equal(t, "still braked when the servers are back", true, w.inv.View().Braked)
	equal(t, "snapshot on record", snapshot, w.stored().Status.BrakedSnapshot)
	w.edit(acknowledging("another snapshot"))
	w.later()
	equal(t, "still braked when another snapshot is acknowledged", true, w.inv.View().Braked)

	w.enqueued = nil
	w.edit(acknowledging(snapshot))
	w.reconcile()
	equal(t, "braked once it is acknowledged", false, w.inv.View().Braked)
	equal(t, "enqueued", true, slices.ContainsFunc(w.enqueued, func(e inventory.Event) bool { return e.All }))
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	equal(t, "snapshot on record", "", w.stored().Status.BrakedSnapshot)
	equal(t, "events", []string{"Normal Connected Ready", "Warning ServersVanished Braked", "Normal Released Braked"}, w.events)

	w.later()
	equal(t, "an old acknowledgement sets no brake", false, w.inv.View().Braked)
}

// braked is a world whose brake is on after all servers but one vanished.
func braked(t *testing.T) (*world, []cloud.Server) {
	t.Helper()
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	for _, s := range servers[1:] {
		w.cloud.RemoveServers(s.ID)
	}
	w.later()
	equal(t, "braked", true, w.inv.View().Braked)
	return w, servers
}

func TestBrakeSurvivesARestart(t *testing.T) {
	w, servers := braked(t)
	for _, s := range servers {
		w.cloud.AddServers(s)
	}
	w.start()
	w.reconcile()
	equal(t, "braked", true, w.inv.View().Braked)
	equal(t, "away", "", w.inv.View().Unavailable)
}

func TestBrakeAcknowledgedInAnOutageIsReleasedAfterIt(t *testing.T) {
	w, _ := braked(t)
	w.cloud.FailAlways(cloudfake.ListServers, errRefused, false)
	w.edit(acknowledging(w.stored().Status.BrakedSnapshot))
	w.later()
	w.cloud.Heal(cloudfake.ListServers)
	w.later()
	equal(t, "braked", false, w.inv.View().Braked)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}

func TestUnrecordedBrakeHolds(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	w.cloud.Clear()
	w.refuse["status"] = errAPIAway
	w.later()
	equal(t, "braked", true, w.inv.View().Braked)
	equal(t, "snapshot on record", "", w.stored().Status.BrakedSnapshot)
	w.reconcile()
	equal(t, "braked before the next listing", true, w.inv.View().Braked)

	t.Run("the servers are still missing", func(t *testing.T) {
		w.later()
		w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 8 servers")
		if w.stored().Status.BrakedSnapshot == "" {
			t.Error("no snapshot can be acknowledged")
		}
	})
}

func TestUnrecordedBrakeIsReleasedWhenTheServersAreBack(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	w.cloud.Clear()
	w.refuse["status"] = errAPIAway
	w.later()
	for _, s := range servers {
		w.cloud.AddServers(s)
	}
	w.later()
	equal(t, "braked", false, w.inv.View().Braked)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
}

func TestBrakeIsSetAgainIfMoreServersVanish(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	vanish := func(from, to int) {
		for _, s := range servers[from:to] {
			w.cloud.RemoveServers(s.ID)
		}
		w.later()
	}
	vanish(0, 4)
	w.later()
	first := w.stored().Status.BrakedSnapshot
	w.edit(acknowledging(first))
	vanish(4, 8)
	equal(t, "braked", true, w.inv.View().Braked)
	second := w.stored().Status.BrakedSnapshot
	if second == "" || second == first {
		t.Errorf("braked at %q, want another snapshot than the acknowledged %q", second, first)
	}
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 4 servers", second)
}

func TestBrakeCountsExpectedServersOnly(t *testing.T) {
	lost := func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateLost }
	going := func(vm *pcapi.VM) {
		now := metav1.NewTime(dawn)
		vm.DeletionTimestamp, vm.Finalizers = &now, []string{"some/one"}
	}
	young := func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(dawn.Add(-settleTime)) }
	tests := []struct {
		name   string
		vm     func(*pcapi.VM)
		before []cloud.Server
		want   bool
	}{
		{name: "after a start: recorded long ago", vm: func(*pcapi.VM) {}, want: true},
		{name: "after a start: recorded just now, a listing may lag behind", vm: young},
		{name: "known to be lost", vm: lost},
		{name: "being deleted by the operator", vm: going},
		{name: "in the listing before", vm: young, before: []cloud.Server{server("v00"), server("v01")}, want: true},
		{name: "not in the listing before either", vm: func(*pcapi.VM) {}, before: []cloud.Server{server("other")}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, tc.before...)
			w := newWorld(t, home(), f, vm("v00", tc.vm), vm("v01", tc.vm))
			if tc.before != nil {
				w.inv.Connect(f, nil)
				snap, err := inventory.List(t.Context(), f, w.Now)
				if err != nil {
					t.Fatalf("List: %v", err)
				}
				w.inv.Publish(snap)
			}
			f.Clear()
			w.reconcile()
			equal(t, "braked", tc.want, w.inv.View().Braked)
		})
	}
}

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

func TestDeletedCloudIsReleasedWithItsLastNetwork(t *testing.T) {
	last := &pcapi.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net"},
		Spec:       pcapi.NetworkSpec{CloudRef: &pcapi.CloudReference{Name: "home"}},
	}
	w := newWorld(t, home(claimed, deleted), newCloud(nil), last)
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False InUse", "refer to this Cloud: 1")

	if err := w.client.Delete(t.Context(), last); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	w.reconcile()
	if _, there := w.find(); there {
		t.Error("the Cloud is still there")
	}
}

func TestDeletedCloudIsReleasedWithItsLastVM(t *testing.T) {
	f := newCloud(nil, server("v00"))
	last := vm("v00")
	w := newWorld(t, home(claimed, deleted), f, last)
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False InUse", "refer to this Cloud: 1")
	equal(t, "usable by the VM that is still there", "", w.inv.View().Unavailable)

	if err := w.client.Delete(t.Context(), last); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	f.TakeCalls()
	equal(t, "result", ctrl.Result{}, w.reconcile())
	if _, there := w.find(); there {
		t.Error("the Cloud is still there")
	}
	equal(t, "calls", []string(nil), f.TakeCalls())
	wantClosed(t, f)
	view := w.inv.View()
	equal(t, "what VMs see", inventory.View{Unavailable: "the Cloud does not exist or has not been connected yet", Settings: view.Settings}, view, cmpopts.IgnoreUnexported(inventory.View{}))
	equal(t, "last event", "Normal Disconnected Delete", w.events[len(w.events)-1])
}

func TestCloudIsNotReleasedIfItsUsersAreUnknown(t *testing.T) {
	w := newWorld(t, home(claimed, deleted), newCloud(nil), vm("v00"))
	w.kind.client = unlistable{w.client}
	w.reconcile()
	if _, there := w.find(); !there {
		t.Error("the Cloud was released")
	}
}

func TestReplacedClientMakesTheCloudUnavailableUntilItIsListed(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.reconcile()
	former, _ := w.inv.Server("a")
	equal(t, "server of the former cloud", "a", former.ID)

	w.cloud = newCloud(nil, server("b"))
	w.edit(func(c *pcapi.Cloud) { c.Spec.Endpoint = "https://other.test/api" })
	request := ctrl.Request{NamespacedName: client.ObjectKey{Name: "home"}}
	if _, err := w.runs.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if view := w.inv.View(); view.Unavailable == "" {
		t.Error("VMs can use the new client together with the snapshot of the former cloud")
	}
	w.reconcile()
	if view := w.inv.View(); view.Unavailable != "" {
		t.Errorf("the cloud is unavailable after its listing: %s", view.Unavailable)
	}
	_, known := w.inv.Server("b")
	equal(t, "server of the new cloud is known", true, known)
}
