package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// operations says what became of changes.
type operations struct {
	calls    *calls
	faults   *faults
	sites    *sites
	tasks    *tasks
	folders  *folders
	outcomes *outcomes
	starts   *starts
	refs     *refs
}

// get returns how far the vCenter is with a task.
func (o *operations) get(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	if id == "" {
		return cloud.Operation{}, refuse(op, cloud.Rejected, "no id was given")
	}
	what, ok := parseOperation(id)
	if !ok {
		return cloud.Operation{}, refuse(op, cloud.NotFound, "it is no id of an operation")
	}
	ctx, end, err := o.calls.begin(ctx, op)
	if err != nil {
		return cloud.Operation{}, err
	}
	defer end()
	at, err := o.sites.locate(ctx)
	if err != nil {
		return cloud.Operation{}, o.faults.fail(ctx, op, err)
	}
	info, err := o.tasks.get(ctx, at, what.task, time.Now().Add(-o.tasks.age))
	if err == nil && info == nil {
		o.folders.creating.ended(what.task)
		return cloud.Operation{}, refuse(op, cloud.NotFound, "the vCenter does not know the task any more")
	}
	if err != nil {
		return cloud.Operation{}, o.faults.fail(ctx, op, err)
	}
	state, err := o.stateOf(ctx, op, at, what, info)
	if err != nil {
		return cloud.Operation{}, o.faults.fail(ctx, op, err)
	}
	if state.Done {
		o.folders.creating.ended(what.task)
	}
	return state, nil
}

func (o *operations) stateOf(ctx context.Context, op string, at *site, what operation, info *types.TaskInfo) (cloud.Operation, error) {
	state := cloud.Operation{ServerID: what.server, Progress: int(min(100, max(0, info.Progress)))}
	switch info.State {
	case types.TaskInfoStateSuccess:
		state.Done, state.Progress = true, 100
		var err error
		switch what.kind {
		case createOperation:
			made, _ := info.Result.(types.ManagedObjectReference)
			state.Server, err = o.outcomes.after(ctx, at, what, made)
		case startOperation:
			return o.starts.advance(ctx, op, at, what)
		case updateOperation:
			if info.Entity != nil {
				state.Server, err = o.outcomes.after(ctx, at, what, *info.Entity)
			}
		case deleteOperation:
			state.Gone = o.destroyed(what, info)
			o.folders.remove(ctx, at, types.ManagedObjectReference{Type: "Folder", Value: what.folder})
		}
		return state, err
	case types.TaskInfoStateError:
		return o.outcomes.failed(ctx, op, at, what, info)
	default:
	}
	if what.creates() {
		state.ServerID = "" // it is not found before the task has ended
	}
	return state, nil
}

// destroyTask is the kind of task that destroys a VM.
const destroyTask = "VirtualMachine.destroy"

// destroyed reports whether a task that took effect destroyed the VM of the operation. A
// vCenter that was restored from a backup gives the names of tasks again.
func (o *operations) destroyed(what operation, info *types.TaskInfo) bool {
	return info.DescriptionId == destroyTask && info.Entity != nil && o.refs.id(*info.Entity) == what.server
}
