package faults

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

func withDisk(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "10Gi"}} }

func withKeptDisks(vm *pcapi.VM) {
	vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "10Gi", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs", Size: "5Gi"}}
}

// keepsOtherDisk is a patch by which the second of these disks is kept instead of the first.
const keepsOtherDisk = `{"spec":{"disks":[{"name":"data","size":"10Gi"},{"name":"logs","size":"5Gi","deletionPolicy":"Keep"}]}}`

// growDisk grows the disk of a VM and adds another.
var growDisk = edit(vm, `{"spec":{"disks":[{"name":"data","size":"20Gi"},{"name":"logs","size":"5Gi"}]}}`)

// removeKept deletes the VM of which the second disk is kept.
func removeKept(ctx context.Context, w *world) error {
	w.kept = "logs"
	return remove(vm, gone)(ctx, w)
}

// keepAndRemove lets the cloud keep the second disk, and deletes the VM at once.
func keepAndRemove(ctx context.Context, w *world) error {
	if err := w.env.client.Patch(ctx, w.object(vm), client.RawPatch(types.MergePatchType, []byte(keepsOtherDisk))); err != nil {
		return err
	}
	return removeKept(ctx, w)
}

// keptViolations reports deletions that did not keep the disk that was to be kept.
func (w *world) keptViolations() (wrong []string) {
	for _, entry := range w.stock.Ledger() {
		ended := entry.Op == mockcloud.OpGone || entry.Op == mockcloud.OpDelete && entry.Final
		if ended && w.kept != "" && entry.Name == vm && !slices.Contains(entry.KeptDisks, w.kept) {
			wrong = append(wrong, fmt.Sprintf("server %s was deleted, and of its disks only %q are kept", entry.ServerID, entry.KeptDisks))
		}
	}
	return wrong
}

// diskViolations compares the disks of a server with the spec of its VM. The scenarios remove
// none.
func diskViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	want := map[string]mockcloud.Disk{}
	for _, disk := range vm.Spec.Disks {
		want[disk.Name] = mockcloud.Disk{Name: disk.Name, Size: int(disk.Size.Bytes() >> 30), Keep: disk.DeletionPolicy == pcapi.VMDiskKeep}
	}
	var wrong []string
	for _, disk := range server.Disks {
		disk.Type = "" // the cloud chooses it
		if want[disk.Name] != disk {
			wrong = append(wrong, fmt.Sprintf("a disk of server %s is %+v, not %+v", server.Name, disk, want[disk.Name]))
		}
	}
	if len(server.Disks) != len(want) {
		wrong = append(wrong, fmt.Sprintf("server %s has %d disks, not %d", server.Name, len(server.Disks), len(want)))
	}
	return wrong
}
