package vsphere

import (
	"context"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// The kinds of operations.
const (
	createOperation = "create"
	// startOperation is a create whose VM is started after its clone has ended.
	startOperation  = "start"
	updateOperation = "update"
	deleteOperation = "delete"
)

// operation is a task of the vCenter, and what it is about. Its text is its id, which
// says after a restart what is left to do.
type operation struct {
	kind, task string
	// server is the id of the VM.
	server string
	// folder is the one that a deletion may leave empty.
	folder string
	// request is the digest of what a create asks for; empty in ids of older versions.
	request string
}

// creates reports whether it is a create.
func (o operation) creates() bool { return o.kind == createOperation || o.kind == startOperation }

func (o operation) String() string {
	return strings.TrimSuffix(strings.Join([]string{o.kind, o.task, o.server, o.folder + o.request}, "/"), "/")
}

// parseOperation reads an id. It reports false if it is of no operation.
func parseOperation(id string) (operation, bool) {
	parts := strings.Split(id, "/")
	if len(parts) == 3 {
		parts = append(parts, "")
	}
	if len(parts) != 4 || parts[1] == "" || parts[2] == "" {
		return operation{}, false
	}
	o := operation{kind: parts[0], task: parts[1], server: parts[2]}
	if o.creates() {
		o.request = parts[3]
	} else {
		o.folder = parts[3]
	}
	return o, o.creates() || o.kind == updateOperation || o.kind == deleteOperation
}

// GetOperation returns how far the vCenter is with a task.
func (c *Client) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	if id == "" {
		return cloud.Operation{}, refuse(op, cloud.Rejected, "no id was given")
	}
	what, ok := parseOperation(id)
	if !ok {
		return cloud.Operation{}, refuse(op, cloud.NotFound, "it is no id of an operation")
	}
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return cloud.Operation{}, err
	}
	defer end()
	at, err := c.locate(ctx)
	if err != nil {
		return cloud.Operation{}, c.fail(ctx, op, err)
	}
	info, err := c.task(ctx, at, what.task, time.Now().Add(-c.taskAge))
	if err == nil && info == nil {
		c.creating.ended(what.task)
		return cloud.Operation{}, refuse(op, cloud.NotFound, "the vCenter does not know the task any more")
	}
	if err != nil {
		return cloud.Operation{}, c.fail(ctx, op, err)
	}
	state, err := c.stateOf(ctx, op, at, what, info)
	if err != nil {
		return cloud.Operation{}, c.fail(ctx, op, err)
	}
	if state.Done {
		c.creating.ended(what.task)
	}
	return state, nil
}

func (c *Client) stateOf(ctx context.Context, op string, at *site, what operation, info *types.TaskInfo) (cloud.Operation, error) {
	state := cloud.Operation{ServerID: what.server, Progress: int(min(100, max(0, info.Progress)))}
	switch info.State {
	case types.TaskInfoStateSuccess:
		state.Done, state.Progress = true, 100
		var err error
		switch what.kind {
		case createOperation:
			made, _ := info.Result.(types.ManagedObjectReference)
			state.Server, err = c.after(ctx, at, what, made)
		case startOperation:
			return c.startCloned(ctx, op, at, what)
		case updateOperation:
			if info.Entity != nil {
				state.Server, err = c.after(ctx, at, what, *info.Entity)
			}
		case deleteOperation:
			state.Gone = c.destroyed(what, info)
			c.removeFolder(ctx, at, types.ManagedObjectReference{Type: "Folder", Value: what.folder})
		}
		return state, err
	case types.TaskInfoStateError:
		return c.failedTask(ctx, op, at, what, info)
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
func (c *Client) destroyed(what operation, info *types.TaskInfo) bool {
	return info.DescriptionId == destroyTask && info.Entity != nil && c.refs.id(*info.Entity) == what.server
}

// after returns the VM of a task that took effect, nil unless it is certain that it is the one
// of the operation: then a search finds out.
func (c *Client) after(ctx context.Context, at *site, what operation, ref types.ManagedObjectReference) (*cloud.Server, error) {
	if ref.Type != "VirtualMachine" {
		return nil, nil //nolint:nilnil // the task does not say which one it is, and that is no error
	}
	vm, err := c.look(ctx, at, ref)
	if vm == nil || err != nil || !vm.inside || vm.flag(templatePath) || vm.text(uuidPath) != what.server || what.creates() && !vm.created() {
		return nil, err
	}
	c.refs.put(ref, what.server)
	servers, err := c.servers(ctx, at, []entity{*vm})
	if err != nil || len(servers) == 0 {
		return nil, err
	}
	return &servers[0], nil
}

// failedTask returns the state of a task that ended with a fault.
func (c *Client) failedTask(ctx context.Context, op string, at *site, what operation, info *types.TaskInfo) (cloud.Operation, error) {
	state := cloud.Operation{Done: true, ServerID: what.server}
	var fault types.BaseMethodFault
	var message string
	if info.Error != nil {
		fault, message = info.Error.Fault, info.Error.LocalizedMessage
	}
	switch f := fault.(type) {
	case *types.DuplicateName:
		if what.creates() {
			return c.duplicate(ctx, at, what, info, f)
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
		c.dropSite(at) // if a part of it is missing, the next call finds out which
		c.templates.forget()
	case *types.InvalidDatastore, *types.InvalidDatastorePath:
		c.dropSite(at)
	}
	state.Err = c.faultOfTask(op, fault, message)
	if !what.creates() {
		return state, nil
	}
	// A clone can fail after it has made the VM, as when it cannot be started.
	vm, err := c.byID(ctx, op, at, what.server)
	if err != nil && !cloud.Is(err, cloud.Displaced) {
		return cloud.Operation{}, err
	}
	if vm == nil {
		state.ServerID = ""
	}
	return state, nil
}

// faultOfTask returns why a task failed. That it met something that passes says nothing
// about the calls of this client.
func (c *Client) faultOfTask(op string, fault types.BaseMethodFault, message string) *cloud.Error {
	if fault == nil {
		return refuse(op, cloud.Failed, "the vCenter gives no reason")
	}
	e := c.refused(op, 0, fault, message)
	switch e.Kind {
	case cloud.Unauthorized, cloud.Throttled, cloud.Unavailable, cloud.NotFound, cloud.Busy:
		e.Kind = cloud.Failed
	default:
	}
	return e
}

// cloneHold is for how long it is waited for the end of another clone of the same name.
const cloneHold = 15 * time.Minute

// duplicate returns the state of a create that found its name taken: it has taken
// effect if another request of the same create made the VM.
func (c *Client) duplicate(ctx context.Context, at *site, what operation, info *types.TaskInfo, fault *types.DuplicateName) (cloud.Operation, error) {
	taken := *errTaken
	taken.Op = "create server"
	vm, err := c.marked(ctx, at, fault.Object, what.server)
	switch {
	case cloud.Is(err, cloud.Taken):
		return cloud.Operation{Done: true, Err: &taken}, nil
	case cloud.Uncertain(err):
		return c.unclear(ctx, at, info)
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
func (c *Client) unclear(ctx context.Context, at *site, info *types.TaskInfo) (cloud.Operation, error) {
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
