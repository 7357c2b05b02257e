package vmgroup

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/reconciler"
)

func needsApproval(g *pcapi.VmGroup) { g.Spec.Approval = pcapi.ApprovalRequired }

// underApproval has a member the policy of its group, and unapproved has its plan wait.
func underApproval(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalRequired }

func unapproved(changes ...pcapi.PlannedChange) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		underApproval(vm)
		vm.Status.Plan = &pcapi.PlanStatus{Number: 1, Hash: "of-" + vm.Name, Phase: pcapi.PlanPending, Changes: changes}
	}
}

func TestMembersWaitForApprovalOfGroup(t *testing.T) {
	powerOn := pcapi.PlannedChange{Action: pcapi.PlannedPowerOn, Name: "web", ID: "1"}
	plan := func(phase pcapi.PlanPhase, changes ...pcapi.PlannedChange) func(*pcapi.VmGroup) {
		return func(g *pcapi.VmGroup) {
			g.Status.Plan = &pcapi.PlanStatus{Number: 1, Hash: "h", Phase: phase, Generation: g.Generation, Changes: changes}
		}
	}
	hashed := func(g *pcapi.VmGroup) { g.Annotations = map[string]string{pcapi.ApprovedPlanAnnotation: "h"} }
	create := pcapi.PlannedChange{Action: pcapi.PlannedCreate, Count: 2}
	on := pcapi.PlannedChange{Action: pcapi.PlannedPowerOn}
	for name, tc := range map[string]struct {
		group   *pcapi.VmGroup
		members []*pcapi.VM
		planned []pcapi.PlannedChange
		waiting []*pcapi.VM
		want    []string
		pending bool
	}{
		"nothing changes in the cloud":                   {groupOfSize(1, needsApproval), list(vm("a", underApproval)), nil, nil, nil, false},
		"members are to be created":                      {groupOfSize(2, needsApproval), nil, []pcapi.PlannedChange{create}, nil, nil, true},
		"their plan is approved":                         {groupOfSize(2, needsApproval, plan(pcapi.PlanPending, create), hashed), nil, []pcapi.PlannedChange{create}, nil, []string{"Approve", "Create"}, false},
		"their plan is being applied":                    {groupOfSize(2, needsApproval, plan(pcapi.PlanApproved, create)), nil, []pcapi.PlannedChange{create}, nil, []string{"Create"}, false},
		"another plan is being applied":                  {groupOfSize(2, needsApproval, plan(pcapi.PlanApproved, on)), nil, []pcapi.PlannedChange{create}, nil, nil, true},
		"a member waits":                                 {groupOfSize(1, needsApproval), list(vm("a", unapproved(powerOn))), []pcapi.PlannedChange{on}, list(vm("a", unapproved(powerOn))), nil, true},
		"a member waits, the plan is approved":           {groupOfSize(1, needsApproval, plan(pcapi.PlanApproved, on)), list(vm("a", unapproved(powerOn))), []pcapi.PlannedChange{on}, list(vm("a", unapproved(powerOn))), []string{"ApproveMembers"}, false},
		"a member has another policy":                    {groupOfSize(1, needsApproval), list(vm("a")), nil, nil, []string{"SetApproval"}, false},
		"a member has another policy, and a plan waits":  {groupOfSize(3, needsApproval), list(vm("a")), []pcapi.PlannedChange{create}, nil, []string{"SetApproval"}, true},
		"the group needs no approval any more":           {groupOfSize(1), list(vm("a", underApproval)), nil, nil, []string{"SetApproval"}, false},
		"the group is deleted":                           {groupOfSize(1, needsApproval, doomed()), list(vm("a", underApproval)), []pcapi.PlannedChange{{Action: pcapi.PlannedDelete}}, nil, nil, true},
		"the group is deleted, and its members are kept": {groupOfSize(1, needsApproval, doomed(metav1.FinalizerOrphanDependents)), list(vm("a", underApproval)), nil, nil, []string{"Disown", "Release"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(tc.members)
			obs.planned, obs.waiting = tc.planned, tc.waiting
			p := kindReading(t).Plan(tc.group, obs)
			if diff := cmp.Diff(tc.want, p.Names()); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if got := reconciler.Reason(p.Outcome) == pcapi.ApprovalRequiredReason; got != tc.pending {
				t.Errorf("outcome %v", p.Outcome)
			}
			var wait *reconciler.WaitError
			if tc.pending && !errors.As(p.Outcome, &wait) {
				t.Errorf("outcome %T", p.Outcome)
			}
		})
	}
}

// TestPlannedIsOfMovesAndWaitingMembers has a group that shrinks while members wait.
func TestPlannedIsOfMovesAndWaitingMembers(t *testing.T) {
	powerOn := pcapi.PlannedChange{Action: pcapi.PlannedPowerOn, Name: "web", ID: "1"}
	group := groupOfSize(2, needsApproval, func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} })
	ready := func(c *pcapi.Cloud) {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	}
	k := kindReading(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, listedCloud(ready))
	home := func(vm *pcapi.VM) { vm.Status.Cloud = "home" }
	obs := observed(list(vm("a", unapproved(powerOn), home), vm("b", unapproved(powerOn), home), vm("c", unapproved(powerOn), home)))
	if err := k.observePlanned(t.Context(), group, obs); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, change := range obs.planned {
		texts = append(texts, approval.Text(change))
	}
	slices.Sort(texts)
	if diff := cmp.Diff([]string{"Delete 1 member", "PowerOn 2 members"}, texts); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if len(obs.waiting) != 2 || len(obs.members) != 3 {
		t.Errorf("%d members wait, of %d", len(obs.waiting), len(obs.members))
	}
}
