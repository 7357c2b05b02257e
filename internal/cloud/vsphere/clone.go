package vsphere

import (
	"context"
	"errors"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// clone sends the create. If the name is taken already, the vCenter refuses the clone, at
// once or in its task.
func (c *creates) clone(ctx context.Context, op string, at *site, from template, id string, req cloud.CreateServer) (cloud.Result, error) {
	done, ok := c.folders.creating.choose(shortened(req.Folder))
	if !ok {
		return cloud.Result{}, refuse(op, cloud.Busy, "the folder %s is being removed", quote(req.Folder))
	}
	defer done()
	if !req.First {
		c.folders.forget(shortened(req.Folder))
	}
	in, remembered, err := c.folders.ensure(ctx, op, at, req.Folder)
	if err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, err))
	}
	if !req.First { // repeated creates would fill the vCenter's list of tasks with failures
		taken, err := child(ctx, at, in, req.Name)
		if err != nil {
			return cloud.Result{}, c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, err))
		}
		if taken != nil {
			existing, err := c.claims.holder(ctx, at, *taken, id, originOf(req))
			return resultOf(existing), c.faults.failed(ctx, op, err)
		}
	}
	task, err := c.sendClone(ctx, at, from, in, id, req)
	if remembered && refusedUntaken(err) { // the folder may be gone
		c.folders.forget(shortened(req.Folder))
		found, _, missing := c.folders.ensure(ctx, op, at, req.Folder)
		if missing != nil {
			return cloud.Result{}, c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, missing))
		}
		if found != in {
			in = found
			task, err = c.sendClone(ctx, at, from, in, id, req)
		}
	}
	if duplicate, ok := faultOf(err).(*types.DuplicateName); ok {
		existing, err := c.claims.holder(ctx, at, duplicate.Object, id, originOf(req))
		return resultOf(existing), c.faults.failed(ctx, op, err)
	}
	if err != nil {
		return cloud.Result{}, c.notCloned(ctx, op, at, err)
	}
	operation := operation{kind: createOperation, task: task.Value, server: id, request: digest(req)}
	if runs(req) && apart(req) {
		operation.kind = startOperation
	}
	if in != at.root { // which is never removed
		c.folders.creating.began(in, operation.task)
	}
	c.tasks.started(task)
	return cloud.Result{Operation: operation.String()}, nil
}

func (c *creates) sendClone(ctx context.Context, at *site, from template, in types.ManagedObjectReference, id string, req cloud.CreateServer) (task types.ManagedObjectReference, err error) {
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
func (c *creates) notCloned(ctx context.Context, op string, at *site, err error) error {
	if isGone(err) {
		c.templates.forget()
	}
	e := c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, err))
	if e.Kind == cloud.NotFound {
		e.Kind, e.Detail = cloud.Busy, "a part of the inventory was removed meanwhile: it is looked for again"
	}
	return changed(e, err)
}

// runs reports whether the new VM is to be powered on.
func runs(req cloud.CreateServer) bool { return req.PowerState != cloud.PowerOff }

// apart reports whether the new VM has an anti-affinity, so that it is put into a rule before
// it is powered on.
func apart(req cloud.CreateServer) bool { return req.AntiAffinity != cloud.AntiAffinity{} }

func (c *creates) cloneSpec(at *site, from template, id string, req cloud.CreateServer) types.VirtualMachineCloneSpec {
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
	if from.vApp && len(req.UserData) > 0 { // cloud-init prefers an OVF environment to the guestinfo keys
		spec.Config.VAppConfigRemoved = new(true)
	}
	spec.Location.DeviceChange, spec.Config.DeviceChange = adapters(from), from.disks.devices
	return spec
}

// mark returns the extraConfig of a new VM that is cloned from a template: an empty value removes a key.
func mark(req cloud.CreateServer, of template) []types.BaseOptionValue {
	labels := req.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	from := originOf(req)
	if from.Template == "" {
		from.Default = of.name
	}
	from.Disks = []slot{}
	for _, device := range of.devices.SelectByType((*types.VirtualDisk)(nil)) {
		from.Disks = append(from.Disks, slotOf(device))
	}
	return []types.BaseOptionValue{
		&types.OptionValue{Key: labelsKey, Value: encode(labels)},
		&types.OptionValue{Key: originKey, Value: encode(from)},
		&types.OptionValue{Key: detachedKey, Value: ""}, // that of the template
	}
}

func resultOf(server *cloud.Server) cloud.Result {
	if server == nil {
		return cloud.Result{}
	}
	return cloud.Result{Server: *server}
}
