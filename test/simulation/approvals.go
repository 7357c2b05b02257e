package simulation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// approvedFirst is the invariant of approvals.
const approvedFirst = "nothing is changed in the cloud that nobody approved"

// approvalChoices returns which plans a person may approve.
func (w *world) approvalChoices() []choice {
	var all []choice
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		plan := vm.Status.Plan
		if plan == nil || plan.Phase != pcapi.PlanPending || vm.Annotations[pcapi.ApprovedPlanAnnotation] == plan.Hash {
			continue
		}
		all = append(all, choice{class: finish, name: "a person approves the plan of VM " + vm.Name, do: func() {
			for _, change := range plan.Changes {
				w.approved[vm.UID] = append(w.approved[vm.UID], change.Action)
			}
			next := vm.DeepCopy()
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, pcapi.ApprovedPlanAnnotation, plan.Hash)
			_ = w.api.update(next)
		}})
	}
	return all
}

// checkApproved checks a change that arrives of the server with this id, or the create with this key: a
// person has approved such a change of its VM, if the VM requires that.
func (w *world) checkApproved(idOrKey string, approves func(pcapi.PlannedAction) bool) {
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		of := vm.Status.VMID == idOrKey || string(vm.UID) == idOrKey
		if !of || vm.Spec.Approval != pcapi.ApprovalRequired {
			continue
		}
		w.checked[approvedFirst]++
		if !slices.ContainsFunc(w.approved[vm.UID], approves) {
			w.violate(approvedFirst, "VM %s: approved were %v", vm.Name, w.approved[vm.UID])
		}
	}
}

// is returns whether an action is this one.
func is(action pcapi.PlannedAction) func(pcapi.PlannedAction) bool {
	return func(a pcapi.PlannedAction) bool { return a == action }
}

// changesServer reports whether an action changes a server that exists.
func changesServer(a pcapi.PlannedAction) bool {
	return a != pcapi.PlannedCreate && a != pcapi.PlannedDelete
}

// approvals are the actions that people approved, by the UID of the VM.
type approvals map[types.UID][]pcapi.PlannedAction
