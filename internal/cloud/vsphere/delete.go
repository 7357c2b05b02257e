package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// deletes deletes servers.
type deletes struct {
	calls    *calls
	faults   *faults
	vms      *vms
	rules    *rules
	attached *attachedDisks
	tasks    *tasks
}

// remove powers the VM off and destroys it with its disks, without those that others
// attached. It fails with Conflict for a VM without an owner's mark.
func (d *deletes) remove(ctx context.Context, id string) (cloud.Result, error) {
	op := "delete server " + quote(id)
	ctx, end, err := d.calls.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	vm, at, err := d.vms.lookUp(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	if !vm.marked() {
		return cloud.Result{}, refuse(op, cloud.Conflict, "the VM does not carry the operator's mark, so it is not deleted: delete it in the vCenter if it is not needed")
	}
	if state := vm.state(); state == cloud.StateActive || state == cloud.StateSuspended {
		if err := d.powerOff(ctx, op, at, vm); err != nil {
			return cloud.Result{}, err
		}
	}
	d.rules.leave(ctx, at, vm)
	kept, err := d.attached.keep(ctx, op, at, vm)
	if err != nil {
		return cloud.Result{}, err
	}
	res, err := methods.Destroy_Task(ctx, at.vim, &types.Destroy_Task{This: vm.ref})
	if isGone(err) {
		return cloud.Result{Detached: kept}, refuse(op, cloud.NotFound, "the VM was deleted meanwhile")
	}
	if err != nil {
		return cloud.Result{Detached: kept}, changed(d.faults.fail(ctx, op, err), err)
	}
	d.tasks.started(res.Returnval)
	deletion := operation{kind: deleteOperation, task: res.Returnval.Value, server: id, folder: vm.reference(parentPath).Value}
	return cloud.Result{Operation: deletion.String(), Detached: kept}, nil
}

// isOff reports whether a VM was not powered off because it is off, or a vCenter destroys it
// as it is.
func isOff(fault types.BaseMethodFault) bool {
	_, off := fault.(*types.InvalidPowerState)
	return off
}

// powerOff powers the VM off, and waits a short time for it.
func (d *deletes) powerOff(ctx context.Context, op string, at *site, vm entity) error {
	started, err := switchPower(ctx, at, vm, cloud.PowerOff)
	if isOff(faultOf(err)) {
		return nil
	}
	if err != nil {
		return changed(d.faults.fail(ctx, op, err), err)
	}
	d.tasks.started(started)
	info, err := d.tasks.waitFor(ctx, at, started, transport.WorkTimeout)
	switch {
	case err != nil:
		return d.faults.fail(ctx, op, err)
	case info == nil, info.State == types.TaskInfoStateSuccess, info.Error != nil && isOff(info.Error.Fault):
		return nil
	}
	return refuse(op, cloud.Busy, "the VM is powered off before it is deleted, which takes a while")
}
