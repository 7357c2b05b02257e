package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Flavor is whether the cloud has the sizes that have names. What a create and a change make of the name is in size.
var Flavor = Field{
	Lacking: lacksFlavor,
	Drift: func(vm *pcapi.VM, _ cloud.Server, caps cloud.Capabilities) error {
		return Lacks(lacksFlavor(vm, caps)...)
	},
}

func lacksFlavor(vm *pcapi.VM, caps cloud.Capabilities) []string {
	return when(vm.Spec.Flavor != "" && !caps.Has(cloud.Flavors), "flavor")
}
