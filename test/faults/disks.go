package faults

import (
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

func withDisk(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "10Gi"}} }

// growDisk grows the disk of a VM and adds another.
var growDisk = edit(vm, `{"spec":{"disks":[{"name":"data","size":"20Gi"},{"name":"logs","size":"5Gi"}]}}`)

// diskViolations compares the disks of a server with the spec of its VM. The scenarios remove
// none.
func diskViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	want := map[string]int{}
	for _, disk := range vm.Spec.Disks {
		want[disk.Name] = int(disk.Size.Bytes() >> 30)
	}
	var wrong []string
	for _, disk := range server.Disks {
		if want[disk.Name] != disk.Size {
			wrong = append(wrong, fmt.Sprintf("the disk %s of server %s has %d GiB, not %d", disk.Name, server.Name, disk.Size, want[disk.Name]))
		}
	}
	if len(server.Disks) != len(want) {
		wrong = append(wrong, fmt.Sprintf("server %s has %d disks, not %d", server.Name, len(server.Disks), len(want)))
	}
	return wrong
}
