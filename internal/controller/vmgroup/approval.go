package vmgroup

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// unplannedDelay is how long a group waits to plan again what cannot be planned.
const unplannedDelay = 30 * time.Second

// plannedChanges is what changes in the cloud until the members of a group are as its spec says.
type plannedChanges struct {
	// changes are those of all members that the group makes or approves.
	changes []pcapi.PlannedChange
	// waiting are the members that the group created and leaves as they are, and whose plans wait.
	waiting []*pcapi.VM
	// now is when they were observed.
	now time.Time
	// unknown is why it is not known what a change of a member leads to; nil if it is.
	unknown error
}

// Plan decides what to do, from the group and the observation and nothing else. Where the spec
// requires an approval, members are neither created, changed nor deleted before it, and wait
// with plans of their own, which the group approves.
func (k *kind) Plan(g *pcapi.VmGroup, obs *observation) plan {
	p := k.plan(g, obs)
	if !approval.Required(g) || orphaned(g) {
		return p
	}
	var first []step
	if unprotected := slices.DeleteFunc(slices.Clone(obs.members), func(vm *pcapi.VM) bool { return approval.Required(vm) }); len(unprotected) > 0 {
		first = append(first, k.setApproval(unprotected))
	}
	switch {
	case obs.planned == nil:
	case obs.planned.unknown != nil:
		p = reconciler.End[*pcapi.VmGroup, *observation](reconciler.Wait(unplannedDelay, reconciler.Reason(obs.planned.unknown), "%v", obs.planned.unknown))
	case len(obs.planned.changes) > 0:
		decision := approval.Decide(g, approval.Planned{Cloud: obs.template.cloudName(), Changes: obs.planned.changes, Now: obs.planned.now, Once: true})
		if decision.Wait != nil {
			p = reconciler.End[*pcapi.VmGroup, *observation](decision.Wait)
			break
		}
		if decision.Store != nil {
			first = append(first, k.approve(decision.Store))
		}
		if unapproved := slices.DeleteFunc(slices.Clone(obs.planned.waiting), func(vm *pcapi.VM) bool { return approval.Approved(vm) }); len(unapproved) > 0 {
			first = append(first, k.approveMembers(unapproved))
		}
	}
	p.Steps = slices.Concat(first, p.Steps)
	return p
}

// observePlanned observes what is planned for a group that requires an approval.
func (k *kind) observePlanned(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
	expected, observed := *obs, map[string]*pcapi.VM{}
	expected.members = make([]*pcapi.VM, 0, len(obs.members))
	for _, vm := range obs.members {
		observed[vm.Name] = vm
		expected.members = append(expected.members, vm.DeepCopy()) // the forecast has them become Ready
	}
	changes, err := k.forecast(atOnce(g), &expected)
	if err != nil {
		return err
	}
	moved, created := map[string]bool{}, createdBy(g, obs.members)
	for i, change := range changes {
		if change.before == nil || observed[change.before.Name] == nil {
			continue
		}
		moved[change.before.Name] = true
		changes[i].before = observed[change.before.Name]
		if change.after != nil {
			change.after.Status = *changes[i].before.Status.DeepCopy()
		}
	}
	p := &plannedChanges{now: k.clock()}
	for _, vm := range obs.members {
		_, plan := vm.Approval()
		switch {
		case moved[vm.Name] || !approval.Required(vm) || !created[vm.Name]: // another VM waits for an approval of its own
		case vm.Status.ObservedGeneration < vm.Generation || plan == nil && vm.Status.VMID == "": // it has no plan yet
			changes = append(changes, memberChange{before: vm, after: vm})
		case plan != nil && plan.Phase == pcapi.PlanPending:
			p.waiting = append(p.waiting, vm)
			p.changes = append(p.changes, approval.OfMember(vm.Name, plan.Changes)...)
		}
	}
	if err := k.forecastPlanned(ctx, changes, p); err != nil {
		return err
	}
	p.changes = approval.Merged(p.changes)
	obs.planned = p
	return nil
}

// forecastPlanned adds what follows for the members that a group changes.
func (k *kind) forecastPlanned(ctx context.Context, changes []memberChange, p *plannedChanges) error {
	for _, change := range changes {
		of, err := k.forecastMember(ctx, change)
		if err != nil {
			return err
		}
		if len(of.Changes) == 0 && of.Outcome != nil && p.unknown == nil {
			p.unknown = of.Outcome
		}
		name := ""
		if change.before != nil {
			name = change.before.Name
		}
		p.changes = append(p.changes, approval.OfMember(name, of.Changes)...)
	}
	return nil
}

// atOnce returns a group that changes as many members at a time as possible: how many it changes
// is the same, and a large group is planned for in few rounds.
func atOnce(g *pcapi.VmGroup) *pcapi.VmGroup {
	g = g.DeepCopy()
	all, none := intstr.FromString("100%"), intstr.FromInt32(0)
	if allowances(g.Spec.Strategy, int(ptr.Deref(g.Spec.Replicas, 1))).resizing > 0 {
		g.Spec.Strategy.MaxUnavailable, g.Spec.Strategy.MaxSurge = &all, &none
	} else { // members are replaced rather than resized
		g.Spec.Strategy.MaxUnavailable, g.Spec.Strategy.MaxSurge = &none, &all
	}
	return g
}

// reportPlan writes the plan into the status. It is applied once no change is left, although
// members may not be Ready yet.
func reportPlan(g *pcapi.VmGroup, obs *observation, outcome error) {
	if obs.planned != nil && obs.planned.unknown == nil && len(obs.planned.changes) == 0 {
		outcome = nil
	}
	approval.Report(g, outcome)
}

// setApproval gives members the policy Required of the group, before anything else and without an
// approval: a member without it is changed at once. No group takes the policy from a VM, which
// anybody who may edit the VM could make its member.
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
		return approval.Store(ctx, k.client, k.recorder, g, plan)
	}}
}

// approverOf returns who approves the plans of the members of a group.
func approverOf(g *pcapi.VmGroup) string {
	by := "VmGroup/" + g.Name
	if g.Status.Plan != nil && g.Status.Plan.ApprovedBy != "" {
		by += " (" + g.Status.Plan.ApprovedBy + ")"
	}
	return by
}

// approveMembers approves the plans of members that wait, which the plan of the group includes, for who approved that.
func (k *kind) approveMembers(waiting []*pcapi.VM) step {
	return step{Name: "ApproveMembers", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		_, err := k.forEach(g, len(waiting), func(i int) error {
			return k.patch(ctx, waiting[i], "approve the plan of", func(vm *pcapi.VM) {
				if vm.Annotations == nil {
					vm.Annotations = map[string]string{}
				}
				vm.Annotations[pcapi.ApprovedPlanAnnotation] = approval.Annotation(vm.Status.Plan, approverOf(g))
			})
		})
		return err
	}}
}
