package vm

import (
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// powerOf returns the power state that a VM is to have. One that is Unmanaged is to have what it
// has, unless the operator has stopped it: then it is started.
func powerOf(vm *pcapi.VM) pcapi.PowerState {
	if vm.Spec.PowerState == pcapi.PowerUnmanaged && vm.Status.StoppedTime != nil {
		return pcapi.PowerOn
	}
	return vm.Spec.PowerState
}

// recordStop records that the operator stops a server that it starts again, where nothing else
// says so.
func (k *kind) recordStop(ctx context.Context, vm *pcapi.VM) error {
	if vm.Spec.PowerState != pcapi.PowerUnmanaged || vm.Status.StoppedTime != nil {
		return nil
	}
	now := reconciler.StatusTime(k.Clock())
	return reconciler.WriteStatus(ctx, k.Client, vm, func() { vm.Status.StoppedTime = &now })
}

// reportStop removes the record of a stop once the server runs and is not to be stopped.
func reportStop(vm *pcapi.VM, obs *observation) {
	server := obs.Resource
	runs := server != nil && server.State == cloud.StateActive && !obs.Working && (obs.refusal != "" || !stopWanted(vm, *server, obs.Now))
	if runs || obs.Gone || vm.Spec.PowerState != pcapi.PowerUnmanaged {
		vm.Status.StoppedTime = nil
	}
}

// nextPower returns the next power state of a server on its way to that of the spec, nil if it
// has that. Between Off and Suspended, in both directions, it is On: no cloud suspends a server
// that does not run, and the guest of one that is suspended cannot be asked to shut down.
func nextPower(want pcapi.PowerState, has cloud.State) *cloud.PowerState {
	switch {
	case want == pcapi.PowerUnmanaged, want == pcapi.PowerOff && has == cloud.StateStopped, want == pcapi.PowerSuspended && has == cloud.StateSuspended:
		return nil
	case has == cloud.StateStopped, has == cloud.StateSuspended:
		return new(cloud.PowerOn)
	case want == pcapi.PowerOff:
		return new(cloud.PowerOff)
	case want == pcapi.PowerSuspended:
		return new(cloud.PowerSuspended)
	}
	return nil
}

// lacksPower returns the field of the spec if the cloud lacks its power state.
func lacksPower(vm *pcapi.VM, caps cloud.Capabilities) []string {
	switch {
	case vm.Spec.PowerState == pcapi.PowerOff && !caps.Has(cloud.Power):
		return []string{"powerState"}
	case vm.Spec.PowerState == pcapi.PowerSuspended && (!caps.Has(cloud.Power) || !caps.Has(cloud.Suspend)):
		return []string{"powerState Suspended"}
	}
	return nil
}

// keepsSuspended returns the outcome for a change of the size or the disks of a server that is
// to stay suspended: its memory would not match. It returns nil for any other.
func keepsSuspended(vm *pcapi.VM, obs *observation, change cloud.UpdateServer) error {
	if obs.Resource.State != cloud.StateSuspended || change.PowerState != nil || !resizes(change) {
		return nil
	}
	advice := "set spec.powerState to On or Off, or spec.updatePolicy to RestartAllowed, or set the size and the disks back"
	switch {
	case vm.Spec.PowerState == pcapi.PowerUnmanaged:
		advice = "resume or stop the VM, or set the size and the disks back"
	case obs.refusal != "":
		advice = "before it was suspended, the cloud refused them: " + obs.refusal + "; set spec.powerState to On or Off, or edit them"
	}
	return reconciler.Stalled(pcapi.NeedsRestartReason, external.RecheckRefused, fmt.Errorf(
		"VM %s is suspended, and its size and its disks are changed only when it is not: %s", obs.Resource.ID, advice))
}
