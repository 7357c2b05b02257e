package reconciler_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// TestStatusWriteOfChangedObject changes the stored object while a reconcile
// creates a server, whose id it records.
func TestStatusWriteOfChangedObject(t *testing.T) {
	editSpec := func(vm *pcapi.VM) { vm.Spec.CPU, vm.Generation = pcapi.Cores(2), 4 }
	tests := []struct {
		name    string
		outcome error
		change  func(h *harness)
		writes  int
		want    ctrl.Result
		id      string
	}{
		{name: "nothing changed: one write", change: func(*harness) {}, writes: 1, want: ctrl.Result{}, id: "s1"},
		{name: "spec edited: the id is recorded", change: func(h *harness) { h.edit(editSpec) }, writes: 2, id: "s1"},
		{name: "labels edited: the id is recorded", change: func(h *harness) {
			h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": "meanwhile"} })
		}, writes: 2, id: "s1"},
		{name: "status changed: requeued", change: func(h *harness) {
			vm := h.stored()
			vm.Status.Host = "changed"
			if err := h.client.Status().Update(h.t.Context(), vm); err != nil {
				h.t.Fatalf("Update: %v", err)
			}
		}, writes: 1, want: stale},
		{name: "spec edited, stalled: requeued", outcome: reconciler.Stalled("Taken", 0, errBroken), change: func(h *harness) { h.edit(editSpec) }, writes: 1, want: stale},
		{name: "edited before each write: requeued after four", change: func(h *harness) {
			h.decide = func(write) error {
				h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": time.Now().String()} })
				return nil
			}
		}, writes: 4, want: stale},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, example())
			h.kind.plan = func() ([]string, error) { return []string{"create"}, tc.outcome }
			h.kind.act = func(_ context.Context, vm *pcapi.VM, _ string) error {
				vm.Status.VMID = "s1"
				tc.change(h)
				return nil
			}
			equal(t, "result", tc.want, h.mustReconcile())
			h.wantWrites(tc.writes)
			h.decide = nil
			stored := h.stored()
			equal(t, "stored id", tc.id, stored.Status.VMID)
			if tc.id != "" {
				equal(t, "observedGeneration", int64(3), stored.Status.ObservedGeneration)
			}
		})
	}
}

func TestStatusIsNotSentAgainOnceTheObjectIsClaimed(t *testing.T) {
	for name, tc := range map[string]struct {
		finalizers []string
		want       ctrl.Result
	}{
		"claimed by another manager: requeued": {[]string{finalizer}, stale},
		"another finalizer: sent again":        {[]string{"example.com/other"}, ctrl.Result{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, example(unclaimed))
			h.kind.plan = func() ([]string, error) { return []string{"look"}, nil }
			h.kind.act = func(context.Context, *pcapi.VM, string) error {
				h.edit(func(vm *pcapi.VM) { vm.Finalizers = tc.finalizers })
				return nil
			}
			equal(t, "result", tc.want, h.mustReconcile())
		})
	}
}

func TestStatusIsNotWrittenOntoNamesake(t *testing.T) {
	h := newHarness(t, example())
	h.kind.observe = func(ctx context.Context, vm *pcapi.VM) error { return h.replace(ctx, vm) }
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantWrites(1)
	equal(t, "status of the namesake", pcapi.VMStatus{}, h.stored().Status)
}

// replace deletes the stored object and creates another one of its name.
func (h *harness) replace(ctx context.Context, vm *pcapi.VM) error {
	if err := h.forget(ctx, vm); err != nil {
		return err
	}
	return h.client.Create(ctx, example(func(vm *pcapi.VM) { vm.UID, vm.Finalizers = "uid-b", nil }))
}

// forget removes the stored object in spite of its finalizer.
func (h *harness) forget(ctx context.Context, vm *pcapi.VM) error {
	bare := vm.DeepCopy()
	if err := h.client.Get(ctx, client.ObjectKeyFromObject(vm), bare); err != nil {
		return err
	}
	bare.Finalizers = nil
	if err := h.client.Update(ctx, bare); err != nil {
		return err
	}
	return h.client.Delete(ctx, bare)
}

// TestNotFoundOfUnservedKindIsAnError: the API server answers 404 for each object
// of a kind while it does not serve the kind.
func TestNotFoundOfUnservedKindIsAnError(t *testing.T) {
	h := newHarness(t, example())
	h.refuse = apierrors.NewGenericServerResponse(404, "PATCH", vms, "a", "404 page not found", 0, true)
	if _, err := h.reconcile(); !apierrors.IsNotFound(err) {
		t.Errorf("Reconcile = %v, want the 404", err)
	}
	h.wantEvents()
}

func TestObservedGenerationIsNotSetBack(t *testing.T) {
	h := newHarness(t, example())
	h.kind.observe = func(ctx context.Context, _ *pcapi.VM) error {
		h.edit(func(vm *pcapi.VM) { vm.Generation = 4 })
		other := h.stored()
		other.Status.ObservedGeneration = 4
		other.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", ObservedGeneration: 4}}
		return h.client.Status().Update(ctx, other)
	}
	equal(t, "result", stale, h.mustReconcile())
	equal(t, "observedGeneration", int64(4), h.stored().Status.ObservedGeneration)
}
