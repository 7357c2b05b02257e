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
func plan(c *v1alpha1.Cloud, seen *scope) ([]string, error) {
	if !c.DeletionTimestamp.IsZero() && seen.users == 0 {
		return []string{stepRelease}, nil
	}
	var steps []string
	if !seen.claimed && c.DeletionTimestamp.IsZero() {
		steps = append(steps, stepClaim)
	}
	braked := seen.brake || (c.Status.BrakedSnapshot != "" && !seen.acknowledged)
	switch {
	case braked:
		steps = append(steps, stepBrake)
	case seen.acknowledged || (seen.held && seen.fresh != nil):
		steps = append(steps, stepReleaseBrake)
	}
	if seen.fresh != nil {
		steps = append(steps, stepPublish)
		if c.Spec.OrphanPolicy == v1alpha1.OrphanPolicyDelete && len(seen.orphans) > 0 && !braked {
			steps = append(steps, stepRemoveOrphans)
		}
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		return steps, &reconciler.StalledError{Reason: v1alpha1.InUseReason, Recheck: recheck,
			Cause: fmt.Errorf("VMs and Networks that refer to this Cloud: %d; delete them first, it goes when the last is gone", seen.users)}
	case braked:
		return steps, &reconciler.StalledError{Reason: v1alpha1.ServersVanishedReason, Recheck: recheck,
			Cause: errors.New("the brake is on: nothing is created or deleted on this cloud; the Braked condition says how to release it")}
	case !seen.usable:
		return steps, &reconciler.WaitError{After: seen.again, Reason: v1alpha1.ConnectingReason, Message: "not due yet", Quiet: true}
	}
	return steps, nil
}
