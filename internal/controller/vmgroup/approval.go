package vmgroup

import (
	"context"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Plan decides what to do, from the group and the observation and nothing else. Where the spec
// requires an approval, members are neither created, changed nor deleted before it, and wait
// with plans of their own, which the group approves.
func (k *kind) Plan(g *pcapi.VmGroup, obs *observation) plan {
	p := k.plan(g, obs)
	var first []step
	if policy := k.unlike(g, obs); len(policy) > 0 {
		first = append(first, k.setApproval(policy))
	}
	if approval.Required(g) && !orphaned(g) && len(obs.planned) > 0 {
		approved, outcome := approval.Decide(g, obs.planned)
		switch {
		case outcome != nil:
			p = reconciler.End[*pcapi.VmGroup, *observation](outcome)
		case approved != nil:
			first = append(first, k.approve(approved))
		}
		if waiting := slices.DeleteFunc(slices.Clone(obs.waiting), hasApproval); outcome == nil && len(waiting) > 0 {
			first = append(first, k.approveMembers(waiting))
		}
	}
	p.Steps = slices.Concat(first, p.Steps)
	return p
}

// observePlanned observes what changes in the cloud until the members are as the spec says.
func (k *kind) observePlanned(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
	var changes []memberChange
	if obs.denied == nil && (!g.DeletionTimestamp.IsZero() || !movesFor(g, obs).none()) {
		expected := *obs
		expected.members = slices.Clone(obs.members)
		var err error
		if changes, err = k.forecast(g, &expected); err != nil {
			return err
		}
	}
	changed := map[string]bool{}
	for _, change := range changes {
		if change.before != nil {
			changed[change.before.Name] = true
		}
	}
	var forecast external.Forecasted
	for _, vm := range obs.members {
		if _, plan := vm.Approval(); plan != nil && plan.Phase == pcapi.PlanPending && !changed[vm.Name] {
			obs.waiting = append(obs.waiting, vm)
			forecast.Changes = append(forecast.Changes, plan.Changes...)
		}
	}
	if err := k.forecastMembers(ctx, changes, &forecast); err != nil {
		return err
	}
	obs.planned = approval.Unnamed(forecast.Changes)
	return nil
}

// unlike returns the members with another approval policy than the group.
func (k *kind) unlike(g *pcapi.VmGroup, obs *observation) []*pcapi.VM {
	if orphaned(g) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(obs.members), func(vm *pcapi.VM) bool { return approval.Required(vm) == approval.Required(g) })
}

// setApproval gives members the approval policy of the group, before anything else and without
// an approval: a member without it is changed at once.
func (k *kind) setApproval(members []*pcapi.VM) step {
	return step{Name: "SetApproval", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		return k.changeMembers(g, len(members), update, func(i int) error {
			return k.patch(ctx, members[i], "set the approval of", func(vm *pcapi.VM) { vm.Spec.Approval = g.Spec.Approval })
		})
	}}
}

// approve stores that the plan of the group is approved.
func (k *kind) approve(plan *pcapi.PlanStatus) step {
	return step{Name: external.StepApprove, Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		return reconciler.WriteStatus(ctx, k.client, g, func() { g.SetPlan(plan) })
	}}
}

// hasApproval reports whether the plan of a member is approved.
func hasApproval(vm *pcapi.VM) bool {
	return vm.Annotations[pcapi.ApprovedPlanAnnotation] == vm.Status.Plan.Hash
}

// approveMembers approves the plans of members that wait, which the plan of the group includes.
func (k *kind) approveMembers(waiting []*pcapi.VM) step {
	return step{Name: "ApproveMembers", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		_, err := k.forEach(g, len(waiting), func(i int) error {
			return k.patch(ctx, waiting[i], "approve the plan of", func(vm *pcapi.VM) {
				if vm.Annotations == nil {
					vm.Annotations = map[string]string{}
				}
				vm.Annotations[pcapi.ApprovedPlanAnnotation] = vm.Status.Plan.Hash
			})
		})
		return err
	}}
}
