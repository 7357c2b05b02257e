package vm

import (
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// recordStop records that the operator stops a server that it starts again, where nothing else
// says so.
func (c *changer) recordStop(ctx context.Context, vm *pcapi.VM) error {
	if vm.Spec.PowerState != pcapi.PowerUnmanaged || vm.Status.StoppedTime != nil {
		return nil
	}
	now := reconciler.StatusTime(c.Clock())
	return reconciler.WriteStatus(ctx, c.Client, vm, func() { vm.Status.StoppedTime = &now })
}

// reportStop removes the record of a stop once the server runs and is not to be stopped.
func reportStop(vm *pcapi.VM, obs *observation) {
	server := obs.Resource
	runs := server != nil && server.State == cloud.StateActive && !obs.Working && (obs.refusal != "" || !stopWanted(vm, obs))
	if runs || obs.Gone || vm.Spec.PowerState != pcapi.PowerUnmanaged {
		vm.Status.StoppedTime = nil
	}
}

// keepsSuspended returns the outcome for a change of the size or the disks of a server that is
// to stay suspended: its memory would not match. It returns nil for any other.
func keepsSuspended(vm *pcapi.VM, obs *observation, update cloud.Update) error {
	if obs.Resource.State != cloud.StateSuspended || update.Has(cloud.PowerPart) || !update.Resizes() {
		return nil
	}
	advice := "set spec.powerState to On or Off, or spec.updatePolicy to RestartAllowed, or set the size and the disks back"
	switch {
	case vm.Spec.PowerState == pcapi.PowerUnmanaged:
		advice = "resume or stop the VM, or set the size and the disks back"
	case obs.refusal != "":
		advice = "before it was suspended, the cloud refused them: " + obs.refusal + "; set spec.powerState to On or Off, or edit them"
	}
	return reconciler.Stalled(pcapi.NeedsRestartReason, controller.RecheckRefused, fmt.Errorf(
		"VM %s is suspended, and its size and its disks are changed only when it is not: %s", obs.Resource.ID, advice))
}
