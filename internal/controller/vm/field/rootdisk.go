package field

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// RootDisk is the disk that the VM boots from.
var RootDisk = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		switch root := rootDiskOf(vm); {
		case root == cloud.RootDisk{}:
			return nil
		case !caps.Has(cloud.WithRootDisk):
			return []string{"rootDisk"}
		default:
			return when(root.Type != "" && !caps.Has(cloud.DiskTypes), "rootDisk.type")
		}
	},
	Create: func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.RootDisk = rootDiskOf(vm) },
	Change: func(vm *pcapi.VM, server cloud.Server) cloud.Update {
		// A size of 0 is one that the cloud does not show.
		if want, has := rootDiskOf(vm).SizeMiB, server.RootDisk.SizeMiB; has != 0 && has < want {
			return cloud.Update{cloud.SetRootDisk(want)}
		}
		return nil
	},
	Drift: rootDiskDrift,
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		if !isBuilt(server) || server.Disks == cloud.DisksUnknown {
			return
		}
		vm.Status.RootDisk = nil
		if root := server.RootDisk; root != (cloud.RootDisk{}) {
			vm.Status.RootDisk = &pcapi.VMRootDiskStatus{Size: quantityOf(root.SizeMiB), Type: root.Type}
		}
	},
	Hide: func(vm *pcapi.VM) { vm.Status.RootDisk = nil },
	Shown: func(vm *pcapi.VM, server *cloud.Server) {
		if root := vm.Status.RootDisk; root != nil {
			server.RootDisk = cloud.RootDisk{SizeMiB: mibOf(root.Size), Type: root.Type}
		}
	},
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string {
		if req.RootDisk == (cloud.RootDisk{}) {
			return nil
		}
		text := "root disk"
		if req.RootDisk.SizeMiB != 0 {
			text += " " + mib(req.RootDisk.SizeMiB)
		}
		return []string{text + ofType(req.RootDisk.Type)}
	},
	DescribeUpdate: func(s cloud.Server, update cloud.Update) (parts []string) {
		for _, size := range cloud.Changes[cloud.SetRootDisk](update) {
			parts = append(parts, fmt.Sprintf("root disk %s to %s", mib(s.RootDisk.SizeMiB), mib(int(size))))
		}
		return parts
	},
}

// rootDiskOf returns the root disk that a VM is to have, as far as its spec says.
func rootDiskOf(vm *pcapi.VM) cloud.RootDisk {
	root := vm.Spec.RootDisk
	if root == nil {
		return cloud.RootDisk{}
	}
	return cloud.RootDisk{SizeMiB: int(root.Size.Bytes() >> 20), Type: string(root.Type)}
}

// rootDiskDrift returns the outcome for a root disk that the cloud cannot grow, or that is larger than the spec says: it
// is not corrected. It returns nil otherwise. The type matters only to a create, and cannot be removed from the spec.
func rootDiskDrift(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) error {
	want := rootDiskOf(vm).SizeMiB
	// Some clouds have sizes that are no whole GiB.
	size := (server.RootDisk.SizeMiB + mibPerGiB - 1) / mibPerGiB
	switch {
	case want == 0:
		return nil
	case !caps.Has(cloud.WithRootDisk):
		return Lacks("rootDisk.size")
	case size > want/mibPerGiB:
		return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf(
			"the root disk of VM %s has %dGi in the cloud, and disks cannot shrink: set spec.rootDisk.size to %dGi", server.ID, size, size))
	}
	return nil
}

// quantityOf returns a size in MiB as the status shows it, empty for 0.
func quantityOf(mib int) string {
	if mib == 0 {
		return ""
	}
	return resource.NewQuantity(int64(mib)<<20, resource.BinarySI).String()
}

// mibOf returns the MiB of a size that the status shows, 0 if there is none.
func mibOf(size string) int {
	quantity, err := resource.ParseQuantity(size)
	if err != nil {
		return 0
	}
	return int(quantity.Value() >> 20)
}

// ofType returns what a plan adds to a disk of a type.
func ofType(name string) string {
	if name == "" {
		return ""
	}
	return " of type " + approval.Quoted(name)
}
