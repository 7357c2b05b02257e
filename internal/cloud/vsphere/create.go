package vsphere

import (
	"context"
	"errors"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// CreateServer clones a template. Of all calls with one key, name and folder, at most
// one makes a VM, whose name is unique in its folder.
func (c *Client) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	op := "create server " + quote(req.Name)
	if err := checkCreate(op, req); err != nil {
		return cloud.Result{}, err
	}
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	at, err := c.locate(ctx)
	if err != nil {
		return cloud.Result{}, c.fail(ctx, op, err)
	}
	id := idOf(req.IdempotencyKey)
	if existing, err := c.made(ctx, op, at, id, req); err != nil || existing != nil {
		return resultOf(existing), c.failed(ctx, op, err)
	}
	if err := c.checkSpot(at, req); err != nil {
		return cloud.Result{}, c.fail(ctx, op, err)
	}
	from, err := c.templates.get(ctx, c, at, req.Template)
	if err != nil {
		return cloud.Result{}, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	if from.networks, err = c.backings(ctx, at, req.Attachments()); err != nil {
		return cloud.Result{}, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	if from.disks, err = changeDisks(from.devices, nil, req.Disks); err != nil {
		return cloud.Result{}, c.fail(ctx, op, err)
	}
	return c.clone(ctx, op, at, from, id, req)
}

// checkCreate refuses what no VM of a vCenter can be.
func checkCreate(op string, req cloud.CreateServer) error {
	if err := checkName(op, req.Name); err != nil {
		return err
	}
	switch {
	case req.Addressed():
		return refuse(op, cloud.Unsupported, "this cloud lacks staticAddresses: let the user data set the addresses in the guest")
	case req.Flavor != "":
		return refuse(op, cloud.Unsupported, "this cloud lacks flavors")
	}
	for key, value := range req.Labels {
		if err := checkLabel(op, key, value); err != nil {
			return err
		}
	}
	if err := checkUserData(op, req.UserData); err != nil {
		return err
	}
	return checkMemory(op, req.MemoryMiB)
}

// checkSpot refuses a new VM where it cannot be created, or not be kept apart from others. That
// may change: what an earlier create has made is found all the same.
func (c *Client) checkSpot(at *site, req cloud.CreateServer) error {
	if err := c.checkZone(at, req.Zone); err != nil {
		return err
	}
	if apart(req) && !at.drs[at.spot(req.Zone).pool] {
		return errNoDRS
	}
	return nil
}

// made returns the VM that an earlier create with this key made, wherever it is now;
// nil if there is none. Before the first create with the key there is none, unless a
// listing has shown a VM with its id.
func (c *Client) made(ctx context.Context, op string, at *site, id string, req cloud.CreateServer) (*cloud.Server, error) {
	if req.IdempotencyKey == "" {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if _, listed := c.refs.find(id); req.First && !listed {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm, err := c.byID(ctx, op, at, id)
	if vm != nil && !vm.configured() {
		err = errUnreadable
	}
	switch {
	case errors.Is(err, errUnreadable):
		exists := *errUnreadable
		exists.Uncertain = true
		return nil, &exists
	case vm == nil || err != nil:
		return nil, c.misplaced(ctx, at, err)
	}
	if !vm.created() {
		return c.holder(ctx, at, vm.ref, id, originOf(req))
	}
	return c.claim(ctx, at, vm, id, originOf(req))
}

// clone sends the create. If the name is taken already, the vCenter refuses the clone, at
// once or in its task.
func (c *Client) clone(ctx context.Context, op string, at *site, from template, id string, req cloud.CreateServer) (cloud.Result, error) {
	done, ok := c.creating.choose(shortened(req.Folder))
	if !ok {
		return cloud.Result{}, refuse(op, cloud.Busy, "the folder %s is being removed", quote(req.Folder))
	}
	defer done()
	if !req.First {
		c.folders.forget(shortened(req.Folder))
	}
	in, remembered, err := c.ensureFolder(ctx, op, at, req.Folder)
	if err != nil {
		return cloud.Result{}, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	if !req.First { // repeated creates would fill the vCenter's list of tasks with failures
		taken, err := child(ctx, at, in, req.Name)
		if err != nil {
			return cloud.Result{}, c.fail(ctx, op, c.misplaced(ctx, at, err))
		}
		if taken != nil {
			existing, err := c.holder(ctx, at, *taken, id, originOf(req))
			return resultOf(existing), c.failed(ctx, op, err)
		}
	}
	task, err := c.sendClone(ctx, at, from, in, id, req)
	if remembered && refusedUntaken(err) { // the folder may be gone
		c.folders.forget(shortened(req.Folder))
		found, _, missing := c.ensureFolder(ctx, op, at, req.Folder)
		if missing != nil {
			return cloud.Result{}, c.fail(ctx, op, c.misplaced(ctx, at, missing))
		}
		if found != in {
			in = found
			task, err = c.sendClone(ctx, at, from, in, id, req)
		}
	}
	if duplicate, ok := faultOf(err).(*types.DuplicateName); ok {
		existing, err := c.holder(ctx, at, duplicate.Object, id, originOf(req))
		return resultOf(existing), c.failed(ctx, op, err)
	}
	if err != nil {
		return cloud.Result{}, c.notCloned(ctx, op, at, err)
	}
	operation := operation{kind: createOperation, task: task.Value, server: id, request: digest(req)}
	if runs(req) && apart(req) {
		operation.kind = startOperation
	}
	if in != at.root { // which is never removed
		c.creating.began(in, operation.task)
	}
	c.started(task)
	return cloud.Result{Operation: operation.String()}, nil
}

func (c *Client) sendClone(ctx context.Context, at *site, from template, in types.ManagedObjectReference, id string, req cloud.CreateServer) (task types.ManagedObjectReference, err error) {
	res, err := methods.CloneVM_Task(ctx, at.vim, &types.CloneVM_Task{This: from.ref, Folder: in, Name: req.Name, Spec: c.cloneSpec(at, from, id, req)})
	if err != nil {
		return task, err
	}
	return res.Returnval, nil
}

// refusedUntaken reports whether the vCenter refused a clone, and not because of its name.
func refusedUntaken(err error) bool {
	_, unclear := errors.AsType[*exchangeError](err)
	_, taken := faultOf(err).(*types.DuplicateName)
	return err != nil && faultOf(err) != nil && !unclear && !taken
}

// notCloned returns the error of a clone that the vCenter did not accept.
func (c *Client) notCloned(ctx context.Context, op string, at *site, err error) error {
	if isGone(err) {
		c.templates.forget()
	}
	e := c.fail(ctx, op, c.misplaced(ctx, at, err))
	if e.Kind == cloud.NotFound {
		e.Kind, e.Detail = cloud.Busy, "a part of the inventory was removed meanwhile: it is looked for again"
	}
	return changed(e, err)
}

// changed returns e as the error of a request that changes something.
func changed(e *cloud.Error, err error) *cloud.Error {
	exchange, ok := errors.AsType[*exchangeError](err)
	e.Uncertain = ok && exchange.sent
	return e
}

// runs reports whether the new VM is to be powered on.
func runs(req cloud.CreateServer) bool { return req.PowerState != cloud.PowerOff }

// apart reports whether the new VM has an anti-affinity, so that it is put into a rule before
// it is powered on.
func apart(req cloud.CreateServer) bool { return req.AntiAffinity != cloud.AntiAffinity{} }

func resultOf(server *cloud.Server) cloud.Result {
	if server == nil {
		return cloud.Result{}
	}
	return cloud.Result{Server: *server}
}

func (c *Client) cloneSpec(at *site, from template, id string, req cloud.CreateServer) types.VirtualMachineCloneSpec {
	in := at.spot(req.Zone)
	spec := types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Pool: &in.pool, Datastore: &in.datastore},
		PowerOn:  runs(req) && !apart(req),
		Config: &types.VirtualMachineConfigSpec{
			InstanceUuid: id, ExtraConfig: append(append(mark(req, from), from.disks.option()), guestInfo(id, req)...),
			NumCPUs: int32(req.CPU), MemoryMB: int64(req.MemoryMiB), //nolint:gosec // the spec bounds it
		},
	}
	if c.place.LinkedClones {
		spec.Location.DiskMoveType = string(types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking)
		spec.Snapshot = &from.snapshot
	}
	spec.Location.DeviceChange, spec.Config.DeviceChange = adapters(from), from.disks.devices
	return spec
}

const (
	// markHold is how long a VM may show without its mark, which comes a moment later.
	markHold = 2500 * time.Millisecond
	// firstLook is the pause before the second look at such a VM; it doubles after.
	firstLook = 20 * time.Millisecond
)

var (
	errNoMark = &cloud.Error{Kind: cloud.Unavailable, Uncertain: true, Detail: "a VM of this name is being created, and it is not known yet for whom"}
	errTaken  = &cloud.Error{Kind: cloud.Taken, Code: "DuplicateName", Detail: "the folder has a VM of this name"}
)

// reusedDetail says why a create is refused whose key another one has used.
const reusedDetail = "a VM was created for this object already, from another spec"

// holder returns the VM that has the name, if the create with this origin made it.
func (c *Client) holder(ctx context.Context, at *site, ref types.ManagedObjectReference, id string, asked origin) (*cloud.Server, error) {
	vm, err := c.marked(ctx, at, ref, id)
	if err != nil {
		return nil, err
	}
	return c.claim(ctx, at, vm, id, asked)
}

// marked returns the VM that has a name with the mark of its create. A VM shows before its mark does,
// so one without a mark is looked at again, until it is clear that it gets none.
func (c *Client) marked(ctx context.Context, at *site, ref types.ManagedObjectReference, id string) (*entity, error) {
	if ref.Type != "VirtualMachine" {
		return nil, errTaken
	}
	end := time.Now().Add(markHold)
	for pause := firstLook; ; pause *= 2 {
		vm, err := c.look(ctx, at, ref)
		switch {
		case err != nil:
			return nil, err
		case vm == nil:
			return nil, refuse("", cloud.Busy, "the VM that had the name was deleted meanwhile")
		case vm.created():
			return vm, nil
		case time.Now().After(end):
			return nil, unmarked(vm, id)
		}
		if !transport.Sleep(ctx, pause) {
			return nil, errNoMark
		}
	}
}

// unmarked says whose a VM is that got no mark.
func unmarked(vm *entity, id string) error {
	known := vm.text(uuidPath)
	switch {
	case known == id, known == "" && !vm.lost():
		return errNoMark
	}
	return errTaken
}

// claim returns the VM if the create with this origin made it.
func (c *Client) claim(ctx context.Context, at *site, vm *entity, id string, asked origin) (*cloud.Server, error) {
	switch from := vm.origin(); {
	case from.Key != asked.Key || asked.Key == "":
		return nil, errTaken
	case from.Request != asked.Request:
		return nil, refuse("", cloud.KeyReused, "%s", reusedDetail)
	}
	servers, err := c.servers(ctx, at, []entity{*vm})
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 || servers[0].ID != id {
		return nil, errNoMark
	}
	return &servers[0], nil
}
