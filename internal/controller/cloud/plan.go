package cloud

import (
	"errors"
	"fmt"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The steps of a plan.
const (
	stepClaim         = "Claim"
	stepBrake         = "Brake"
	stepReleaseBrake  = "ReleaseBrake"
	stepPublish       = "Publish"
	stepRemoveOrphans = "RemoveOrphans"
	stepRelease       = "Release"
)

// plan decides what to do, from what was seen and nothing else.
func plan(c *v1alpha1.Cloud, obs *scope) ([]string, error) {
	if !c.DeletionTimestamp.IsZero() && obs.users == 0 {
		return []string{stepRelease}, nil
	}
	var steps []string
	if !obs.claimed && c.DeletionTimestamp.IsZero() {
		steps = append(steps, stepClaim)
	}
	braked := obs.brake || (c.Status.BrakedSnapshot != "" && !obs.acknowledged)
	switch {
	case braked:
		steps = append(steps, stepBrake)
	case obs.acknowledged || (obs.held && obs.fresh != nil):
		steps = append(steps, stepReleaseBrake)
	}
	if obs.fresh != nil {
		steps = append(steps, stepPublish)
		if c.Spec.OrphanPolicy == v1alpha1.OrphanPolicyDelete && len(obs.orphans) > 0 && !braked {
			steps = append(steps, stepRemoveOrphans)
		}
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		return steps, &reconciler.StalledError{Reason: v1alpha1.InUseReason, Recheck: recheck,
			Cause: fmt.Errorf("VMs and Networks that refer to this Cloud: %d; delete them first, it goes when the last is gone", obs.users)}
	case braked:
		return steps, &reconciler.StalledError{Reason: v1alpha1.ServersVanishedReason, Recheck: recheck,
			Cause: errors.New("the brake is on: nothing is created or deleted on this cloud; the Braked condition says how to release it")}
	case !obs.usable:
		return steps, &reconciler.WaitError{After: obs.again, Reason: v1alpha1.ConnectingReason, Message: "not due yet", Quiet: true}
	}
	return steps, nil
}
