package vm

import (
	"errors"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observeFlavor finds out whether the Cloud allows the flavor that the VM names. A server that has the flavor keeps
// it, and a cloud that is not available gets nothing: whether it has flavors at all is not known.
func observeFlavor(vm *pcapi.VM, obs *observation) {
	name := string(vm.Spec.Flavor)
	if name == "" || obs.Spec == nil || !obs.Available() || obs.Resource != nil && obs.Resource.Flavor == name {
		return
	}
	if refused := tenancy.MayHaveFlavor(obs.Spec, name); refused != nil {
		obs.flavorRefused = reconciler.Stalled(pcapi.RejectedReason, controller.RecheckRefused, refused)
	}
}

// allowed returns an update without a flavor that the Cloud does not allow.
func (obs *observation) allowed(update cloud.Update) cloud.Update {
	if obs.flavorRefused == nil {
		return update
	}
	return update.Without(cloud.SizePart)
}

// explainFlavor adds to the error of a flavor that does not exist who names it, and what helps.
func explainFlavor(vm *pcapi.VM, err error) error {
	unknown, ok := errors.AsType[*cloud.Error](err)
	if !ok || unknown.Code != cloud.CodeFlavorUnknown {
		return err
	}
	explained := *unknown
	if vm.Spec.ClassName == "" {
		explained.Detail += "; name another in spec.flavor, or ask an administrator to create it"
	} else {
		explained.Detail += fmt.Sprintf("; VMClass %q names it in spec.openstack.flavor: name another class in spec.className, or ask an administrator to create the flavor",
			vm.Spec.ClassName)
	}
	return &explained
}
