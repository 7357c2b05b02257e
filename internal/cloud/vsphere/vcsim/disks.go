package vcsim

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// Disks returns the sizes of the disks of a VM in GiB: under their names, and those without one
// as "unnamed-" and their number. The disk of the template is left out.
func Disks(vm *simulator.VirtualMachine) map[string]int {
	sizes := map[string]int{}
	for name, disk := range disks(vm) {
		sizes[name] = int(disk.CapacityInKB >> 20)
	}
	delete(sizes, "unnamed-0")
	return sizes
}

// RemoveDisk detaches and deletes the disk of this name of a VM.
func (s *Server) RemoveDisk(ctx context.Context, vm, name string) error {
	found := s.VM(vm)
	disk, ok := disks(found)[name]
	if !ok {
		return fmt.Errorf("the VM %s has no disk %s", vm, name)
	}
	return object.NewVirtualMachine(s.Admin.Client, found.Self).RemoveDevice(ctx, false, disk)
}

// disks returns the disks of a VM, as Disks names them.
func disks(vm *simulator.VirtualMachine) map[string]*types.VirtualDisk {
	var slots map[string]struct{ Controller, Unit int32 }
	decode(vm, "privatecloud.disks", &slots)
	named := map[string]*types.VirtualDisk{}
	for n, device := range object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualDisk)(nil)) {
		disk, _ := device.(*types.VirtualDisk)
		name := fmt.Sprintf("unnamed-%d", n)
		for of, at := range slots {
			if at.Controller == disk.ControllerKey && disk.UnitNumber != nil && at.Unit == *disk.UnitNumber {
				name = of
			}
		}
		named[name] = disk
	}
	return named
}
