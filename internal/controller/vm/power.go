package vm

import (
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// nextPower returns the next power state of a server on its way to that of the spec, nil if it
// has that. Between Off and Suspended, in both directions, it is On: no cloud suspends a server
// that does not run, and the guest of one that is suspended cannot be asked to shut down.
func nextPower(want pcapi.PowerState, has cloud.State) *cloud.PowerState {
	switch {
	case want == pcapi.PowerOff && has == cloud.StateStopped, want == pcapi.PowerSuspended && has == cloud.StateSuspended:
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
func keepsSuspended(server cloud.Server, change cloud.UpdateServer) error {
	if server.State != cloud.StateSuspended || change.PowerState != nil || !resizes(change) {
		return nil
	}
	return reconciler.Stalled(pcapi.NeedsRestartReason, external.RecheckRefused, fmt.Errorf(
		"VM %s is suspended, and its size and its disks are changed only when it is not: set spec.powerState to On or Off, or set the size and the disks back", server.ID))
}
