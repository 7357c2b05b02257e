package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
)

// PublicAddress is the public address. It is given to a server that exists, since its network interface must.
var PublicAddress = Field{
	Lacking: lacksPublicAddress,
	Change: func(vm *pcapi.VM, server cloud.Server) cloud.Update {
		switch wanted, has := vm.Spec.PublicAddress != nil, server.PublicAddress; {
		case wanted && (has == "" || has == cloud.AddressPending):
			return cloud.Update{cloud.SetPublicAddress(vm.Spec.PublicAddress.Network)}
		case !wanted && has != "" && (vm.Status.PublicAddress != "" || has == cloud.AddressPending || vm.Spec.Import == nil): // an imported server came with it
			return cloud.Update{cloud.RemovePublicAddress{}}
		}
		return nil
	},
	Drift: func(vm *pcapi.VM, _ cloud.Server, caps cloud.Capabilities) error {
		return Lacks(lacksPublicAddress(vm, caps)...)
	},
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		shown := vm.Spec.PublicAddress != nil || vm.Status.PublicAddress != ""
		if shown && server.PublicAddress != cloud.AddressPending {
			vm.Status.PublicAddress = server.PublicAddress
		}
	},
	Hide:  func(vm *pcapi.VM) { vm.Status.PublicAddress = "" },
	Shown: func(vm *pcapi.VM, server *cloud.Server) { server.PublicAddress = vm.Status.PublicAddress },
	DescribeUpdate: func(server cloud.Server, update cloud.Update) (parts []string) {
		for _, change := range cloud.Changes[cloud.SetPublicAddress](update) {
			parts = append(parts, "public address of "+approval.Quoted(string(change)))
		}
		for range cloud.Changes[cloud.RemovePublicAddress](update) {
			parts = append(parts, "without public address "+approval.Quoted(server.PublicAddress))
		}
		return parts
	},
}

func lacksPublicAddress(vm *pcapi.VM, caps cloud.Capabilities) []string {
	return when(vm.Spec.PublicAddress != nil && !caps.Has(cloud.PublicAddresses), "publicAddress")
}
