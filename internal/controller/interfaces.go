package controller

import (
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// InterfacesOf returns the network interfaces that a VM asks for. That of spec.networkRef has
// no name.
func InterfacesOf(vm *pcapi.VM) []pcapi.VMInterface {
	switch {
	case vm.Spec.Network != nil:
		return vm.Spec.Network.Interfaces
	case vm.Spec.NetworkRef != nil:
		return []pcapi.VMInterface{{NetworkRef: *vm.Spec.NetworkRef}}
	}
	return nil
}

// NetworksOf returns the names of the Networks that a VM refers to, sorted and each once.
func NetworksOf(vm *pcapi.VM) []string {
	var names []string
	for _, i := range InterfacesOf(vm) {
		names = append(names, i.NetworkRef.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// InterfacesLacking returns the field of the spec that the cloud cannot have because it cannot
// give a VM these interfaces, empty for none.
func InterfacesLacking(interfaces []pcapi.VMInterface, caps cloud.Capabilities) string {
	addressed := slices.ContainsFunc(interfaces, func(i pcapi.VMInterface) bool { return len(i.Addresses) > 0 })
	switch {
	case len(interfaces) > 0 && !caps.Attaches():
		if interfaces[0].Name == "" {
			return "networkRef"
		}
		return "network"
	case len(interfaces) > 1 && !caps.Has(cloud.WithInterfaces):
		return "a second interface in network.interfaces"
	case addressed && !caps.Has(cloud.StaticAddresses):
		return "addresses in network.interfaces"
	}
	return ""
}
