package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxDisk bounds a disk, as vSphere does: 62 TiB, in MiB.
	maxDisk = 62 << 20
	// maxDeviceReads is of how many VMs the devices are read in one call.
	maxDeviceReads = 100
)

// diskChanges are what adds and grows disks.
type diskChanges struct {
	devices []types.BaseVirtualDeviceConfigSpec
	// mark is the new value of disksKey.
	mark string
}

// changeDisks returns how a VM with these devices gets disks, of which some are in slots.
func changeDisks(devices object.VirtualDeviceList, slots map[string]slot, wanted cloud.Disks) (diskChanges, error) {
	var changes diskChanges
	used := map[string]slot{}
	for name, at := range slots {
		if diskAt(devices, at) != nil { // another disk may get the slot of one that was removed
			used[name] = at
		}
	}
	for n, want := range wanted.List() {
		if want.SizeMiB > maxDisk {
			return changes, refuse("", cloud.Rejected, "the disk %s is larger than 62 TiB", quote(want.Name))
		}
		if at, ok := used[want.Name]; ok {
			switch disk := diskAt(devices, at); {
			case sizeOfDisk(disk) > want.SizeMiB:
				return changes, refuse("", cloud.Rejected, "the disk %s has %d MiB and cannot shrink", quote(want.Name), sizeOfDisk(disk))
			case sizeOfDisk(disk) < want.SizeMiB && snapshotted(disk):
				return changes, refuse("", cloud.Rejected, "the disk %s cannot grow while the VM has snapshots: delete its VMSnapshots, and its other snapshots, first", quote(want.Name))
			case sizeOfDisk(disk) < want.SizeMiB:
				changes.devices = append(changes.devices, grown(disk, want.SizeMiB))
			}
			continue
		}
		at, ok := freeSlot(devices)
		if !ok {
			return changes, refuse("", cloud.Rejected, "the VM has no SCSI controller with a free unit for the disk %s: add a controller to the template", quote(want.Name))
		}
		disk := newDisk(at, -int32(n)-100, want.SizeMiB)
		devices, used[want.Name] = append(slices.Clip(devices), disk), at
		changes.devices = append(changes.devices, &types.VirtualDeviceConfigSpec{
			Operation: types.VirtualDeviceConfigSpecOperationAdd, FileOperation: types.VirtualDeviceConfigSpecFileOperationCreate, Device: disk,
		})
	}
	if len(used) > 0 {
		changes.mark = encode(used)
	}
	return changes, nil
}

// option returns the extraConfig of the changes.
func (d diskChanges) option() types.BaseOptionValue {
	return &types.OptionValue{Key: disksKey, Value: d.mark}
}

func newDisk(at slot, key int32, mib int) *types.VirtualDisk {
	return &types.VirtualDisk{
		VirtualDevice: types.VirtualDevice{
			Key: key, ControllerKey: at.Controller, UnitNumber: new(at.Unit),
			Backing: &types.VirtualDiskFlatVer2BackingInfo{DiskMode: string(types.VirtualDiskModePersistent), ThinProvisioned: new(true)},
		},
		CapacityInKB: int64(mib) << 10, CapacityInBytes: int64(mib) << 20,
	}
}

func grown(disk *types.VirtualDisk, mib int) types.BaseVirtualDeviceConfigSpec {
	larger := *disk
	larger.CapacityInKB, larger.CapacityInBytes = int64(mib)<<10, int64(mib)<<20
	return &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: &larger}
}

// readDevices reads the devices of those VMs that have disks with names. The devices of a VM
// are long, and most VMs have no such disks.
func readDevices(ctx context.Context, at *site, vms []entity) (map[types.ManagedObjectReference]entity, error) {
	read := map[types.ManagedObjectReference]entity{}
	var refs []types.ObjectSpec
	for _, vm := range vms {
		if len(vm.slots()) > 0 {
			refs = append(refs, types.ObjectSpec{Obj: vm.ref})
		}
	}
	for some := range slices.Chunk(refs, maxDeviceReads) {
		found, err := collect(ctx, at.vim, types.PropertyFilterSpec{
			PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{devicePath}}}, ObjectSet: some, ReportMissingObjectsInResults: new(true),
		})
		if err != nil {
			return nil, err
		}
		for _, vm := range found {
			read[vm.ref] = vm
		}
	}
	return read, nil
}

// addDisks shows the disks of a VM on its server. If its devices cannot be read, its state is
// unknown: without them, its disks would seem to be gone.
func addDisks(server *cloud.Server, vm, read entity) {
	slots := vm.slots()
	if len(slots) == 0 {
		return
	}
	if _, ok := read.props[devicePath]; !ok {
		server.State = cloud.StateUnknown
		return
	}
	var list []cloud.Disk
	for name, at := range slots {
		if disk := diskAt(devicesOf(read), at); disk != nil {
			list = append(list, cloud.Disk{Name: name, SizeMiB: sizeOfDisk(disk)})
		}
	}
	server.Disks, _ = cloud.NewDisks(list)
}
