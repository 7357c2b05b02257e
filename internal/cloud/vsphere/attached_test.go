package vsphere

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// filed makes a disk one with a file.
func filed(device types.BaseVirtualDevice, file string, change ...func(*types.VirtualDisk)) types.BaseVirtualDevice {
	disk, _ := device.(*types.VirtualDisk)
	disk.Backing = &types.VirtualDiskFlatVer2BackingInfo{VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: file}}
	for _, apply := range change {
		apply(disk)
	}
	return disk
}

func TestOnlyDisksOfTheVMItselfAreDestroyedWithIt(t *testing.T) {
	const (
		home  = "[ds1] web/web.vmx"
		made  = `{"key":"k","disks":[{"controller":1000,"unit":0}]}`
		named = `{"data":{"controller":1000,"unit":1}}`
	)
	sharing := func(mode types.VirtualDiskSharing) func(*types.VirtualDisk) {
		return func(disk *types.VirtualDisk) {
			backing, _ := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
			backing.Sharing = string(mode)
		}
	}
	for name, tc := range map[string]struct {
		disk    types.BaseVirtualDevice
		origin  string
		foreign bool
	}{
		"that of the template":                            {disk: filed(attached(0, 1), "[ds1] web/web.vmdk"), origin: made},
		"that of the template, after a snapshot":          {disk: filed(attached(0, 1), "[ds1] web/web-000001.vmdk"), origin: made},
		"that of the template, that nobody shares":        {disk: filed(attached(0, 1), "[ds1] web/web.vmdk", sharing(types.VirtualDiskSharingSharingNone)), origin: made},
		"one with a name":                                 {disk: filed(attached(1, 1), "[ds1] web/web_1.vmdk"), origin: made},
		"in the VM's folder, at another unit":             {disk: filed(attached(2, 1), "[ds1] web/web_2.vmdk"), origin: made, foreign: true},
		"in the VM's folder, of a template without disks": {disk: filed(attached(2, 1), "[ds1] web/web_2.vmdk"), origin: `{"key":"k","disks":[]}`, foreign: true},
		"with a name, of a template without disks":        {disk: filed(attached(1, 1), "[ds1] web/web_1.vmdk"), origin: `{"key":"k","disks":[]}`},
		"in the VM's folder, of a VM of an older version": {disk: filed(attached(2, 1), "[ds1] web/web_2.vmdk"), origin: `{"key":"k"}`},
		"in the VM's folder, of a VM that was imported":   {disk: filed(attached(2, 1), "[ds1] web/web_2.vmdk")},
		"in another folder, of a VM that was imported":    {disk: filed(attached(0, 1), "[ds1] web2/web.vmdk"), foreign: true},
		"in another folder, at the template's unit":       {disk: filed(attached(0, 1), "[ds1] backup/web.vmdk"), origin: made, foreign: true},
		"in a folder below":                               {disk: filed(attached(0, 1), "[ds1] web/old/web.vmdk"), origin: made, foreign: true},
		"in a folder of the name on another datastore":    {disk: filed(attached(0, 1), "[ds2] web/web.vmdk"), origin: made, foreign: true},
		"without a file":                                  {disk: filed(attached(0, 1), ""), origin: made, foreign: true},
		"a first class disk, as of a volume plugin":       {disk: filed(attached(0, 1), "[ds1] web/fcd.vmdk", func(d *types.VirtualDisk) { d.VDiskId = &types.ID{Id: "1"} }), origin: made, foreign: true},
		"shared with other VMs":                           {disk: filed(attached(0, 1), "[ds1] web/web.vmdk", sharing(types.VirtualDiskSharingSharingMultiWriter)), origin: made, foreign: true},
		"a raw device mapping": {disk: filed(attached(0, 1), "", func(d *types.VirtualDisk) {
			d.Backing = &types.VirtualDiskRawDiskMappingVer1BackingInfo{VirtualDeviceFileBackingInfo: types.VirtualDeviceFileBackingInfo{FileName: "[ds1] web/rdm.vmdk"}}
		}), origin: made, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			vm := entity{props: map[string]types.AnyType{
				filesPath: home, extraPath(originKey): types.OptionValue{Key: originKey, Value: tc.origin}, extraPath(disksKey): types.OptionValue{Key: disksKey, Value: named},
			}}
			if got := len(vm.foreign(object.VirtualDeviceList{scsi(1000), tc.disk})) > 0; !cmp.Equal(got, tc.foreign) {
				t.Errorf("counts as a disk of others: %t, want %t", got, tc.foreign)
			}
		})
	}
}

func TestFilesOfDetachedDisksAreBoundedAndOfThisVM(t *testing.T) {
	many := make([]string, 3*maxDetached)
	for n := range many {
		many[n] = "[ds1] many/disk.vmdk"
	}
	one := encode([]string{"[ds1] volumes/a.vmdk"})
	for name, tc := range map[string]struct {
		value, origin string
		devices       object.VirtualDeviceList
		want          int
	}{
		"one":                            {value: one, want: 1},
		"more than are kept":             {value: encode(many), want: maxDetached},
		"one that is attached again":     {value: one, devices: object.VirtualDeviceList{scsi(1000), filed(attached(1, 1), "[ds1] volumes/a.vmdk")}},
		"those of a VM that was copied":  {value: one, origin: `{"key":"another"}`},
		"a text that somebody has typed": {value: "volumes/a.vmdk"},
	} {
		t.Run(name, func(t *testing.T) {
			vm := entity{props: map[string]types.AnyType{
				uuidPath: "11111111-2222-4333-8444-555555555555", devicePath: types.ArrayOfVirtualDevice{VirtualDevice: tc.devices},
				extraPath(detachedKey): types.OptionValue{Key: detachedKey, Value: tc.value}, extraPath(originKey): types.OptionValue{Key: originKey, Value: tc.origin},
			}}
			if got := len(vm.detached()); got != tc.want {
				t.Errorf("%d files, want %d", got, tc.want)
			}
		})
	}
}
