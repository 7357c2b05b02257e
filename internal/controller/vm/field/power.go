package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var power = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return append(lacksPower(vm, caps), when(LacksSoft(vm, caps), "powerOffMode")...)
	},
	Create: func(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
		if vm.Spec.PowerState == pcapi.PowerOff && in.Capabilities.Has(cloud.PowerAtCreate) {
			req.PowerState = cloud.PowerOff
		}
	},
	Change: func(vm *pcapi.VM, server cloud.Server) cloud.Update {
		if next := nextPower(PowerOf(vm), server.State); next != "" {
			return cloud.Update{cloud.SetPower{State: next}}
		}
		return nil
	},
	Unchangeable: func(vm *pcapi.VM, update cloud.Update, caps cloud.Capabilities) []string {
		switch {
		case !update.Has(cloud.PowerPart):
			return nil
		case !caps.Has(cloud.Power):
			return []string{"powerState"}
		case vm.Spec.PowerState == pcapi.PowerOff && LacksSoft(vm, caps):
			return []string{"powerOffMode"}
		}
		return lacksPower(vm, caps)
	},
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string {
		return when(req.PowerState == cloud.PowerOff, "powered off")
	},
}

// PowerOf returns the power state that a VM is to have. One that is Unmanaged is to have what it
// has, unless the operator has stopped it: then it is started.
func PowerOf(vm *pcapi.VM) pcapi.PowerState {
	if vm.Spec.PowerState == pcapi.PowerUnmanaged && vm.Status.StoppedTime != nil {
		return pcapi.PowerOn
	}
	return vm.Spec.PowerState
}

// nextPower returns the next power state of a server on its way to that of the spec; empty if it
// has that. Between Off and Suspended, in both directions, it is On: no cloud suspends a server
// that does not run, and the guest of one that is suspended cannot be asked to shut down.
func nextPower(want pcapi.PowerState, has cloud.State) cloud.PowerState {
	switch {
	case want == pcapi.PowerUnmanaged, want == pcapi.PowerOff && has == cloud.StateStopped, want == pcapi.PowerSuspended && has == cloud.StateSuspended:
		return ""
	case has == cloud.StateStopped, has == cloud.StateSuspended:
		return cloud.PowerOn
	case want == pcapi.PowerOff:
		return cloud.PowerOff
	case want == pcapi.PowerSuspended:
		return cloud.PowerSuspended
	}
	return ""
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

// LacksSoft reports whether the guest must be asked to shut down and the cloud cannot do that.
func LacksSoft(vm *pcapi.VM, caps cloud.Capabilities) bool {
	return vm.Spec.PowerOffMode == pcapi.PowerOffModeSoft && !caps.Has(cloud.SoftPowerOff)
}
