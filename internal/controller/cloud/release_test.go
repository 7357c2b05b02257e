package cloud

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
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
