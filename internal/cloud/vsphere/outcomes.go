package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// outcomes finds the VMs of tasks that have ended.
type outcomes struct {
	faults    *faults
	sites     *sites
	vms       *vms
	claims    *claims
	templates *templates
	refs      *refs
}

// after returns the VM of a task that took effect, nil unless it is certain that it is the one
// of the operation: then a search finds out.
func (o *outcomes) after(ctx context.Context, at *site, what operation, ref types.ManagedObjectReference) (*cloud.Server, error) {
	if ref.Type != "VirtualMachine" {
		return nil, nil //nolint:nilnil // the task does not say which one it is, and that is no error
	}
	vm, err := o.vms.look(ctx, at, ref)
	if vm == nil || err != nil || !vm.inside || vm.flag(templatePath) || vm.text(uuidPath) != what.server || what.creates() && !vm.created() {
		return nil, err
	}
	o.refs.put(ref, what.server)
	servers, err := o.vms.servers(ctx, at, []entity{*vm})
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	return &servers[0], nil
}

// failed returns the state of a task that ended with a fault.
func (o *outcomes) failed(ctx context.Context, op string, at *site, what operation, info *types.TaskInfo) (cloud.Operation, error) {
	state := cloud.Operation{Done: true, ServerID: what.server}
	var fault types.BaseMethodFault
	var message string
	if info.Error != nil {
		fault, message = info.Error.Fault, info.Error.LocalizedMessage
	}
	switch f := fault.(type) {
	case *types.DuplicateName:
		if what.creates() {
			return o.duplicate(ctx, at, what, info, f)
		}
	case *types.InvalidPowerState:
		if what.kind == updateOperation && f.ExistingState == f.RequestedState {
			return state, nil // it has the state that was asked for
		}
		if what.kind == updateOperation && f.ExistingState == types.VirtualMachinePowerStatePoweredOn { // only a change of the size needs another one
			needsStop := *errNeedsStop
			needsStop.Op = op
			state.Err = &needsStop
			return state, nil
		}
	case *types.ManagedObjectNotFound:
		if what.kind == deleteOperation {
			return state, nil
		}
		o.sites.drop(at) // if a part of it is missing, the next call finds out which
		o.templates.forget()
	case *types.InvalidDatastore, *types.InvalidDatastorePath:
		o.sites.drop(at)
	}
	state.Err = o.faults.ofTask(op, fault, message)
	if !what.creates() {
		return state, nil
	}
	// A clone can fail after it has made the VM, as when it cannot be started.
	vm, err := o.vms.byID(ctx, op, at, what.server)
	if err != nil && !cloud.Is(err, cloud.Displaced) {
		return cloud.Operation{}, err
	}
	if vm == nil {
		state.ServerID = ""
	}
	return state, nil
}

// cloneHold is for how long it is waited for the end of another clone of the same name.
const cloneHold = 15 * time.Minute

// duplicate returns the state of a create that found its name taken: it has taken
// effect if another request of the same create made the VM.
func (o *outcomes) duplicate(ctx context.Context, at *site, what operation, info *types.TaskInfo, fault *types.DuplicateName) (cloud.Operation, error) {
	taken := *errTaken
	taken.Op = "create server"
	vm, err := o.claims.marked(ctx, at, fault.Object, what.server)
	switch {
	case cloud.Is(err, cloud.Taken):
		return cloud.Operation{Done: true, Err: &taken}, nil
	case cloud.Uncertain(err):
		return o.unclear(ctx, at, info)
	case err != nil:
		return cloud.Operation{}, err
	}
	if key := vm.origin().Key; key == "" || idOf(key) != what.server {
		return cloud.Operation{Done: true, Err: &taken}, nil
	}
	if request := vm.origin().Request; what.request != "" && request != what.request {
		return cloud.Operation{Done: true, Err: refuse("create server", cloud.KeyReused, "%s", reusedDetail)}, nil
	}
	return cloud.Operation{Done: true, Progress: 100, ServerID: what.server}, nil
}

// unclear returns the state of a create whose name a VM has that is being cloned: whose it
// is shows when the clone has ended. A clone that does not end is no reason to wait for
// ever: the next create finds out what became of it.
func (o *outcomes) unclear(ctx context.Context, at *site, info *types.TaskInfo) (cloud.Operation, error) {
	now, err := methods.GetCurrentTime(ctx, at.vim) // the times of tasks are by the clock of the vCenter
	if err != nil {
		return cloud.Operation{}, err
	}
	since := info.QueueTime
	if info.CompleteTime != nil {
		since = *info.CompleteTime
	}
	if now.Sub(since) < cloneHold {
		return cloud.Operation{}, nil
	}
	return cloud.Operation{Done: true, Err: refuse("create server", cloud.Failed,
		"another clone in the vCenter has had this name for %s and has not ended: cancel its task, or choose another name", cloneHold)}, nil
}
