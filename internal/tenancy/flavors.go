package tenancy

import (
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// MayHaveFlavor returns why a VM may not name a flavor; nil if it may. The flavor of a
// VMClass is one that an administrator names, and needs no permission.
func MayHaveFlavor(spec *pcapi.CloudSpec, name string) error {
	if cloud.MatchesFlavor(selectable(spec), name) {
		return nil
	}
	return fmt.Errorf("VMs may not name flavor %q: ask the administrator of the Cloud to list it in spec.openstack.flavors.selectable or to offer a VMClass with it, or change spec.flavor", name)
}

func selectable(spec *pcapi.CloudSpec) []string {
	if spec.OpenStack == nil {
		return nil
	}
	return spec.OpenStack.Flavors.Selectable
}

// flavorsChanged reports whether VMs may name other flavors by the second spec.
func flavorsChanged(before, after *pcapi.CloudSpec) bool {
	return !slices.Equal(selectable(before), selectable(after))
}
