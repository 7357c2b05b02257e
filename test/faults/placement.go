package faults

import (
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// placed gives a VM a zone and an anti-affinity.
func placed(vm *pcapi.VM) {
	vm.Spec.Zone = "zone-b"
	apart(vm)
}

// apart gives a VM an anti-affinity.
func apart(vm *pcapi.VM) {
	vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: "web", Policy: pcapi.AntiAffinityRequired}
}

// placementViolations compares where a server runs with the spec of its VM.
func placementViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	if vm.Spec.AntiAffinity == nil {
		return nil
	}
	if server.Zone != vm.Spec.Zone || server.AntiAffinity == nil || server.AntiAffinity.Policy != string(vm.Spec.AntiAffinity.Policy) {
		return []string{fmt.Sprintf("server %s is in zone %q with the anti-affinity %v, not as its spec says", server.Name, server.Zone, server.AntiAffinity)}
	}
	return nil
}
