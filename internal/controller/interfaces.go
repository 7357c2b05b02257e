package controller

import (
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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
