package vcsim

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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

// AttachDisk makes a disk and attaches it to a VM, as an administrator does: a file such as
// volumes/a.vmdk on its datastore, or one in the folder of the VM if it is empty. It returns the
// path of the file.
func (s *Server) AttachDisk(ctx context.Context, vm *simulator.VirtualMachine, file string) (string, error) {
	datastore := s.Model.Map().Get(vm.Datastore[0]).(*simulator.Datastore) //nolint:forcetypeassert // it is one
	if file != "" {
		file = fmt.Sprintf("[%s] %s", datastore.Name, file)
		if err := os.MkdirAll(filepath.Dir(s.fileOf(file)), 0o700); err != nil {
			return "", err
		}
	}
	machine := object.NewVirtualMachine(s.Admin.Client, vm.Self)
	devices, err := machine.Device(ctx)
	if err != nil {
		return "", err
	}
	controller, err := devices.FindDiskController("")
	if err != nil {
		return "", err
	}
	disk := devices.CreateDisk(controller, datastore.Self, file)
	disk.CapacityInKB = 1 << 20
	if err := machine.AddDevice(ctx, disk); err != nil {
		return "", err
	}
	files := filesOf(vm)
	return files[len(files)-1], nil
}

// HasFile reports whether a file exists on its datastore.
func (s *Server) HasFile(file string) bool {
	_, err := os.Stat(s.fileOf(file))
	return err == nil
}

// fileOf returns the file of a path such as "[datastore] folder/file".
func (s *Server) fileOf(text string) string {
	var p object.DatastorePath
	p.FromString(text)
	datastore := s.Model.Map().FindByName(p.Datastore, datastores(s)).(*simulator.Datastore) //nolint:forcetypeassert // it is one
	return filepath.Join(datastore.Info.GetDatastoreInfo().Url, p.Path)
}

func datastores(s *Server) []types.ManagedObjectReference {
	var all []types.ManagedObjectReference
	for _, datastore := range s.Model.Map().All("Datastore") {
		all = append(all, datastore.Reference())
	}
	return all
}

// filesOf returns the files of the disks of a VM.
func filesOf(vm *simulator.VirtualMachine) []string {
	var files []string
	for _, device := range object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualDisk)(nil)) {
		if backing, ok := device.GetVirtualDevice().Backing.(types.BaseVirtualDeviceFileBackingInfo); ok {
			files = append(files, backing.GetVirtualDeviceFileBackingInfo().FileName)
		}
	}
	return files
}

// keepUnattached keeps the folder of a VM that is destroyed, if it has disks that are not
// attached to the VM. The simulator removes it with all that is in it.
func (s *Server) keepUnattached(ctx *simulator.Context, vm *simulator.VirtualMachine) {
	ctx.WithLock(vm, func() {
		home := path.Dir(vm.Config.Files.VmPathName)
		all, _ := filepath.Glob(filepath.Join(s.fileOf(home), "*.vmdk"))
		attached := filesOf(vm)
		for _, file := range all {
			if name := filepath.Base(file); !strings.HasSuffix(name, "-flat.vmdk") && !slices.Contains(attached, path.Join(home, name)) {
				vm.Config.Files.LogDirectory = ""
			}
		}
	})
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

// DiskFiles returns the files of the disks of the VM of a name.
func (s *Server) DiskFiles(vm string) []string { return filesOf(s.VM(vm)) }
