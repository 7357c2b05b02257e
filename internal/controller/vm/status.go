package vm

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the VM's own status and conditions from what the pass saw.
func (k *kind) Report(vm *v1alpha1.VM, obs *scope, outcome error) reconciler.Summary {
	return report(vm, obs, outcome)
}

func report(vm *v1alpha1.VM, obs *scope, outcome error) reconciler.Summary {
	if server := obs.server; server != nil && (vm.Status.VMID == "" || vm.Status.VMID == server.ID) {
		reportServer(vm, obs, *server)
	}
	if obs.gone {
		vm.Status.CPUUtilization, vm.Status.Host = nil, ""
	}
	reportName(vm, obs)
	reportCreated(vm, obs, outcome)
	reportDeleting(vm, outcome)
	vm.Status.State = state(vm, obs, outcome)
	return summary(vm, obs)
}

func reportServer(vm *v1alpha1.VM, obs *scope, server cloud.Server) {
	if refusesImport(vm, obs) {
		return
	}
	vm.Status.VMID = server.ID
	vm.Status.Host = server.Host
	vm.Status.Cloud = obs.cloud
	if server.CPUUtilization == nil {
		return
	}
	now, last := int32(*server.CPUUtilization), vm.Status.CPUUtilization                   //nolint:gosec // 0-100
	if last == nil || abs(now-*last) >= int32(max(1, obs.view.Settings.UtilizationStep)) { //nolint:gosec // 1-100
		vm.Status.CPUUtilization = &now
	}
}

// refusesImport: a server that was looked at for an import is not the VM's
// before every objection to the import is gone.
func refusesImport(vm *v1alpha1.VM, obs *scope) bool {
	if vm.Status.VMID != "" || vm.Spec.Import == nil {
		return false
	}
	unclaimed := obs.claimed == "" || (!obs.owned && obs.caps().Has(cloud.Labels))
	return obs.rival != nil || obs.server.Name != vm.Spec.VMName ||
		(vm.Spec.ManagementPolicy != v1alpha1.ManagementPolicyObserveOnly && unclaimed)
}

func abs(n int32) int32 { return max(n, -n) }

func reportName(vm *v1alpha1.VM, obs *scope) {
	c := metav1.Condition{Type: v1alpha1.NameCheckedCondition}
	switch {
	case vm.Status.VMID != "", obs.nameErr == nil && (obs.checked || obs.claimed == vm.Spec.VMName):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.AvailableReason, fmt.Sprintf("the cloud lets %q be used", vm.Spec.VMName)
	case obs.rival != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.TakenReason, obs.rival.Error()
	case cloud.Is(obs.nameErr, cloud.Taken):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.TakenReason, obs.nameErr.Error()
	case obs.nameErr != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ProhibitedReason, obs.nameErr.Error()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.CheckFailedReason, "the cloud has not been asked yet whether the name may be used"
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

func reportCreated(vm *v1alpha1.VM, obs *scope, outcome error) {
	last := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.CreatedCondition)
	c := metav1.Condition{Type: v1alpha1.CreatedCondition, Status: metav1.ConditionFalse}
	switch server := obs.server; {
	case obs.gone && vm.Status.VMID != "" && vm.DeletionTimestamp.IsZero():
		c.Reason, c.Message = v1alpha1.LostReason, outcomeText(outcome)
	case server != nil && vm.Status.VMID == server.ID && server.State == cloud.StateBuilding:
		c.Reason, c.Message = v1alpha1.CreatingReason, fmt.Sprintf("the cloud is building VM %s", server.ID)
	case server != nil && vm.Status.VMID == server.ID:
		c.Status, c.Reason = metav1.ConditionTrue, obs.how
		if last != nil && last.Status == metav1.ConditionTrue {
			c.Reason = last.Reason
		}
		c.Message = fmt.Sprintf("VM %s on Cloud %q%s", server.ID, vm.Status.Cloud, caveat(obs.caps()))
	case vm.Status.VMID != "":
		return
	default:
		c.Reason, c.Message = createdReason(outcome), outcomeText(outcome)
		if obs.denied == nil {
			c.Message += caveat(obs.caps())
		}
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

// createdReason says why there is no server yet, in the words of the Created condition.
func createdReason(outcome error) string {
	switch reason := reconciler.Reason(outcome); reason {
	case v1alpha1.OutcomeUnknownReason, v1alpha1.RejectedReason, v1alpha1.QuotaExceededReason, v1alpha1.AmbiguousReason:
		return reason
	case v1alpha1.UnsupportedReason:
		return v1alpha1.RejectedReason
	default:
		return v1alpha1.PendingReason
	}
}

// caveat states what the cloud cannot guarantee about creates.
func caveat(caps cloud.Capabilities) string {
	switch {
	case caps == nil, caps.Has(cloud.Idempotency), caps.Has(cloud.UniqueNames):
		return ""
	case caps.Has(cloud.Labels):
		return "; this cloud has neither idempotency keys nor unique names: should the answer to a create be lost, two servers may exist for a while, and the younger is removed"
	default:
		return "; this cloud has neither idempotency keys, unique names nor labels: should the answer to a create be lost, a server may be left that only a person can attribute"
	}
}

func reportDeleting(vm *v1alpha1.VM, outcome error) {
	if vm.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&vm.Status.Conditions, v1alpha1.DeletingCondition)
		return
	}
	c := metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Message: outcomeText(outcome)}
	_, stalled := errors.AsType[*reconciler.StalledError](outcome)
	switch reason := reconciler.Reason(outcome); {
	case reason == v1alpha1.CloudUnavailableReason:
		c.Reason = v1alpha1.WaitingForCloudReason
	case stalled || reason == v1alpha1.BrakedReason:
		c.Reason = v1alpha1.BlockedReason
	default:
		c.Reason = v1alpha1.RequestedReason
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

func state(vm *v1alpha1.VM, obs *scope, outcome error) v1alpha1.VMState {
	_, stalled := errors.AsType[*reconciler.StalledError](outcome)
	switch server := obs.server; {
	case !vm.DeletionTimestamp.IsZero():
		return v1alpha1.VMStateDeleting
	case obs.gone && vm.Status.VMID != "":
		return v1alpha1.VMStateLost
	case server != nil && vm.Status.VMID == server.ID:
		return stateOf(*server)
	case vm.Status.VMID != "":
		return vm.Status.State
	case stalled:
		return v1alpha1.VMStateFailed
	default:
		return v1alpha1.VMStatePending
	}
}

func stateOf(server cloud.Server) v1alpha1.VMState {
	switch server.State {
	case cloud.StateActive:
		return v1alpha1.VMStateRunning
	case cloud.StateStopped:
		return v1alpha1.VMStateStopped
	case cloud.StateBuilding:
		return v1alpha1.VMStateCreating
	case cloud.StateDeleting:
		return v1alpha1.VMStateDeleting
	default:
		return v1alpha1.VMStateFailed
	}
}

// summary is what a VM in sync says, and the last word on one that is gone.
func summary(vm *v1alpha1.VM, obs *scope) reconciler.Summary {
	switch {
	case !vm.DeletionTimestamp.IsZero() && obs.gone:
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("VM %s is gone from Cloud %q", vm.Status.VMID, obs.cloud)}
	case !vm.DeletionTimestamp.IsZero() && vm.Status.VMID != "":
		return reconciler.Summary{Reason: "Orphaned", Message: fmt.Sprintf("VM %s stays on Cloud %q and is nobody's now", vm.Status.VMID, obs.cloud)}
	case !vm.DeletionTimestamp.IsZero():
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("nothing of it is on Cloud %q", obs.cloud)}
	}
	reason := v1alpha1.RunningReason
	if vm.Status.State == v1alpha1.VMStateStopped {
		reason = v1alpha1.StoppedReason
	}
	return reconciler.Summary{Reason: reason, Message: fmt.Sprintf("VM %s is as the spec says", vm.Status.VMID), RequeueAfter: obs.refresh}
}

func outcomeText(outcome error) string {
	if outcome == nil {
		return ""
	}
	return outcome.Error()
}
