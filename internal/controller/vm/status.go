package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the VM's own status fields and the NameChecked condition.
func (k *kind) Report(vm *v1alpha1.VM, obs *observation, outcome error) reconciler.Summary {
	if server := obs.Resource; server != nil && (vm.Status.VMID == "" || vm.Status.VMID == server.ID) {
		reportServer(vm, obs, *server)
	}
	if obs.Gone {
		vm.Status.CPUUtilization, vm.Status.Host = nil, ""
	}
	reportName(vm, obs)
	vm.Status.State = state(vm, obs, outcome)
	reason := v1alpha1.RunningReason
	if vm.Status.State == v1alpha1.VMStateStopped {
		reason = v1alpha1.StoppedReason
	}
	return reconciler.Summary{Reason: reason, Message: fmt.Sprintf("VM %s is as the spec says", vm.Status.VMID), RequeueAfter: obs.refresh}
}

func reportServer(vm *v1alpha1.VM, obs *observation, server cloud.Server) {
	if refusesImport(vm, obs) {
		return
	}
	vm.Status.VMID = server.ID
	vm.Status.Host = server.Host
	vm.Status.Cloud = obs.Cloud
	if server.CPUUtilization == nil {
		return
	}
	now, last := int32(*server.CPUUtilization), vm.Status.CPUUtilization                   //nolint:gosec // 0-100
	if last == nil || abs(now-*last) >= int32(max(1, obs.View.Settings.UtilizationStep)) { //nolint:gosec // 1-100
		vm.Status.CPUUtilization = &now
	}
}

// refusesImport reports whether the server that the spec imports is not the VM's
// yet, because there is an objection to the import.
func refusesImport(vm *v1alpha1.VM, obs *observation) bool {
	if vm.Status.VMID != "" || vm.Spec.Import == nil {
		return false
	}
	unclaimed := obs.Claimed == "" || (!obs.Owned && obs.Capabilities().Has(cloud.Labels))
	return obs.rival != nil || obs.Resource.Name != vm.Spec.VMName ||
		(!observeOnly(vm) && unclaimed)
}

func abs(n int32) int32 { return max(n, -n) }

func reportName(vm *v1alpha1.VM, obs *observation) {
	c := metav1.Condition{Type: v1alpha1.NameCheckedCondition}
	switch {
	case vm.Status.VMID != "", obs.nameErr == nil && (obs.checked || obs.Claimed == vm.Spec.VMName):
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

func state(vm *v1alpha1.VM, obs *observation, outcome error) v1alpha1.VMState {
	switch server := obs.Resource; {
	case !vm.DeletionTimestamp.IsZero():
		return v1alpha1.VMStateDeleting
	case obs.Gone && vm.Status.VMID != "":
		return v1alpha1.VMStateLost
	case server != nil && vm.Status.VMID == server.ID:
		return stateOf(*server)
	case vm.Status.VMID != "":
		return vm.Status.State
	case reconciler.IsStalled(outcome):
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
