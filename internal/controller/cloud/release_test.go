package cloud

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

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

// namespaceless is a client that cannot read namespaces.
type namespaceless struct{ client.Client }

func (n namespaceless) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
		return errAPIAway
	}
	return n.Client.Get(ctx, key, o, opts...)
}

func TestWhatKeepsADeletedCloud(t *testing.T) {
	forPlatform := func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	}
	unrecorded := func(vm *pcapi.VM) {
		vm.Status = pcapi.VMStatus{}
		vm.Finalizers = []string{pcapi.VMFinalizer}
		vm.Annotations = map[string]string{pcapi.ClaimedCloudAnnotation: "home", pcapi.ClaimedNameAnnotation: "x"}
	}
	recorded := func(vm *pcapi.VM) { vm.Status.Cloud = "home" }
	claimedName := func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{Cloud: "home", NameInCloud: "web"} }
	network := func(status pcapi.NetworkStatus) *pcapi.Network {
		return &pcapi.Network{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net", Finalizers: []string{pcapi.NetworkFinalizer}},
			Spec:       pcapi.NetworkSpec{CloudRef: &pcapi.CloudReference{Name: "home"}}, Status: status,
		}
	}
	snapshot := func(finalizers ...string) *pcapi.VMSnapshot {
		return &pcapi.VMSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "snap", Finalizers: finalizers},
			Spec:       pcapi.VMSnapshotSpec{VMName: "v"}, Status: pcapi.VMSnapshotStatus{Cloud: "home"},
		}
	}
	tests := []struct {
		name string
		// user is in the namespace "ns" of another team.
		user client.Object
		// allowed is whether that namespace may use the Cloud all the same.
		allowed bool
		keeps   bool
	}{
		{name: "a VM of an allowed namespace that only refers to it", user: vm("v", unrecorded), allowed: true, keeps: true},
		{name: "a VM of a denied namespace that only refers to it, with a finalizer and a claim", user: vm("v", unrecorded)},
		{name: "a VM of a denied namespace with a server on it", user: vm("v", recorded), keeps: true},
		{name: "a VM of a denied namespace whose create may have been sent", user: vm("v", claimedName), keeps: true},
		{name: "a VM of a denied namespace with a server on another Cloud", user: vm("v", elsewhere)},
		{name: "a Network of an allowed namespace", user: network(pcapi.NetworkStatus{}), allowed: true, keeps: true},
		{name: "a Network of a denied namespace that only refers to it", user: network(pcapi.NetworkStatus{})},
		{name: "a Network of a denied namespace with a network on it", user: network(pcapi.NetworkStatus{NetworkID: "n1", Cloud: "home"}), keeps: true},
		{name: "a Network of a denied namespace with a network on another Cloud", user: network(pcapi.NetworkStatus{NetworkID: "n1", Cloud: "other"})},
		{name: "a VMSnapshot that may have a snapshot on it", user: snapshot(pcapi.VMSnapshotFinalizer), keeps: true},
		{name: "a VMSnapshot that has none", user: snapshot()},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := home(claimed, deleted, forPlatform)
			if tc.allowed {
				c.Spec.AllowedNamespaces = nil
			}
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "red"}}}
			w := newWorld(t, c, newCloud(nil), tc.user, ns)
			w.reconcile()
			_, there := w.find()
			equal(t, "kept", tc.keeps, there)
			if tc.keeps {
				w.wantCondition(pcapi.ReadyCondition, "False InUse", "VMs, Networks and VMSnapshots that refer to this Cloud: 1")
			}
		})
	}
}

func TestCloudIsKeptWhileItIsUnknownWhetherANamespaceMayUseIt(t *testing.T) {
	c := home(claimed, deleted, func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	})
	w := newWorld(t, c, newCloud(nil), vm("v"))
	w.kind.client = namespaceless{w.client}
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False InUse", "refer to this Cloud: 1")
}

func TestInvalidAllowedNamespacesAreReportedAndTheCloudIsPolled(t *testing.T) {
	f := newCloud(nil, server("a"))
	w := newWorld(t, home(func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn}}}
	}), f)
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "False InvalidConfiguration", "spec.allowedNamespaces")
	w.wantCondition(pcapi.StalledCondition, "True InvalidConfiguration")
	equal(t, "servers", &pcapi.CloudServers{Known: 1}, w.stored().Status.Servers)
	equal(t, "available for deletions", "", w.inv.View().Unavailable)
	w.later()
	equal(t, "calls", []string{"capabilities", "list", "list"}, f.TakeCalls())
	w.edit(func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
	w.reconcile()
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}

// known returns what this process holds for the Cloud home.
func (w *world) known() (metrics int, remembered bool) {
	for _, vec := range []*prometheus.GaugeVec{w.kind.gauge.servers, w.kind.gauge.ready, w.kind.gauge.braked, w.kind.gauge.listed, w.kind.gauge.took} {
		metrics += testutil.CollectAndCount(vec)
	}
	_, connected := w.kind.connected.Load("home")
	_, memory := w.kind.memories.Load("home")
	return metrics, connected || memory
}

func TestCloudIsForgottenOnceItIsDeletedOrAnotherManagers(t *testing.T) {
	tests := []struct {
		name string
		// during is whether the Cloud is deleted in the middle of a reconcile, and moved
		// whether its labels are changed instead, to those of another manager's Clouds.
		during, moved bool
	}{
		{name: "between two reconciles"},
		{name: "while it is listed", during: true},
		{name: "it moves to another manager between two reconciles", moved: true},
		{name: "it moves to another manager while it is listed", during: true, moved: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(nil, server("a"))
			w := newWorld(t, home(), f)
			w.selectClouds("shard!=east")
			w.reconcile()
			if metrics, remembered := w.known(); metrics == 0 || !remembered {
				t.Fatalf("%d metrics, remembered %t: nothing to forget", metrics, remembered)
			}
			remove := func() {
				if tc.moved {
					w.edit(func(c *pcapi.Cloud) { c.Labels = map[string]string{"shard": "east"} })
					w.writes = nil
					return
				}
				w.edit(func(c *pcapi.Cloud) { c.Finalizers = nil })
				if err := w.client.Delete(t.Context(), w.stored()); err != nil {
					t.Fatalf("Delete: %v", err)
				}
			}
			if tc.during {
				f.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
					if verb == cloudfake.ListServers {
						remove()
					}
				})
				w.later()
			} else {
				remove()
				w.reconcile()
			}
			metrics, remembered := w.known()
			equal(t, "metrics", 0, metrics)
			equal(t, "remembered", false, remembered)
			wantClosed(t, f)
			equal(t, "unavailable for those who hold the inventory", "the Cloud does not exist or has not been connected yet", w.inv.View().Unavailable)
			equal(t, "held", false, w.directory.Remove("home"))
			if tc.moved {
				f.TakeCalls()
				w.later()
				equal(t, "writes to another manager's Cloud", []string(nil), w.writes)
				equal(t, "calls to another manager's cloud", []string(nil), f.TakeCalls())
				equal(t, "held", false, w.directory.Remove("home"))
			}
		})
	}
}

// selectClouds begins a new process that reconciles only the Clouds that match a selector.
func (w *world) selectClouds(selector string) {
	w.t.Helper()
	scope, err := tenancy.ParseScope(selector)
	if err != nil {
		w.t.Fatalf("ParseScope: %v", err)
	}
	w.scope = scope
	w.start()
}

func TestReconcileOfAnUnknownCloudHoldsNothing(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil))
	if _, err := w.queue.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "typo"}}); err != nil {
		t.Fatalf("Reconcile: %v", err)
	}
	equal(t, "held", false, w.directory.Remove("typo"))
}
