package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// memoryStepMiB divides each amount of memory.
const memoryStepMiB = 4

// checkMemory refuses amounts that no VM of a vCenter can have, which answers them with a
// fault that names no field.
func checkMemory(op string, mib int) error {
	if mib%memoryStepMiB != 0 {
		return refuse(op, cloud.Rejected, "the memory of a VM on vSphere is a multiple of %d MiB, not %d MiB", memoryStepMiB, mib)
	}
	return nil
}

func reconfigure(ctx context.Context, at *site, vm entity, spec *types.VirtualMachineConfigSpec) (types.ManagedObjectReference, error) {
	res, err := methods.ReconfigVM_Task(ctx, at.vim, &types.ReconfigVM_Task{This: vm.ref, Spec: *spec})
	if err != nil {
		return types.ManagedObjectReference{}, err
	}
	return res.Returnval, nil
}

func hasPower(vm entity, want cloud.PowerState) bool {
	switch want {
	case cloud.PowerOn:
		return vm.state() == cloud.StateActive
	case cloud.PowerSuspended:
		return vm.state() == cloud.StateSuspended
	default:
		return vm.state() == cloud.StateStopped
	}
}

// switchPower begins to change the power state. A VM that is suspended resumes when it is powered on.
func switchPower(ctx context.Context, at *site, vm entity, want cloud.PowerState) (started types.ManagedObjectReference, err error) {
	switch want {
	case cloud.PowerOn:
		var res *types.PowerOnVM_TaskResponse
		if res, err = methods.PowerOnVM_Task(ctx, at.vim, &types.PowerOnVM_Task{This: vm.ref}); err == nil {
			started = res.Returnval
		}
	case cloud.PowerSuspended:
		var res *types.SuspendVM_TaskResponse
		if res, err = methods.SuspendVM_Task(ctx, at.vim, &types.SuspendVM_Task{This: vm.ref}); err == nil {
			started = res.Returnval
		}
	default:
		var res *types.PowerOffVM_TaskResponse
		if res, err = methods.PowerOffVM_Task(ctx, at.vim, &types.PowerOffVM_Task{This: vm.ref}); err == nil {
			started = res.Returnval
		}
	}
	return started, err
}

var errNeedsStop = &cloud.Error{Kind: cloud.NeedsStop, Code: "InvalidPowerState", Detail: "the VM does not allow CPU, memory or these disks to be changed while it runs"}
