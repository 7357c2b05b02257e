package vm

import (
	"errors"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/reconciler"
)

// partsAside are the parts of a server whose changes are sent alone, in this order and before all others. If the cloud refuses the
// changes of one, the others are made all the same.
var partsAside = []cloud.Part{cloud.LabelPart, cloud.KeepPart, cloud.GroupPart, cloud.AllowedPart, cloud.AddressPart}

// partAside returns the first of these parts that an update changes, and whether there is one.
func partAside(update cloud.Update) (cloud.Part, bool) {
	for _, part := range partsAside {
		if update.Has(part) {
			return part, true
		}
	}
	return 0, false
}

// asideDrift returns the outcome for changes that the cloud refused lately; nil otherwise.
func asideDrift(vm *pcapi.VM, obs *observation) error {
	if obs.Capabilities() == nil {
		return nil
	}
	for _, part := range partsAside {
		if outcome := obs.aside[part]; outcome != nil && field.Difference(vm, *obs.Resource).Has(part) {
			return outcome
		}
	}
	return nil
}

// without returns the outcome after which the other changes are made without those of a part, whose change had the
// given outcome. They are sent again later.
func (c *changer) without(part cloud.Part, vm *pcapi.VM, obs *observation, outcome error) error {
	wait, waits := errors.AsType[*reconciler.WaitError](outcome)
	stall, stalls := errors.AsType[*reconciler.StalledError](outcome)
	switch {
	case waits:
		c.refusals.recordPart(part, vm, outcome, wait.After-1) // it is over when the VM comes back
	case stalls:
		c.refusals.recordPart(part, vm, outcome, stall.Recheck-1)
	default:
		return outcome
	}
	obs.aside = c.refusals.recallParts(vm)
	if len(possible(vm, obs, field.Difference(vm, *obs.Resource))) == 0 {
		return outcome
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "%v; VM %s is changed otherwise meanwhile", outcome, obs.Resource.ID)
}
