package field

import (
	"cmp"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Disks are the disks.
var Disks = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		switch needs := disksOf(vm).Needs(); {
		case len(needs) == 0 || caps.HasAll(needs...):
			return nil
		case !caps.Has(cloud.WithDisks):
			return []string{"disks"}
		case slices.Contains(needs, cloud.DiskTypes) && !caps.Has(cloud.DiskTypes):
			return []string{diskTypes}
		default:
			return []string{diskPolicy}
		}
	},
	Create: func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.Disks = disksOf(vm) },
	Change: diskChange,
	Drift:  diskDrift,
	Report: func(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) {
		vm.Status.Disks = diskStatus(vm, server, caps)
	},
	// Which disks the VM had must be known to find that one was removed, and which are kept to find these in the cloud.
	Hide: func(vm *pcapi.VM) {
		for i := range vm.Status.Disks {
			vm.Status.Disks[i].Size, vm.Status.Disks[i].Type = "", ""
		}
	},
	Shown: func(vm *pcapi.VM, server *cloud.Server) {
		var shown []cloud.Disk
		for _, disk := range vm.Status.Disks {
			if size := mibOf(disk.Size); size > 0 && !disk.Lost {
				shown = append(shown, cloud.Disk{Name: disk.Name, SizeMiB: size, Type: disk.Type, Keep: disk.DeletionPolicy == pcapi.VMDiskKeep})
			}
		}
		server.Disks, _ = cloud.NewDisks(shown)
	},
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) (parts []string) {
		for _, disk := range req.Disks.List() {
			parts = append(parts, fmt.Sprintf("disk %s %s%s", approval.Quoted(disk.Name), mib(disk.SizeMiB), asAsked(disk)))
		}
		return parts
	},
	DescribeUpdate: func(s cloud.Server, update cloud.Update) (parts []string) {
		for _, disk := range cloud.Changes[cloud.SetDisk](update) {
			if has := s.Disks.Size(disk.Name); has > 0 {
				parts = append(parts, fmt.Sprintf("disk %s %s to %s", approval.Quoted(disk.Name), mib(has), mib(disk.SizeMiB)))
			} else {
				parts = append(parts, fmt.Sprintf("new disk %s %s%s", approval.Quoted(disk.Name), mib(disk.SizeMiB), asAsked(cloud.Disk(disk))))
			}
		}
		for _, disk := range cloud.Changes[cloud.SetDiskKeep](update) {
			verb := "delete"
			if disk.Keep {
				verb = "keep"
			}
			parts = append(parts, fmt.Sprintf("disk %s: %s it when the VM is deleted", approval.Quoted(disk.Name), verb))
		}
		return parts
	},
}

// The fields of the spec that have the types of disks, and whether they are kept.
const (
	diskTypes  = "disks[].type"
	diskPolicy = "disks[].deletionPolicy"
)

// asAsked returns what a plan says of a new disk beside its size.
func asAsked(disk cloud.Disk) string {
	if disk.Keep {
		return ofType(disk.Type) + ", kept when the VM is deleted"
	}
	return ofType(disk.Type)
}

// disksOf returns the disks that a VM is to have.
func disksOf(vm *pcapi.VM) cloud.Disks {
	list := make([]cloud.Disk, 0, len(vm.Spec.Disks))
	for i := range vm.Spec.Disks {
		disk := &vm.Spec.Disks[i]
		list = append(list, cloud.Disk{Name: disk.Name, SizeMiB: int(disk.Size.Bytes() >> 20), Type: string(disk.Type), Keep: disk.DeletionPolicy == pcapi.VMDiskKeep})
	}
	disks, _ := cloud.NewDisks(list)
	return disks
}

// diskChange returns the changes that add or grow disks, and that set whether they are kept. A disk that the VM had is
// not added again, since it would be empty. One that it has keeps its type.
func diskChange(vm *pcapi.VM, server cloud.Server) (update cloud.Update) {
	if server.Disks == cloud.DisksUnknown {
		return nil
	}
	for _, want := range disksOf(vm).List() {
		has := server.Disks.Size(want.Name)
		if has > 0 {
			if want.Keep != server.Disks.Kept(want.Name) {
				update = append(update, cloud.SetDiskKeep{Name: want.Name, Keep: want.Keep})
			}
			want.Type, want.Keep = "", false
		}
		if has < want.SizeMiB && !lostDisk(vm, server, want.Name) {
			update = append(update, cloud.SetDisk(want))
		}
	}
	return update
}

// MissingKeeps returns the changes by which a server keeps the disks that the spec keeps, and that it does not keep yet.
func MissingKeeps(vm *pcapi.VM, server cloud.Server) (update cloud.Update) {
	for _, change := range cloud.Changes[cloud.SetDiskKeep](diskChange(vm, server)) {
		if change.Keep {
			update = append(update, change)
		}
	}
	return update
}

// lostDisk reports whether the VM had a disk that its server does not have any more.
func lostDisk(vm *pcapi.VM, server cloud.Server, name string) bool {
	known := slices.ContainsFunc(vm.Status.Disks, func(d pcapi.VMDiskStatus) bool { return d.Name == name })
	return known && server.Disks.Size(name) == 0
}

// diskDrift returns the outcome for disks that the cloud cannot have, that were removed in it,
// or that are larger than the spec says: none of it is corrected. It returns nil otherwise.
func diskDrift(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) error {
	switch {
	case len(vm.Spec.Disks) == 0:
		return nil
	case !caps.Has(cloud.WithDisks):
		return Lacks("disks")
	case server.Disks == cloud.DisksUnknown:
		return nil
	}
	for _, want := range disksOf(vm).List() {
		// Some clouds have sizes that are no whole GiB.
		size := (server.Disks.Size(want.Name) + mibPerGiB - 1) / mibPerGiB
		switch {
		case lostDisk(vm, server, want.Name):
			return reconciler.Stalled(pcapi.DriftReason, controller.RecheckRefused, fmt.Errorf(
				"the disk %q was removed from VM %s in the cloud, and is not created again because it would be empty: remove it from spec.disks; to have an empty one, add it again once status.disks does not show it",
				want.Name, server.ID))
		case size == 0 && want.Type != "" && !caps.Has(cloud.DiskTypes):
			return Lacks(diskTypes)
		case want.Keep && !server.Disks.Kept(want.Name) && !caps.Has(cloud.KeepDisks):
			return Lacks(diskPolicy)
		case size > want.SizeMiB/mibPerGiB:
			return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf(
				"the disk %q of VM %s has %dGi in the cloud, and disks cannot shrink: set its size in spec.disks to %dGi", want.Name, server.ID, size, size))
		}
	}
	return nil
}

// isBuilt reports whether a server has all disks that it was created with.
func isBuilt(server cloud.Server) bool {
	return server.State == cloud.StateActive || server.State == cloud.StateStopped || server.State == cloud.StateSuspended
}

// diskStatus returns what the status shows of the disks of a server: those that the cloud
// reports, and those of the spec that the VM had before.
func diskStatus(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) []pcapi.VMDiskStatus {
	last := vm.Status.Disks
	if !isBuilt(server) || server.Disks == cloud.DisksUnknown || server.Disks == "" && (len(last) == 0 || !caps.Has(cloud.WithDisks)) {
		return last
	}
	var status []pcapi.VMDiskStatus
	for _, disk := range server.Disks.List() {
		shown := pcapi.VMDiskStatus{Name: disk.Name, Size: quantityOf(disk.SizeMiB), Type: disk.Type}
		if disk.Keep {
			shown.DeletionPolicy = pcapi.VMDiskKeep
		}
		status = append(status, shown)
	}
	for i := range vm.Spec.Disks {
		if name := vm.Spec.Disks[i].Name; lostDisk(vm, server, name) && len(status) < cloud.MaxDisks {
			status = append(status, pcapi.VMDiskStatus{Name: name, Lost: true})
		}
	}
	slices.SortFunc(status, func(a, b pcapi.VMDiskStatus) int { return cmp.Compare(a.Name, b.Name) })
	return status
}
