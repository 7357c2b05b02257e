package vsphere

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	filesPath = "config.files.vmPathName"
	// detachTries is how often disks are looked for before a VM is destroyed: others may attach
	// some meanwhile.
	detachTries = 3
	// maxDetached bounds the files of the disks that were detached from a VM for its deletion.
	maxDetached = 100
)

// attachedDisks keeps the disks that others attached to VMs that are deleted.
type attachedDisks struct {
	calls   *calls
	faults  *faults
	session *session
	tasks   *tasks
	log     logr.Logger
	// reads are those of the disks of the VMs.
	reads batch[types.ManagedObjectReference, attachments]
}

// keep detaches disks that others attached to a VM, since a vCenter destroys a VM with
// the files of all disks that are attached. It returns the files of those that this deletion or
// an earlier try has detached. Disks that snapshots of the VM have cannot be detached from these.
func (a *attachedDisks) keep(ctx context.Context, op string, at *site, vm entity) (kept []string, err error) {
	for range detachTries {
		found, snapshots, err := a.readAttached(ctx, op, at, vm)
		if err != nil {
			return nil, err
		}
		for _, snapshot := range snapshots {
			if disks := found.foreign(devicesOf(snapshot)); len(disks) > 0 {
				return nil, refuse(op, cloud.Rejected, "a snapshot of the VM has %s, which is not the VM's own and would be destroyed with it: delete the snapshots, or set spec.deletionPolicy to Orphan to keep the VM",
					strings.Join(quoteAll(filesOf(disks)), ", "))
			}
		}
		disks := found.foreign(devicesOf(found))
		if len(disks) == 0 {
			return quoteAll(found.detached()), nil
		}
		if err := a.detach(ctx, op, at, found, disks); err != nil {
			return nil, err
		}
	}
	return nil, refuse(op, cloud.Busy, "others attach disks to the VM, which are detached before its deletion")
}

// attachments are what was read of the disks of a VM and of its snapshots.
type attachments struct {
	vm        entity
	snapshots []entity
}

// readAttached reads what is known of the disks of a VM and of its snapshots. Deletions at the same
// time share a read.
func (a *attachedDisks) readAttached(ctx context.Context, op string, at *site, vm entity) (found entity, snapshots []entity, err error) {
	read, known, err := a.reads.get(ctx, vm.ref, time.Now(), func(refs []types.ManagedObjectReference, end func(map[types.ManagedObjectReference]attachments, error)) error {
		return a.calls.shared(ctx, func(ctx context.Context) {
			found, err := a.readAttachments(ctx, at, refs)
			end(found, err)
		})
	})
	a.reads.expire() // devices are long
	switch {
	case err != nil:
		return found, nil, a.faults.fail(ctx, op, err)
	case !known:
		return found, nil, refuse(op, cloud.NotFound, "the VM was deleted meanwhile")
	case read.vm.deviceless(), slices.ContainsFunc(read.snapshots, entity.deviceless), read.vm.text(filesPath) == "":
		return found, nil, refuse(op, cloud.Unavailable, "the disks of the VM cannot be read, of which some may not be its own")
	case read.vm.flag(templatePath):
		return found, nil, refuse(op, cloud.Displaced, "the VM was converted to a template: convert it to a VM again")
	}
	return read.vm, slices.DeleteFunc(slices.Clone(read.snapshots), entity.deleted), nil
}

// readAttachments reads the disks of VMs and of their snapshots.
func (a *attachedDisks) readAttachments(ctx context.Context, at *site, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]attachments, error) {
	all := make(map[types.ManagedObjectReference]attachments, len(refs))
	for some := range slices.Chunk(refs, maxDeviceReads) {
		var read map[types.ManagedObjectReference]entity
		err := a.session.sure(ctx, func() (missing bool, err error) {
			found, err := collect(ctx, at.vim, attachedSpec(some))
			read = make(map[types.ManagedObjectReference]entity, len(found))
			for _, one := range found {
				read[one.ref] = one
			}
			return err == nil && slices.ContainsFunc(found, entity.deviceless), err
		})
		if err != nil {
			return nil, err
		}
		for _, ref := range some {
			if vm, ok := read[ref]; ok && !vm.deleted() {
				all[ref] = attachments{vm: vm, snapshots: below(vm, rootSnapshotPath, read, nil)}
			}
		}
	}
	return all, nil
}

const (
	rootSnapshotPath  = "rootSnapshot"
	childSnapshotPath = "childSnapshot"
)

// attachedSpec selects VMs and their snapshots.
func attachedSpec(refs []types.ManagedObjectReference) types.PropertyFilterSpec {
	const snapshot = "VirtualMachineSnapshot"
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{
			{Type: "VirtualMachine", PathSet: []string{
				devicePath, filesPath, versionPath, uuidPath, templatePath, rootSnapshotPath, extraPath(originKey), extraPath(disksKey), extraPath(detachedKey),
			}},
			{Type: snapshot, PathSet: []string{devicePath, childSnapshotPath}},
		},
		ReportMissingObjectsInResults: new(true),
	}
	for n, ref := range refs {
		below := fmt.Sprintf("below%d", n)
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref, SelectSet: []types.BaseSelectionSpec{
			&types.TraversalSpec{Type: "VirtualMachine", Path: rootSnapshotPath, SelectSet: []types.BaseSelectionSpec{&types.SelectionSpec{Name: below}}},
			&types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: below}, Type: snapshot, Path: childSnapshotPath, SelectSet: []types.BaseSelectionSpec{&types.SelectionSpec{Name: below}}},
		}})
	}
	return spec
}

// below returns the snapshots to which a property of a VM or a snapshot leads. One that was not read
// has no devices.
func below(of entity, property string, read map[types.ManagedObjectReference]entity, onto []entity) []entity {
	refs, _ := of.props[property].(types.ArrayOfManagedObjectReference)
	for _, ref := range refs.ManagedObjectReference {
		snapshot, ok := read[ref]
		if !ok {
			snapshot = entity{ref: ref}
		}
		delete(read, ref) // each is in one tree, once
		onto = below(snapshot, childSnapshotPath, read, append(onto, snapshot))
	}
	return onto
}

// foreign returns those of the disks among devices that are not the VM's own. Its own are files
// in its folder on the datastore that no other VM shares. Of a VM that a create made, they are
// also where the template has its disks, or those with names were added.
func (s entity) foreign(devices object.VirtualDeviceList) []*types.VirtualDisk {
	var home object.DatastorePath
	home.FromString(s.text(filesPath))
	own := s.origin().Disks
	listed := own != nil
	for _, at := range s.slots() {
		own = append(own, at)
	}
	var foreign []*types.VirtualDisk
	for _, disk := range disksOf(devices) {
		var file object.DatastorePath
		inside := file.FromString(fileOf(disk)) && file.Datastore == home.Datastore && path.Dir(file.Path) == path.Dir(home.Path)
		known := !listed || slices.Contains(own, slotOf(disk))
		if !inside || !known || disk.VDiskId != nil || !exclusive(disk) {
			foreign = append(foreign, disk)
		}
	}
	return foreign
}

// detached returns the files of the disks that were detached from the VM for its deletion, without
// those that are attached again.
func (s entity) detached() []string {
	text, _ := s.extra(detachedKey)
	var files []string
	if s.copied() || json.Unmarshal([]byte(text), &files) != nil {
		return nil
	}
	attached := filesOf(disksOf(devicesOf(s)))
	files = slices.DeleteFunc(files, func(file string) bool { return slices.Contains(attached, file) })
	return files[:min(len(files), maxDetached)]
}

// detach removes disks from a VM and keeps their files, unless the VM has changed since it was
// read.
func (a *attachedDisks) detach(ctx context.Context, op string, at *site, vm entity, disks []*types.VirtualDisk) error {
	files := append(vm.detached(), filesOf(disks)...)
	spec := &types.VirtualMachineConfigSpec{
		ChangeVersion: vm.text(versionPath), ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: detachedKey, Value: encode(files[:min(len(files), maxDetached)])}},
	}
	for _, disk := range disks {
		spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: disk})
	}
	task, err := reconfigure(ctx, at, vm, spec)
	if err != nil {
		return changed(a.faults.fail(ctx, op, err), err)
	}
	a.log.Info("detaching disks that others attached to a VM that is deleted", "disks", filesOf(disks))
	a.tasks.started(task)
	info, err := a.tasks.waitFor(ctx, at, task, transport.WorkTimeout)
	switch {
	case err != nil:
		return a.faults.fail(ctx, op, err)
	case info == nil || info.State == types.TaskInfoStateSuccess:
		return nil
	case info.State == types.TaskInfoStateError && info.Error != nil:
		return a.faults.ofTask(op, info.Error.Fault, info.Error.LocalizedMessage)
	}
	return refuse(op, cloud.Busy, "%s, which is not the VM's own, is detached before the deletion, which takes a while, and keeps its file", strings.Join(quoteAll(filesOf(disks)), ", "))
}
