package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the VM's own status fields and the NameChecked condition.
func (k *kind) Report(vm *pcapi.VM, obs *observation, outcome error) reconciler.Summary {
	if server := obs.Resource; server != nil && (vm.Status.VMID == "" || vm.Status.VMID == server.ID) {
		reportServer(vm, obs, *server)
	}
	if vm.Status.VMID == "" && reconciler.Reason(outcome) == pcapi.LostReason {
		recordLost(vm, obs)
	}
	if obs.Gone || obs.Displaced != nil {
		hideServer(vm)
	}
	if vm.Status.VMID == "" && obs.Claimed == "" && !obs.ClaimProved { // else the finalizer may be stored, too
		k.RecordClaim(vm, "", "")
	}
	if vm.Spec.ClassName == "" {
		vm.Status.Class = nil
	}
	if obs.Gone || obs.Resource != nil && !stopWanted(vm, obs) {
		vm.Status.ShutdownRequestedTime = nil
	}
	reportStop(vm, obs)
	reportRevert(vm, obs)
	reportOperation(vm, obs)
	k.reportName(vm, obs)
	vm.Status.State = state(vm, obs, outcome)
	reportGuest(vm, obs)
	reason := pcapi.RunningReason
	switch vm.Status.State {
	case pcapi.VMStateStopped:
		reason = pcapi.StoppedReason
	case pcapi.VMStateSuspended:
		reason = pcapi.SuspendedReason
	default:
	}
	requeue := obs.refresh
	if left := restartIn(vm, obs.Now); left > 0 && (requeue == 0 || left < requeue) {
		requeue = left
	}
	return reconciler.Summary{Reason: reason, Message: fmt.Sprintf("VM %s is as the spec says", vm.Status.VMID), RequeueAfter: requeue}
}

func reportOperation(vm *pcapi.VM, obs *observation) {
	operation, long := obs.LongOperation()
	if !long {
		vm.Status.Operation = nil
		return
	}
	vm.Status.Operation = &pcapi.VMOperation{
		ID: operation.ID, Kind: pcapi.VMOperationKind(operation.Kind), Since: reconciler.StatusTime(operation.Since),
	}
}

func reportServer(vm *pcapi.VM, obs *observation, server cloud.Server) {
	if refusesImport(vm, obs) {
		return
	}
	if vm.Status.VMID == "" {
		vm.Status.VMID, vm.Status.NameInCloud, vm.Status.Cloud = server.ID, server.Name, obs.Cloud
		vm.Status.CreatedTime = new(reconciler.StatusTime(obs.Now))
	}
	if ofAnother(vm, obs, server) {
		hideServer(vm)
		return
	}
	field.Report(vm, server, obs.Capabilities())
	switch {
	case server.State != cloud.StateActive, obs.utilizationUnknown:
		vm.Status.CPUUtilization = nil // it does nothing that an autoscaler could count, or nobody knows
		return
	case server.CPUUtilization == nil:
		return
	}
	now, last := int32(*server.CPUUtilization), vm.Status.CPUUtilization                   //nolint:gosec // 0-100
	if last == nil || abs(now-*last) >= int32(max(1, obs.View.Settings.UtilizationStep)) { //nolint:gosec // 1-100
		vm.Status.CPUUtilization = &now
	}
}

// recordLost records the server that a create made and that was gone before it was on record.
func recordLost(vm *pcapi.VM, obs *observation) {
	vm.Status.VMID, vm.Status.NameInCloud, vm.Status.Cloud = obs.Missing, obs.Claimed, obs.Cloud
	vm.Status.CreatedTime = new(reconciler.StatusTime(obs.Now))
	obs.MarkGone()
}

// hideServer removes from the status what the cloud reports of a server.
func hideServer(vm *pcapi.VM) {
	vm.Status.CPUUtilization = nil
	field.Hide(vm)
}

// refusesImport reports whether the server that the spec imports is not the VM's
// yet, because there is an objection to the import.
func refusesImport(vm *pcapi.VM, obs *observation) bool {
	if vm.Status.VMID != "" || vm.Spec.Import == nil {
		return false
	}
	unclaimed := obs.Claimed == "" || (!obs.Owned && obs.Capabilities().Has(cloud.Labels))
	read := obs.confirmed || obs.Owned && obs.Capabilities().Has(cloud.Labels)
	return obs.rival != nil || obs.importErr != nil || obs.Resource.Name != vm.Spec.VMName || !read ||
		(!observeOnly(vm) && unclaimed)
}

func abs(n int32) int32 { return max(n, -n) }

// reportName reports what is known of the name. A refusal stays until the name is checked again.
func (k *kind) reportName(vm *pcapi.VM, obs *observation) {
	c := metav1.Condition{Type: pcapi.NameCheckedCondition}
	refused := k.names.allRefused(vm) && obs.Claimed == vm.Spec.VMName && !obs.checked
	switch {
	case vm.Status.VMID != "", obs.nameErr == nil && !refused && (obs.checked || obs.Claimed == vm.Spec.VMName && !unchecked(vm, obs)):
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, pcapi.AvailableReason, fmt.Sprintf("the cloud lets %q be used", vm.Spec.VMName)
	case obs.freeSoon != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, pcapi.TakenReason, obs.freeSoon.Error()
	case obs.rival != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, pcapi.TakenReason, obs.rival.Error()
	case cloud.Is(obs.nameErr, cloud.Taken):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, pcapi.TakenReason, cloud.PublicMessage(obs.nameErr)
	case obs.nameErr != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, pcapi.ProhibitedReason, cloud.PublicMessage(obs.nameErr)
	case refused:
		return
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, pcapi.CheckFailedReason, "the cloud has not been asked yet whether the name may be used"
	}
	meta.SetStatusCondition(&vm.Status.Conditions, c)
}

func state(vm *pcapi.VM, obs *observation, outcome error) pcapi.VMState {
	switch server := obs.Resource; {
	case !vm.DeletionTimestamp.IsZero():
		return pcapi.VMStateDeleting
	case obs.Gone && vm.Status.VMID != "":
		return pcapi.VMStateLost
	case server != nil && vm.Status.VMID == server.ID:
		return stateOf(*server)
	case obs.Working && obs.Operation.Kind == external.OperationCreate:
		return pcapi.VMStateCreating
	case vm.Status.VMID != "":
		return vm.Status.State
	case reconciler.IsStalled(outcome):
		return pcapi.VMStateFailed
	default:
		return pcapi.VMStatePending
	}
}

// ReportReleased sets the state.
func (k *kind) ReportReleased(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateDeleting }

func stateOf(server cloud.Server) pcapi.VMState {
	switch server.State {
	case cloud.StateActive:
		return pcapi.VMStateRunning
	case cloud.StateStopped:
		return pcapi.VMStateStopped
	case cloud.StateSuspended:
		return pcapi.VMStateSuspended
	case cloud.StateBuilding:
		return pcapi.VMStateCreating
	case cloud.StateDeleting:
		return pcapi.VMStateDeleting
	default:
		return pcapi.VMStateFailed
	}
}
