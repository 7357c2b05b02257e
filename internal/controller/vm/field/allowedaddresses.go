package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// AllowedAddresses are the addresses that a server may use beside its own. They are given to a server that exists, since its
// network interfaces must.
var AllowedAddresses = Field{
	Lacking: lacksAllowedAddresses,
	Change: func(vm *pcapi.VM, server cloud.Server) cloud.Update {
		want, has := allowedAddressesOf(vm), server.AllowedAddresses
		foreign := len(vm.Status.AllowedAddresses) == 0 && has != cloud.AddressPending // the field has not set what the server has
		if want == has || want == "" && foreign {
			return nil
		}
		return cloud.Update{cloud.SetAllowedAddresses(want)}
	},
	Drift: func(vm *pcapi.VM, _ cloud.Server, caps cloud.Capabilities) error {
		return Lacks(lacksAllowedAddresses(vm, caps)...)
	},
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		if len(vm.Spec.AllowedAddresses)+len(vm.Status.AllowedAddresses) > 0 {
			vm.Status.AllowedAddresses = server.AllowedAddresses.List()
		}
	},
	Hide: func(vm *pcapi.VM) { vm.Status.AllowedAddresses = nil },
	Shown: func(vm *pcapi.VM, server *cloud.Server) {
		server.AllowedAddresses, _ = cloud.NewAllowedAddresses(vm.Status.AllowedAddresses)
	},
	DescribeUpdate: func(_ cloud.Server, update cloud.Update) (parts []string) {
		for _, change := range cloud.Changes[cloud.SetAllowedAddresses](update) {
			parts = append(parts, describeAllowed(cloud.AllowedAddresses(change)))
		}
		return parts
	},
}

func lacksAllowedAddresses(vm *pcapi.VM, caps cloud.Capabilities) []string {
	return when(len(vm.Spec.AllowedAddresses) > 0 && !caps.Has(cloud.WithAllowedAddresses), "allowedAddresses")
}

func allowedAddressesOf(vm *pcapi.VM) cloud.AllowedAddresses {
	texts := make([]string, 0, len(vm.Spec.AllowedAddresses))
	for _, address := range vm.Spec.AllowedAddresses {
		texts = append(texts, string(address))
	}
	addresses, _ := cloud.NewAllowedAddresses(texts)
	return addresses
}

// describeAllowed returns what a plan says of the addresses that a server may use.
func describeAllowed(addresses cloud.AllowedAddresses) string {
	if addresses == "" {
		return "without allowed addresses"
	}
	return "allowed addresses " + quoted(addresses.List())
}
