package vm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

const mibPerGiB = 1 << 10

// disksOf returns the disks that a VM is to have.
func disksOf(vm *pcapi.VM) cloud.Disks {
	list := make([]cloud.Disk, 0, len(vm.Spec.Disks))
	for i := range vm.Spec.Disks {
		list = append(list, cloud.Disk{Name: vm.Spec.Disks[i].Name, SizeMiB: int(vm.Spec.Disks[i].Size.Bytes() >> 20)})
	}
	disks, _ := cloud.NewDisks(list)
	return disks
}

// diskChange returns the disks that are to be added or grown. A disk that the VM had is not
// added again, since it would be empty.
func diskChange(vm *pcapi.VM, server cloud.Server) cloud.Disks {
	if len(vm.Spec.Disks) == 0 {
		return ""
	}
	change := slices.DeleteFunc(disksOf(vm).List(), func(want cloud.Disk) bool {
		return server.Disks.Size(want.Name) >= want.SizeMiB || lostDisk(vm, server, want.Name)
	})
	disks, _ := cloud.NewDisks(change)
	return disks
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
	case len(vm.Spec.Disks) == 0 || caps == nil:
		return nil
	case !caps.Has(cloud.WithDisks):
		return lacks([]string{"disks"})
	}
	for _, want := range disksOf(vm).List() {
		// Some clouds have sizes that are no whole GiB.
		size := (server.Disks.Size(want.Name) + mibPerGiB - 1) / mibPerGiB
		switch {
		case lostDisk(vm, server, want.Name):
			return reconciler.Stalled(pcapi.DriftReason, external.RecheckRefused, fmt.Errorf(
				"the disk %q was removed from VM %s in the cloud, and is not created again because it would be empty: remove it from spec.disks; to have an empty one, add it again once status.disks does not show it",
				want.Name, server.ID))
		case size > want.SizeMiB/mibPerGiB:
			return reconciler.Stalled(pcapi.UnsupportedReason, external.RecheckRefused, fmt.Errorf(
				"the disk %q of VM %s has %dGi in the cloud, and disks cannot shrink: set its size in spec.disks to %dGi", want.Name, server.ID, size, size))
		}
	}
	return nil
}

// diskStatus returns what the status shows of the disks of a server: those that the cloud
// reports, and those of the spec that the VM had before.
func diskStatus(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) []pcapi.VMDiskStatus {
	last := vm.Status.Disks
	built := server.State == cloud.StateActive || server.State == cloud.StateStopped || server.State == cloud.StateSuspended
	if !built || server.Disks == "" && (len(last) == 0 || !caps.Has(cloud.WithDisks)) {
		return last
	}
	var status []pcapi.VMDiskStatus
	for _, disk := range server.Disks.List() {
		status = append(status, pcapi.VMDiskStatus{Name: disk.Name, Size: resource.NewQuantity(int64(disk.SizeMiB)<<20, resource.BinarySI).String()})
	}
	for i := range vm.Spec.Disks {
		if name := vm.Spec.Disks[i].Name; lostDisk(vm, server, name) && len(status) < cloud.MaxDisks {
			status = append(status, pcapi.VMDiskStatus{Name: name, Lost: true})
		}
	}
	slices.SortFunc(status, func(a, b pcapi.VMDiskStatus) int { return cmp.Compare(a.Name, b.Name) })
	return status
}

// recordDetached records an event that names the disks that were detached from a server before
// its deletion, since others had attached them.
func (k *kind) recordDetached(ctx context.Context, vm *pcapi.VM, serverID string, disks []string) {
	if len(disks) == 0 {
		return
	}
	text := strings.Join(disks[:min(len(disks), maxNamed)], ", ")
	if more := len(disks) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	log.FromContext(ctx).Info("disks that others attached were detached from a VM that is deleted", "server", serverID, "disks", disks)
	k.recorder.Eventf(vm, nil, corev1.EventTypeWarning, pcapi.DisksDetachedReason, external.StepDelete,
		"disks that others had attached to VM %s were detached from it and are kept: %s", serverID, text)
}
