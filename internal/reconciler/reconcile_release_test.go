package reconciler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestReleasedObjectIsNotPatched(t *testing.T) {
	h := newHarness(t, example(deleted))
	h.kind.summary = reconciler.Summary{Reason: "Deleted", Message: "it is 100% gone"}
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	writes := h.takeWrites()
	if len(writes) != 1 || writes[0].To != "object" {
		t.Errorf("writes %v, want the release alone", writes)
	}
	h.wantEvents("Normal Deleted Delete: it is 100% gone")
	err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &pcapi.VM{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("Get = %v, want the object gone", err)
	}
}

func TestPausedObjectIsNotReportedAsReleased(t *testing.T) {
	ready := func(vm *pcapi.VM) {
		vm.Finalizers = []string{"example.com/backup"}
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
	}
	h := newHarness(t, example(deleted, ready, func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} }))
	h.mustReconcile()
	h.wantWrites(0)
}

// TestStatusThatCouldNotBeWrittenAtTheReleaseIsWrittenLater, whatever enqueues the object meanwhile.
func TestStatusThatCouldNotBeWrittenAtTheReleaseIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
			vm.Finalizers = append(vm.Finalizers, "example.com/backup")
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
		}))
		h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
		h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
			return reconciler.Release(ctx, h.client, vm, finalizer)
		}
		h.decide = func(w write) error {
			if w.To == "status" {
				return errBroken
			}
			return nil
		}
		after := h.mustReconcile().RequeueAfter
		equal(t, "time until the status is written", 3*time.Minute, after)
		<-time.After(time.Minute)
		equal(t, "time until then after an event", 2*time.Minute, h.mustReconcile().RequeueAfter)
		<-time.After(2 * time.Minute)
		h.decide = nil
		h.mustReconcile()
		equal(t, "Ready", metav1.ConditionFalse, meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition).Status)
	})
}

// TestReleasedObjectIsReportedLater: the process that released the object was killed before it wrote the status.
func TestReleasedObjectIsReportedLater(t *testing.T) {
	h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
		vm.Finalizers = []string{"example.com/backup"}
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
	}))
	h.reconciler.Released = func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateDeleting }
	h.refuse = errBroken
	if _, err := h.reconcile(); err == nil {
		t.Fatal("the status was not written, want an error")
	}
	h.refuse = nil
	h.takeWrites()
	h.mustReconcile()
	h.wantWrites(1)
	ready := meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition)
	equal(t, "Ready", []string{"False", "Released"}, []string{string(ready.Status), ready.Reason})
	equal(t, "state", pcapi.VMStateDeleting, h.stored().Status.State)
	h.mustReconcile()
	h.wantWrites(0)
}

func TestReleasedObjectThatAnotherFinalizerKeepsIsReportedAsDeleted(t *testing.T) {
	h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
		vm.Finalizers = append(vm.Finalizers, "example.com/backup")
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}, {Type: pcapi.StalledCondition, Status: metav1.ConditionTrue, Reason: "Blocked"}}
	}))
	h.kind.summary = reconciler.Summary{Reason: "Deleted", Message: "it is gone"}
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantWrites(2)
	h.wantEvents("Normal Deleted Delete: it is gone")
	conditions := h.stored().Status.Conditions
	ready := meta.FindStatusCondition(conditions, pcapi.ReadyCondition)
	equal(t, "Ready", []string{"False", "Deleted", "it is gone; finalizers of other controllers keep this object"}, []string{string(ready.Status), ready.Reason, ready.Message})
	if stalled := meta.FindStatusCondition(conditions, pcapi.StalledCondition); stalled != nil {
		t.Errorf("Stalled is %v", stalled)
	}
	h.mustReconcile()
	h.wantWrites(0)
}

// TestReleasedObjectIsNotReconciledFromAStaleCache: an event that arrives before
// the deletion does reads the object with its finalizer.
func TestReleasedObjectIsNotReconciledFromAStaleCache(t *testing.T) {
	h := newHarness(t, example(deleted))
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	h.reconciler.Client = &cached{Client: h.client, vm: h.stored()}
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantWrites(0)
	equal(t, "calls", []string(nil), h.kind.calls)
}
