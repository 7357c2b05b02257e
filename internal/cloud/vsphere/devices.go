package vsphere

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// slot is where a disk is attached: the key of a controller and a unit of it.
type slot struct {
	Controller int32 `json:"controller"`
	Unit       int32 `json:"unit"`
}

// slotOf returns where a device is attached.
func slotOf(device types.BaseVirtualDevice) slot {
	of := device.GetVirtualDevice()
	at := slot{Controller: of.ControllerKey, Unit: -1}
	if of.UnitNumber != nil {
		at.Unit = *of.UnitNumber
	}
	return at
}

// diskAt returns the disk that is attached to a slot, nil if there is none.
func diskAt(devices object.VirtualDeviceList, at slot) *types.VirtualDisk {
	for _, device := range devices {
		disk, ok := device.(*types.VirtualDisk)
		if ok && slotOf(disk) == at {
			return disk
		}
	}
	return nil
}

// scsiUnits is the number of units of a SCSI controller, of which it has one itself.
const scsiUnits, scsiOwnUnit = 16, 7

// freeSlot returns a slot that no device has.
func freeSlot(devices object.VirtualDeviceList) (slot, bool) {
	controllers := devices.SelectByType((*types.VirtualSCSIController)(nil))
	slices.SortFunc(controllers, func(a, b types.BaseVirtualDevice) int {
		return cmp.Compare(a.GetVirtualDevice().Key, b.GetVirtualDevice().Key)
	})
	for _, controller := range controllers {
		key := controller.GetVirtualDevice().Key
		for unit := range int32(scsiUnits) {
			if unit != scsiOwnUnit && !slices.ContainsFunc(devices, func(device types.BaseVirtualDevice) bool {
				d := device.GetVirtualDevice()
				return d.ControllerKey == key && d.UnitNumber != nil && *d.UnitNumber == unit
			}) {
				return slot{Controller: key, Unit: unit}, true
			}
		}
	}
	return slot{}, false
}

// disksOf returns the disks among devices.
func disksOf(devices object.VirtualDeviceList) (disks []*types.VirtualDisk) {
	for _, device := range devices {
		if disk, ok := device.(*types.VirtualDisk); ok {
			disks = append(disks, disk)
		}
	}
	return disks
}

// exclusive reports whether a disk is a file of data that one VM writes to. A raw device mapping
// is a file that leads to a disk elsewhere.
func exclusive(disk *types.VirtualDisk) bool {
	sharing := ""
	switch backing := disk.Backing.(type) {
	case *types.VirtualDiskFlatVer2BackingInfo:
		sharing = backing.Sharing
	case *types.VirtualDiskRawDiskMappingVer1BackingInfo, *types.VirtualDiskRawDiskVer2BackingInfo, *types.VirtualDiskPartitionedRawDiskVer2BackingInfo:
		return false
	}
	return sharing == "" || sharing == string(types.VirtualDiskSharingSharingNone)
}

// fileOf returns the path of a disk on its datastore, empty if it has none.
func fileOf(disk *types.VirtualDisk) string {
	if backing, ok := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
		return backing.GetVirtualDeviceFileBackingInfo().FileName
	}
	return ""
}

func filesOf(disks []*types.VirtualDisk) []string {
	files := make([]string, 0, len(disks))
	for _, disk := range disks {
		files = append(files, transport.Truncate(fileOf(disk), maxText))
	}
	return files
}

func sizeOfDisk(disk *types.VirtualDisk) int {
	if disk.CapacityInBytes > 0 {
		return int(disk.CapacityInBytes >> 20)
	}
	return int(disk.CapacityInKB >> 10)
}

// snapshotted reports whether a disk is based on another one, as after a snapshot.
func snapshotted(disk *types.VirtualDisk) bool {
	backing, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
	return ok && backing.Parent != nil
}

// adaptersOf returns the network adapters among devices.
func adaptersOf(devices object.VirtualDeviceList) object.VirtualDeviceList {
	return devices.SelectByType((*types.VirtualEthernetCard)(nil))
}

// copied returns a shallow copy of a device, which is a pointer to a struct.
func copied(device types.BaseVirtualDevice) types.BaseVirtualDevice {
	original := reflect.ValueOf(device).Elem()
	same := reflect.New(original.Type())
	same.Elem().Set(original)
	return same.Interface().(types.BaseVirtualDevice) //nolint:forcetypeassert // it has the type of the original
}
