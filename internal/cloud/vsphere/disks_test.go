package vsphere

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// attached returns a disk of GiB in a unit of the controller 1000.
func attached(unit int32, gib int) types.BaseVirtualDevice {
	disk := newDisk(slot{1000, unit}, 2000+unit, gib<<10)
	disk.CapacityInBytes = 0 // as older versions report it
	return disk
}

// based makes a disk one that is based on another, as after a snapshot.
func based(device types.BaseVirtualDevice) types.BaseVirtualDevice {
	backing, _ := device.GetVirtualDevice().Backing.(*types.VirtualDiskFlatVer2BackingInfo)
	backing.Parent = &types.VirtualDiskFlatVer2BackingInfo{}
	return device
}

func scsi(key int32) types.BaseVirtualDevice {
	controller := &types.ParaVirtualSCSIController{}
	controller.Key = key
	return controller
}

func TestChangeDisks(t *testing.T) {
	full := object.VirtualDeviceList{scsi(1000)}
	for unit := range int32(scsiUnits) {
		if unit != scsiOwnUnit {
			full = append(full, attached(unit, 1))
		}
	}
	six := object.VirtualDeviceList{scsi(1000)}
	for unit := range int32(scsiOwnUnit) {
		six = append(six, attached(unit, 1))
	}
	for name, test := range map[string]struct {
		devices object.VirtualDeviceList
		slots   map[string]slot
		wanted  cloud.Disks
		// changes are "operation controller:unit MiB"; mark is what disksKey has then.
		changes []string
		mark    string
		err     string
	}{
		"none": {devices: object.VirtualDeviceList{scsi(1000), attached(0, 5)}},
		"two are added: the next units": {devices: object.VirtualDeviceList{scsi(1000), attached(0, 5)}, wanted: "a=1024 b=2048",
			changes: []string{"add 1000:1 1024", "add 1000:2 2048"}, mark: `{"a":{"controller":1000,"unit":1},"b":{"controller":1000,"unit":2}}`},
		"the unit of the controller itself is not used": {devices: six, wanted: "a=1024", changes: []string{"add 1000:8 1024"}, mark: `{"a":{"controller":1000,"unit":8}}`},
		"the first controller is full: the second":      {devices: append(object.VirtualDeviceList{scsi(1001)}, full...), wanted: "a=1024", changes: []string{"add 1001:0 1024"}, mark: `{"a":{"controller":1001,"unit":0}}`},
		"no unit is free":                   {devices: full, wanted: "a=1024", err: `no SCSI controller with a free unit for the disk "a"`},
		"no SCSI controller":                {devices: object.VirtualDeviceList{attached(0, 5)}, wanted: "a=1024", err: "no SCSI controller"},
		"one grows":                         {devices: object.VirtualDeviceList{scsi(1000), attached(1, 1)}, slots: map[string]slot{"a": {1000, 1}}, wanted: "a=2048", changes: []string{"edit 1000:1 2048"}, mark: `{"a":{"controller":1000,"unit":1}}`},
		"one would grow and has a snapshot": {devices: object.VirtualDeviceList{scsi(1000), based(attached(1, 1))}, slots: map[string]slot{"a": {1000, 1}}, wanted: "a=2048", err: "while the VM has snapshots"},
		"it has the size":                   {devices: object.VirtualDeviceList{scsi(1000), attached(1, 1)}, slots: map[string]slot{"a": {1000, 1}}, wanted: "a=1024", mark: `{"a":{"controller":1000,"unit":1}}`},
		"one would shrink":                  {devices: object.VirtualDeviceList{scsi(1000), attached(1, 2)}, slots: map[string]slot{"a": {1000, 1}}, wanted: "a=1024", err: "cannot shrink"},
		"larger than vSphere's":             {devices: object.VirtualDeviceList{scsi(1000)}, wanted: "a=65011713", err: "larger than 62 TiB"},
		"one was removed, and another gets its unit: the removed one is forgotten": {devices: object.VirtualDeviceList{scsi(1000), attached(0, 5)}, slots: map[string]slot{"a": {1000, 1}}, wanted: "b=1024",
			changes: []string{"add 1000:1 1024"}, mark: `{"b":{"controller":1000,"unit":1}}`},
		"one that the call does not name stays": {devices: object.VirtualDeviceList{scsi(1000), attached(1, 1)}, slots: map[string]slot{"a": {1000, 1}}, wanted: "b=1024",
			changes: []string{"add 1000:0 1024"}, mark: `{"a":{"controller":1000,"unit":1},"b":{"controller":1000,"unit":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := changeDisks(test.devices, test.slots, test.wanted)
			if test.err != "" {
				if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want Rejected: %s", err, test.err)
				}
				return
			}
			var changes []string
			for _, device := range got.devices {
				change := device.GetVirtualDeviceConfigSpec()
				disk, _ := change.Device.(*types.VirtualDisk)
				changes = append(changes, fmt.Sprintf("%s %d:%d %d", change.Operation, disk.ControllerKey, *disk.UnitNumber, sizeOfDisk(disk)))
			}
			if err != nil || !cmp.Equal(test.changes, changes) || got.mark != test.mark {
				t.Errorf("changes %v, mark %s, %v; want %v, %s", changes, got.mark, err, test.changes, test.mark)
			}
		})
	}
}

func TestServerWhoseDevicesCannotBeReadHasAnUnknownState(t *testing.T) {
	vm := entity{props: map[string]types.AnyType{extraPath(disksKey): types.OptionValue{Key: disksKey, Value: `{"a":{"controller":1000,"unit":1}}`}}}
	server := cloud.Server{State: cloud.StateActive}
	addDisks(&server, vm, entity{})
	if server.State != cloud.StateUnknown || server.Disks != "" {
		t.Errorf("state %s, disks %q", server.State, server.Disks)
	}
	server.State = cloud.StateActive
	addDisks(&server, vm, entity{props: map[string]types.AnyType{devicePath: types.ArrayOfVirtualDevice{VirtualDevice: []types.BaseVirtualDevice{attached(1, 3)}}}})
	if server.State != cloud.StateActive || server.Disks != "a=3072" {
		t.Errorf("state %s, disks %q", server.State, server.Disks)
	}
}
