package vsphere

import (
	"context"
	"maps"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// changes changes servers.
type changes struct {
	calls  *calls
	faults *faults
	vms    *vms
	rules  *rules
	tasks  *tasks
}

// update changes the size, the disks and the labels, or else the power state. Of a change of
// both, the vCenter gets the first alone: the power state still differs then, which is
// corrected next. A VM that is suspended is not powered off, since its memory would be lost.
func (c *changes) update(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	op := "update server " + quote(id)
	if len(update) == 0 {
		return cloud.Result{}, refuse(op, cloud.Rejected, "nothing to change was given")
	}
	for _, change := range update {
		if err := checkChange(op, change); err != nil {
			return cloud.Result{}, err
		}
	}
	ctx, end, err := c.calls.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	vm, at, err := c.vms.lookUp(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	spec, err := withDisks(ctx, at, vm, update, reconfiguration(vm, update))
	if err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, err)
	}
	power, switches := update.Power()
	var started types.ManagedObjectReference
	switch {
	case spec != nil:
		started, err = reconfigure(ctx, at, vm, spec)
	case !switches, hasPower(vm, power.State):
		return c.unchanged(ctx, op, at, vm)
	case vm.state() == cloud.StateSuspended && power.State == cloud.PowerOff, vm.state() == cloud.StateStopped && power.State == cloud.PowerSuspended:
		return cloud.Result{}, refuse(op, cloud.Busy, "the VM is %s", vm.state())
	case power.ShutsDown():
		if _, err := methods.ShutdownGuest(ctx, at.vim, &types.ShutdownGuest{This: vm.ref}); err != nil {
			return cloud.Result{}, changed(c.faults.fail(ctx, op, err), err)
		}
		return c.unchanged(ctx, op, at, vm)
	case power.State == cloud.PowerOn:
		started, err = c.rules.start(ctx, at, vm)
	default:
		started, err = switchPower(ctx, at, vm, power.State)
	}
	if err != nil {
		return cloud.Result{}, changed(c.faults.fail(ctx, op, resizeFault(vm, update, err)), err)
	}
	c.tasks.started(started)
	return cloud.Result{Operation: operation{kind: updateOperation, task: started.Value, server: id}.String()}, nil
}

// unchanged returns a VM as it was read.
func (c *changes) unchanged(ctx context.Context, op string, at *site, vm entity) (cloud.Result, error) {
	servers, err := c.vms.servers(ctx, at, []entity{vm})
	switch {
	case err != nil:
		return cloud.Result{}, c.faults.fail(ctx, op, err)
	case len(servers) == 0:
		return cloud.Result{}, refuse(op, cloud.Busy, "the VM is being created")
	}
	return cloud.Result{Server: servers[0]}, nil
}

// checkChange refuses a change that no VM of a vCenter can have.
func checkChange(op string, change cloud.ServerChange) error {
	switch change := change.(type) {
	case cloud.SetMemory:
		return checkMemory(op, int(change))
	case cloud.SetLabel:
		return checkLabel(op, change.Key, change.Value)
	case cloud.RemoveLabel:
		return checkLabel(op, string(change), "")
	case cloud.SetCPU, cloud.SetPower:
		return nil
	case cloud.SetDisk:
		switch {
		case change.Type != "":
			return refuse(op, cloud.Unsupported, "this cloud lacks diskTypes")
		case change.Keep:
			return refuse(op, cloud.Unsupported, "this cloud lacks keepDisks")
		}
		return nil
	case cloud.SetDiskKeep:
		return refuse(op, cloud.Unsupported, "this cloud lacks keepDisks")
	case cloud.SetRootDisk:
		return refuse(op, cloud.Unsupported, "this cloud lacks rootDisk")
	case cloud.SetFlavor:
		return refuse(op, cloud.Unsupported, "this cloud lacks flavors")
	default:
		return refuse(op, cloud.Unsupported, "this client cannot change %s", change)
	}
}

// reconfiguration returns the change of the size and the labels, nil if there is none.
// Its version makes the vCenter refuse it if the VM was changed since it was read:
// labels are merged with those that were read.
func reconfiguration(vm entity, update cloud.Update) *types.VirtualMachineConfigSpec {
	spec := &types.VirtualMachineConfigSpec{ChangeVersion: vm.text(versionPath)}
	labels := cloud.Server{Labels: map[string]string{}}
	maps.Copy(labels.Labels, vm.labels())
	changes := false
	for _, change := range update {
		switch change := change.(type) {
		case cloud.SetCPU:
			spec.NumCPUs = int32(change) //nolint:gosec // the spec bounds it
		case cloud.SetMemory:
			spec.MemoryMB = int64(change)
		case cloud.SetLabel, cloud.RemoveLabel:
			change.Apply(&labels)
		default:
			continue
		}
		changes = true
	}
	if !changes {
		return nil
	}
	if update.Has(cloud.LabelPart) {
		spec.ExtraConfig = []types.BaseOptionValue{&types.OptionValue{Key: labelsKey, Value: encode(labels.Labels)}}
	}
	return spec
}

// withDisks returns the change with that of the disks, nil if there is none.
func withDisks(ctx context.Context, at *site, vm entity, update cloud.Update, spec *types.VirtualMachineConfigSpec) (*types.VirtualMachineConfigSpec, error) {
	var list []cloud.Disk
	for _, change := range cloud.Changes[cloud.SetDisk](update) {
		list = append(list, cloud.Disk(change))
	}
	if len(list) == 0 {
		return spec, nil
	}
	read, err := retrieve(ctx, at.vim, "VirtualMachine", []string{devicePath}, vm.ref)
	if err != nil {
		return nil, err
	}
	if len(read) != 1 || len(devicesOf(read[0])) == 0 {
		return nil, refuse("", cloud.Unavailable, "the devices of the VM cannot be read")
	}
	wanted, _ := cloud.NewDisks(list)
	changes, err := changeDisks(devicesOf(read[0]), vm.slots(), wanted)
	if err != nil || len(changes.devices) == 0 {
		return spec, err
	}
	if spec == nil {
		spec = &types.VirtualMachineConfigSpec{ChangeVersion: vm.text(versionPath)}
	}
	spec.DeviceChange, spec.ExtraConfig = changes.devices, append(spec.ExtraConfig, changes.option())
	return spec, nil
}

// resizeFault returns err, or NeedsStop if a running VM does not allow the new size.
func resizeFault(vm entity, update cloud.Update, err error) error {
	if _, wrong := faultOf(err).(*types.InvalidPowerState); wrong && update.Resizes() && vm.state() == cloud.StateActive {
		return errNeedsStop
	}
	return err
}
