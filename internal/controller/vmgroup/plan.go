package vmgroup

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The steps of a plan.
const (
	stepClaim   = "Claim"
	stepRemove  = "Remove"
	stepAlign   = "Align"
	stepCreate  = "Create"
	stepDisown  = "Disown"
	stepRelease = "Release"
)

// plan decides what to do, from what was seen and nothing else.
func plan(g *v1alpha1.VmGroup, obs *scope) ([]string, error) {
	switch {
	case !g.DeletionTimestamp.IsZero():
		return planDeletion(g, obs)
	case obs.denied != nil:
		return nil, obs.denied
	}
	obs.moves = movesFor(g, obs)
	var steps []string
	for _, s := range []struct {
		step string
		due  bool
	}{
		{stepClaim, !obs.claimed},
		{stepRemove, len(obs.moves.remove) > 0},
		{stepAlign, len(obs.moves.align)+len(obs.moves.start) > 0},
		{stepCreate, obs.moves.create > 0},
	} {
		if s.due {
			steps = append(steps, s.step)
		}
	}
	return steps, standing(g, obs)
}

// standing is the outcome on the members as they are. News of members wake the
// group, so no wait has a time of its own but that for a failed one.
func standing(g *v1alpha1.VmGroup, obs *scope) error {
	c, desired := countOf(obs), ptr.Deref(g.Spec.Replicas, 1)
	stuck := stuckMember(obs)
	switch {
	case stuck != nil:
		outcome := &reconciler.StalledError{Reason: v1alpha1.MembersStalledReason, Cause: fmt.Errorf("VM %s: %s", stuck.Name, stalled(stuck).Message)}
		if c.failed > 0 {
			outcome.Recheck = obs.patience
		}
		return outcome
	case c.failed > 0 && obs.patience > 0:
		return reconciler.Wait(obs.patience, v1alpha1.MembersNotReadyReason,
			"members fail again and again: they are replaced later and later; their Ready conditions say why")
	case c.outdated > 0 && g.Spec.Strategy.Type != v1alpha1.StrategyOnDelete:
		return reconciler.Wait(0, v1alpha1.RollingReason, "%d of %d members are of the current revision, %d are Ready", c.updated, desired, c.ready)
	case !obs.moves.none(), c.leaving > 0:
		return reconciler.Wait(0, v1alpha1.ScalingReason, "%d of %d members exist, %d are Ready", c.existing, desired, c.ready)
	case c.ready < desired:
		return reconciler.Wait(0, v1alpha1.MembersNotReadyReason, "%d of %d members are Ready", c.ready, desired)
	}
	return nil
}

// counts are of the members that are not being deleted, but for leaving.
type counts struct{ existing, ready, updated, outdated, failed, leaving int32 }

func countOf(obs *scope) counts {
	var c counts
	for _, vm := range obs.members {
		if !alive(vm) {
			c.leaving++
			continue
		}
		add := func(n *int32, is bool) {
			if is {
				*n++
			}
		}
		current := vm.Labels[v1alpha1.RevisionLabel] == obs.revision
		add(&c.existing, exists(vm))
		add(&c.ready, ready(vm))
		add(&c.updated, current)
		add(&c.outdated, !current)
		add(&c.failed, failed(vm))
	}
	return c
}

// stuckMember is the first member that stands still until somebody acts, and
// that this pass does nothing about; nil if there is none.
func stuckMember(obs *scope) *v1alpha1.VM {
	for _, vm := range obs.members {
		if stalled(vm) == nil || failed(vm) || obs.moves.touch(vm) {
			continue
		}
		if alive(vm) || blocked(vm) {
			return vm
		}
	}
	return nil
}

// planDeletion deletes the members. A group that is deleted in the background
// goes once that is asked for, one in the foreground once they are gone.
func planDeletion(g *v1alpha1.VmGroup, obs *scope) ([]string, error) {
	for _, vm := range obs.members {
		if alive(vm) {
			obs.moves.remove = append(obs.moves.remove, vm)
		}
	}
	switch {
	case orphaned(g):
		return []string{stepDisown, stepRelease}, nil
	case foreground(g) && len(obs.members) > 0:
		if stuck := stuckMember(obs); stuck != nil {
			return []string{stepRemove}, reconciler.Stalled(v1alpha1.MembersStalledReason, 0, fmt.Errorf("VM %s: %s", stuck.Name, stalled(stuck).Message))
		}
		return []string{stepRemove}, reconciler.Wait(0, v1alpha1.DeletingReason, "%d members are being deleted", len(obs.members))
	}
	return []string{stepRemove, stepRelease}, nil
}
