package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

func withDisk(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "10Gi"}} }

func withKeptDisks(vm *pcapi.VM) {
	vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "10Gi", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs", Size: "5Gi"}}
}

// keepOtherDisk lets the cloud keep the second of these disks instead of the first.
var keepOtherDisk = edit(vm, `{"spec":{"disks":[{"name":"data","size":"10Gi"},{"name":"logs","size":"5Gi","deletionPolicy":"Keep"}]}}`)

// growDisk grows the disk of a VM and adds another.
var growDisk = edit(vm, `{"spec":{"disks":[{"name":"data","size":"20Gi"},{"name":"logs","size":"5Gi"}]}}`)

// otherDiskIsLeft waits until the server is deleted, and returns an error if the cloud does not keep exactly the second disk.
func otherDiskIsLeft(ctx context.Context, w *world) error {
	var kept []string
	err := w.until(ctx, func() error {
		for _, entry := range w.stock.Ledger() {
			if entry.Op == mockcloud.OpGone || entry.Op == mockcloud.OpDelete && entry.Final {
				kept = entry.KeptDisks
				return nil
			}
		}
		return errors.New("the server is not deleted")
	})
	if err == nil && !slices.Equal(kept, []string{"logs"}) {
		err = fmt.Errorf("the disks %q of the server are kept, want logs", kept)
	}
	return err
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
		if disk.Type = ""; want[disk.Name] != disk {
			wrong = append(wrong, fmt.Sprintf("a disk of server %s is %+v, not %+v", server.Name, disk, want[disk.Name]))
		}
	}
	if len(server.Disks) != len(want) {
		wrong = append(wrong, fmt.Sprintf("server %s has %d disks, not %d", server.Name, len(server.Disks), len(want)))
	}
	return wrong
}
