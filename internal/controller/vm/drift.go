package vm

import (
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
)

// sizeFirst reports whether the size is to change before the power state: while the server is
// stopped or, if it is to be suspended, still runs.
func sizeFirst(update cloud.Update) bool {
	return update.Resizes() && update.Has(cloud.PowerPart) && !update.PowersOff()
}

// firstChange returns the part of an update that is sent first. Those of partsAside are sent alone and
// before all else, since nothing else is refused with them or has to wait. A server that is
// to be started or suspended gets its size before, unless the cloud refused it: a size that the
// cloud refuses must not keep the server from that. One that is to be stopped gets its disks
// after. One that is suspended gets nothing else: it keeps the memory that it has.
func firstChange(vm *pcapi.VM, obs *observation, update cloud.Update) cloud.Update {
	update = possible(vm, obs, update)
	if part, found := partAside(update); found {
		return update.Of(part)
	}
	switch {
	case !update.Has(cloud.PowerPart) || !update.Resizes():
		return update
	case update.PowersOff(): // disks that the cloud refuses must not keep the server on
		return update.Without(cloud.DiskPart)
	case obs.Resource.State == cloud.StateSuspended, obs.refusal != "":
		return update.Of(cloud.PowerPart)
	}
	return update.Without(cloud.PowerPart)
}

// undone returns the changes that a server still needs after an update, of those that the update was to make. Other
// changes of labels, disks and which disks are kept than those of the update are among them: a cloud that loses a label for each that it
// sets is not to get one update after another.
func undone(vm *pcapi.VM, obs *observation, update cloud.Update, server cloud.Server) cloud.Update {
	return slices.DeleteFunc(possible(vm, obs, field.Difference(vm, server)), func(c cloud.ServerChange) bool {
		switch c.Part() {
		case cloud.LabelPart, cloud.DiskPart, cloud.KeepPart:
			return !update.Has(c.Part())
		default:
			return !slices.Contains(update, c)
		}
	})
}

// possible returns an update without what the cloud cannot have, without a flavor that is not allowed, and without what
// the cloud refused lately of partsAside, so that other changes are made. A server that is to stay suspended is resumed
// for a new size if updatePolicy allows restarts.
func possible(vm *pcapi.VM, obs *observation, update cloud.Update) cloud.Update {
	update = obs.allowed(field.Possible(update, obs.Capabilities()))
	for part := range obs.aside {
		update = update.Without(part)
	}
	if keepsSuspended(vm, obs, update) != nil && vm.Spec.PowerState == pcapi.PowerSuspended && vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed && obs.refusal == "" {
		update = append(update, cloud.SetPower{State: cloud.PowerOn})
	}
	return update
}
