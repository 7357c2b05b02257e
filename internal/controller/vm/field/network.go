package field

import (
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
)

// Network is networkRef or network.
var Network = Field{
	Lacking: lacksInterfaces,
	Create:  func(_ *pcapi.VM, in Context, req *cloud.CreateServer) { attach(req, in.Interfaces) },
	DescribeCreate: func(vm *pcapi.VM, _ cloud.CreateServer) (parts []string) {
		for _, i := range controller.InterfacesOf(vm) {
			text := []string{"network", approval.Quoted(i.NetworkRef.Name)}
			for _, address := range i.Addresses {
				text = append(text, "address", string(address))
			}
			parts = append(parts, strings.Join(text, " "))
		}
		return parts
	},
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		vm.Status.Network = networkStatus(server.Interfaces)
	},
	Hide: func(vm *pcapi.VM) { vm.Status.Network = nil },
}

func lacksInterfaces(vm *pcapi.VM, caps cloud.Capabilities) []string {
	interfaces := controller.InterfacesOf(vm)
	addressed := slices.ContainsFunc(interfaces, func(i pcapi.VMInterface) bool { return len(i.Addresses) > 0 })
	switch {
	case len(interfaces) > 0 && !caps.Attaches():
		if vm.Spec.Network == nil {
			return []string{"networkRef"}
		}
		return []string{"network"}
	case len(interfaces) > 1 && !caps.Has(cloud.WithInterfaces):
		return []string{"a second interface in network.interfaces"}
	case addressed && !caps.Has(cloud.StaticAddresses):
		return []string{"addresses in network.interfaces"}
	}
	return nil
}

// attach sets the network interfaces of a create. A single one without a static address is a
// NetworkID, which each cloud with networks has.
func attach(req *cloud.CreateServer, interfaces []cloud.Attachment) {
	if len(interfaces) == 1 && len(interfaces[0].Addresses) == 0 {
		req.NetworkID = interfaces[0].NetworkID
		return
	}
	req.Interfaces = interfaces
}

// networkStatus returns what the status shows of the network interfaces; nil if there are none.
func networkStatus(interfaces cloud.Interfaces) *pcapi.VMNetworkStatus {
	if interfaces == "" {
		return nil
	}
	var status pcapi.VMNetworkStatus
	for _, i := range interfaces.List() {
		status.Interfaces = append(status.Interfaces, pcapi.VMInterfaceStatus{MACAddress: i.MAC, Addresses: i.Addresses})
		for _, address := range i.Addresses {
			primary := &status.PrimaryIP4
			if strings.Contains(address, ":") {
				primary = &status.PrimaryIP6
			}
			if *primary == "" {
				*primary = address
			}
		}
	}
	return &status
}
