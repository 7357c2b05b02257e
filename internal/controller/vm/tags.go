package vm

import (
	"errors"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/reconciler"
)

// tagDrift returns the outcome for tags that the cloud refused lately; nil otherwise.
func tagDrift(vm *pcapi.VM, obs *observation) error {
	if obs.untagged != nil && obs.Capabilities() != nil && field.Difference(vm, *obs.Resource).Has(cloud.LabelPart) {
		return obs.untagged
	}
	return nil
}

// withoutTags returns the outcome after which the other changes are made without the tags, whose change had the given
// outcome. The tags are sent again later.
func (c *changer) withoutTags(vm *pcapi.VM, obs *observation, outcome error) error {
	wait, waits := errors.AsType[*reconciler.WaitError](outcome)
	stall, stalls := errors.AsType[*reconciler.StalledError](outcome)
	switch {
	case waits:
		c.refusals.recordTags(vm, outcome, wait.After-1) // it is over when the VM comes back
	case stalls:
		c.refusals.recordTags(vm, outcome, stall.Recheck-1)
	default:
		return outcome
	}
	obs.untagged = outcome
	if len(possible(vm, obs, field.Difference(vm, *obs.Resource))) == 0 {
		return outcome
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "%v; VM %s is changed otherwise meanwhile", outcome, obs.Resource.ID)
}
