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
func (k *kind) Report(vm *v1alpha1.VM, seen *scope, verdict error) reconciler.Summary {
	return report(vm, seen, verdict)
}

func report(vm *v1alpha1.VM, seen *scope, verdict error) reconciler.Summary {
	if server := seen.server; server != nil && (vm.Status.VMID == "" || vm.Status.VMID == server.ID) {
		reportServer(vm, seen, *server)
	}
	if seen.gone {
		vm.Status.CPUUtilization, vm.Status.Host = nil, ""
	}
	reportName(vm, seen)
	reportCreated(vm, seen, verdict)
	reportDeleting(vm, verdict)
	vm.Status.State = state(vm, seen, verdict)
	return summary(vm, seen)
}

func reportServer(vm *v1alpha1.VM, seen *scope, server cloud.Server) {
	if refusesImport(vm, seen) {
		return
	}
	vm.Status.VMID = server.ID
	vm.Status.Host = server.Host
	vm.Status.Cloud = seen.cloud
	if server.CPUUtilization == nil {
		return
	}
	now, last := int32(*server.CPUUtilization), vm.Status.CPUUtilization                    //nolint:gosec // 0-100
	if last == nil || abs(now-*last) >= int32(max(1, seen.view.Settings.UtilizationStep)) { //nolint:gosec // 1-100
		vm.Status.CPUUtilization = &now
	}
}

// refusesImport: a server that was looked at for an import is not the VM's
// before every objection to the import is gone.
func refusesImport(vm *v1alpha1.VM, seen *scope) bool {
	if vm.Status.VMID != "" || vm.Spec.Import == nil {
		return false
	}
	unclaimed := seen.claimed == "" || (!seen.owned && seen.caps().Has(cloud.Labels))
	return seen.rival != nil || seen.server.Name != vm.Spec.VMName ||
		(vm.Spec.ManagementPolicy != v1alpha1.ManagementPolicyObserveOnly && unclaimed)
}

func abs(n int32) int32 { return max(n, -n) }

func reportName(vm *v1alpha1.VM, seen *scope) {
	c := metav1.Condition{Type: v1alpha1.NameCheckedCondition}
	switch {
	case vm.Status.VMID != "", seen.nameErr == nil && (seen.checked || seen.claimed == vm.Spec.VMName):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.AvailableReason, fmt.Sprintf("the cloud lets %q be used", vm.Spec.VMName)
	case seen.rival != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.TakenReason, seen.rival.Error()
	case cloud.Is(seen.nameErr, cloud.Taken):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.TakenReason, seen.nameErr.Error()
	case seen.nameErr != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ProhibitedReason, seen.nameErr.Error()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.CheckFailedReason, "the cloud has not been asked yet whether the name may be used"
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

func reportCreated(vm *v1alpha1.VM, seen *scope, verdict error) {
	last := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.CreatedCondition)
	c := metav1.Condition{Type: v1alpha1.CreatedCondition, Status: metav1.ConditionFalse}
	switch server := seen.server; {
	case seen.gone && vm.Status.VMID != "" && vm.DeletionTimestamp.IsZero():
		c.Reason, c.Message = v1alpha1.LostReason, verdictText(verdict)
	case server != nil && vm.Status.VMID == server.ID && server.State == cloud.StateBuilding:
		c.Reason, c.Message = v1alpha1.CreatingReason, fmt.Sprintf("the cloud is building VM %s", server.ID)
	case server != nil && vm.Status.VMID == server.ID:
		c.Status, c.Reason = metav1.ConditionTrue, seen.how
		if last != nil && last.Status == metav1.ConditionTrue {
			c.Reason = last.Reason
		}
		c.Message = fmt.Sprintf("VM %s on Cloud %q%s", server.ID, vm.Status.Cloud, caveat(seen.caps()))
	case vm.Status.VMID != "":
		return
	default:
		c.Reason, c.Message = createdReason(verdict), verdictText(verdict)
		if seen.denied == nil {
			c.Message += caveat(seen.caps())
		}
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

// createdReason says why there is no server yet, in the words of the Created condition.
func createdReason(verdict error) string {
	switch reason := reconciler.Reason(verdict); reason {
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

func reportDeleting(vm *v1alpha1.VM, verdict error) {
	if vm.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&vm.Status.Conditions, v1alpha1.DeletingCondition)
		return
	}
	c := metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Message: verdictText(verdict)}
	_, stalled := errors.AsType[*reconciler.StalledError](verdict)
	switch reason := reconciler.Reason(verdict); {
	case reason == v1alpha1.CloudUnavailableReason:
		c.Reason = v1alpha1.WaitingForCloudReason
	case stalled || reason == v1alpha1.BrakedReason:
		c.Reason = v1alpha1.BlockedReason
	default:
		c.Reason = v1alpha1.RequestedReason
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

func state(vm *v1alpha1.VM, seen *scope, verdict error) v1alpha1.VMState {
	_, stalled := errors.AsType[*reconciler.StalledError](verdict)
	switch server := seen.server; {
	case !vm.DeletionTimestamp.IsZero():
		return v1alpha1.VMStateDeleting
	case seen.gone && vm.Status.VMID != "":
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
func summary(vm *v1alpha1.VM, seen *scope) reconciler.Summary {
	switch {
	case !vm.DeletionTimestamp.IsZero() && seen.gone:
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("VM %s is gone from Cloud %q", vm.Status.VMID, seen.cloud)}
	case !vm.DeletionTimestamp.IsZero() && vm.Status.VMID != "":
		return reconciler.Summary{Reason: "Orphaned", Message: fmt.Sprintf("VM %s stays on Cloud %q and is nobody's now", vm.Status.VMID, seen.cloud)}
	case !vm.DeletionTimestamp.IsZero():
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("nothing of it is on Cloud %q", seen.cloud)}
	}
	reason := v1alpha1.RunningReason
	if vm.Status.State == v1alpha1.VMStateStopped {
		reason = v1alpha1.StoppedReason
	}
	return reconciler.Summary{Reason: reason, Message: fmt.Sprintf("VM %s is as the spec says", vm.Status.VMID), Again: seen.refresh}
}

func verdictText(verdict error) string {
	if verdict == nil {
		return ""
	}
	return verdict.Error()
}
