package controller

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// ProvedServer reports whether something proves that a server is that of a VM: its owner labels or, on a cloud without labels,
// its name.
func ProvedServer(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) bool {
	if caps.Has(cloud.Labels) {
		return server.Labels[inventory.UIDLabel] == string(vm.UID)
	}
	return cloud.AlikeNames(server.Name, vm.Status.NameInCloud)
}
