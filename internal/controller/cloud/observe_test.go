package cloud

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

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
			if errors.Is(tc.err, errLogin) {
				w.wantCondition(pcapi.AuthenticatedCondition, "False AuthenticationFailed")
			}
			wantClosed(t, refusing)
			view := w.inv.View()
			used, _ := view.Client.(reporting)
			if goesOn := used.Cloud == old && view.Unavailable == ""; goesOn != tc.goesOn {
				t.Errorf("the client is used on: %t (%s), want %t", goesOn, view.Unavailable, tc.goesOn)
			}
			if tc.goesOn {
				equal(t, "calls of the client in use", []string{"list"}, old.TakeCalls())
				equal(t, "times that it was closed", 0, old.Closes())
			} else {
				equal(t, "calls of the client in use", []string(nil), old.TakeCalls())
			}
			if !tc.goesOn {
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

func TestClientInUseAndASecretThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.Secret)
		ready  string
		goesOn bool
	}{
		{name: "malformed: used on", change: func(s *corev1.Secret) { s.Data = map[string][]byte{"malformed": nil} }, ready: "False InvalidConfiguration", goesOn: true},
		{name: "its label is removed: withdrawn", change: func(s *corev1.Secret) { s.Labels = nil }, ready: "False InvalidConfiguration"},
		{name: "deleted: withdrawn", change: nil, ready: "False SecretMissing"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, server("a"))
			w := newWorld(t, home(withSecret), f, login("old"))
			w.reconcile()
			f.TakeCalls()
			secret := login("old")
			if tc.change == nil {
				if err := w.client.Delete(t.Context(), secret); err != nil {
					t.Fatalf("Delete: %v", err)
				}
			} else {
				tc.change(secret)
				if err := w.client.Update(t.Context(), secret); err != nil {
					t.Fatalf("Update: %v", err)
				}
			}
			w.later()
			w.wantCondition(pcapi.ReadyCondition, tc.ready)
			if goesOn := w.inv.View().Unavailable == ""; goesOn != tc.goesOn {
				t.Errorf("the client is used on: %t, want %t", goesOn, tc.goesOn)
			}
			if tc.goesOn {
				equal(t, "times that it was closed", 0, f.Closes())
			} else {
				wantClosed(t, f)
			}
		})
	}
}

func TestClientIsUsedOnWhileTheSecretCannotBeRead(t *testing.T) {
	f := newCloud(nil, server("a"))
	w := newWorld(t, home(withSecret), f, login("old"))
	w.reconcile()
	f.TakeCalls()
	w.unreadable = errAPIAway
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "False Error", "the API server is away")
	w.wantCondition(pcapi.AuthenticatedCondition, "True Accepted")
	equal(t, "unavailable", "", w.inv.View().Unavailable)
	equal(t, "calls", []string{"list"}, f.TakeCalls())
	equal(t, "times that it was closed", 0, f.Closes())
	w.unreadable = nil
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
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

// countingLists counts the lists of VMs.
type countingLists struct {
	client.Client
	vms int
}

func (l *countingLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*pcapi.VMList); ok {
		l.vms++
	}
	return l.Client.List(ctx, list, opts...)
}

func TestVMsAreReadOnlyWithTheServers(t *testing.T) {
	w := newWorld(t, home(claimed), newCloud(nil, server("a")), vm("a"))
	w.reconcile()
	lists := &countingLists{Client: w.kind.client}
	w.kind.client = lists
	w.reconcile()
	if lists.vms != 0 {
		t.Errorf("VMs were listed %d times in a reconcile in which no listing is due", lists.vms)
	}
	w.later()
	if lists.vms != 1 {
		t.Errorf("VMs were listed %d times with the servers, want once", lists.vms)
	}
}

func TestVMThatIsDeletedDuringTheListingLeavesNoOrphan(t *testing.T) {
	w := newWorld(t, home(claimed), newCloud(cloud.NewCapabilities(cloud.Labels), server("a", ownedBy("a", "here"))), vm("a"))
	w.cloud.OnCall(func(ctx context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.ListServers {
			if err := w.client.Delete(ctx, vm("a")); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	w.reconcile()
	if orphaned := w.stored().Status.Servers.Orphaned; orphaned != 0 {
		t.Errorf("%d servers are orphaned, want none", orphaned)
	}
}

func TestDefectOfTheSettingsIsReportedAndVMsGoOn(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.defect = &cloud.Error{Kind: cloud.Misconfigured, Op: "find the zones", Detail: "the pool b does not exist"}
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False InvalidConfiguration", "the pool b does not exist; only VMs that need it wait")
	if view := w.inv.View(); view.Unavailable != "" || !view.Snapshot.Has("a") {
		t.Errorf("the cloud is unavailable: %q, or was not listed", view.Unavailable)
	}
	writes := len(w.writes)
	for range 3 {
		w.later()
	}
	equal(t, "writes at rest", 0, len(w.writes)-writes)
	w.defect = nil
	w.later()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}
