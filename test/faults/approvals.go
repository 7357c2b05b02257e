package faults

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func needsApproval(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalRequired }

// unapproved does a step after which the VM waits for an approval.
func unapproved(do step) step {
	return func(ctx context.Context, w *world) error {
		w.sent = len(w.stock.Ledger())
		err := do(ctx, w)
		w.expect(vm, waits)
		return err
	}
}

// approvePlan approves the plan of the VM, of which nothing was sent before.
func approvePlan(ctx context.Context, w *world) error {
	if sent := w.stock.Ledger()[w.sent:]; len(sent) > 0 {
		return fmt.Errorf("sent before the plan was approved: %+v", sent)
	}
	w.expect(vm, runs)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, pcapi.ApprovedPlanAnnotation, w.recorder.vm(vm).Status.Plan.Hash)
	return w.env.client.Patch(ctx, w.object(vm), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// waitsForApproval reports whether the status of a VM shows that its plan waits for an approval.
func waitsForApproval(vm *pcapi.VM) bool {
	if vm == nil || vm.Status.Plan == nil {
		return false
	}
	c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.ReadyCondition)
	return c != nil && c.Reason == pcapi.ApprovalRequiredReason && c.ObservedGeneration == vm.Generation && vm.Status.Plan.Phase == pcapi.PlanPending
}
