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
			g.Status.Plan = &pcapi.PlanStatus{Number: 1, Hash: "h", Phase: phase, Generation: g.Generation, Cloud: observed(nil).template.cloudName(), Changes: changes}
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
		unknown error
	}{
		"nothing changes in the cloud":                   {groupOfSize(1, needsApproval), list(vm("a", underApproval)), nil, nil, nil, false, nil},
		"members are to be created":                      {groupOfSize(2, needsApproval), nil, []pcapi.PlannedChange{create}, nil, nil, true, nil},
		"their plan is approved":                         {groupOfSize(2, needsApproval, plan(pcapi.PlanPending, create), hashed), nil, []pcapi.PlannedChange{create}, nil, []string{"Approve", "Create"}, false, nil},
		"their plan is being applied":                    {groupOfSize(2, needsApproval, plan(pcapi.PlanApproved, create)), nil, []pcapi.PlannedChange{create}, nil, []string{"Create"}, false, nil},
		"another plan is being applied":                  {groupOfSize(2, needsApproval, plan(pcapi.PlanApproved, on)), nil, []pcapi.PlannedChange{create}, nil, nil, true, nil},
		"a member waits":                                 {groupOfSize(1, needsApproval), list(vm("a", unapproved(powerOn))), []pcapi.PlannedChange{on}, list(vm("a", unapproved(powerOn))), nil, true, nil},
		"a member waits, the plan is approved":           {groupOfSize(1, needsApproval, plan(pcapi.PlanApproved, on)), list(vm("a", unapproved(powerOn))), []pcapi.PlannedChange{on}, list(vm("a", unapproved(powerOn))), []string{"ApproveMembers"}, false, nil},
		"a member has another policy":                    {groupOfSize(1, needsApproval), list(vm("a")), nil, nil, []string{"SetApproval"}, false, nil},
		"a member has another policy, and a plan waits":  {groupOfSize(3, needsApproval), list(vm("a")), []pcapi.PlannedChange{create}, nil, []string{"SetApproval"}, true, nil},
		"the group needs no approval any more":           {group: groupOfSize(1), members: list(vm("a", underApproval))},
		"it is not known what a deletion leads to":       {group: groupOfSize(0, needsApproval), members: list(vm("a", underApproval)), unknown: errors.New("away")},
		"fewer changes are left":                         {groupOfSize(1, needsApproval, plan(pcapi.PlanApproved, create)), nil, []pcapi.PlannedChange{{Action: pcapi.PlannedCreate}}, nil, []string{"Approve", "Create"}, false, nil},
		"the group is deleted":                           {groupOfSize(1, needsApproval, doomed()), list(vm("a", underApproval)), []pcapi.PlannedChange{{Action: pcapi.PlannedDelete}}, nil, nil, true, nil},
		"the group is deleted, and its members are kept": {groupOfSize(1, needsApproval, doomed(metav1.FinalizerOrphanDependents)), list(vm("a", underApproval)), nil, nil, []string{"Disown", "Release"}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(tc.members)
			obs.planned = &plannedChanges{changes: tc.planned, waiting: tc.waiting, unknown: tc.unknown}
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

// TestPlannedIsOfMovesAndWaitingMembers has a group that shrinks while members wait. One of them is a VM that
// somebody made a member by an owner reference: it waits for an approval of its own.
func TestPlannedIsOfMovesAndWaitingMembers(t *testing.T) {
	powerOn := pcapi.PlannedChange{Action: pcapi.PlannedPowerOn, Name: "web", ID: "1"}
	group := groupOfSize(3, needsApproval, func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} })
	names := []string{memberName(group, 0), memberName(group, 1), memberName(group, 2)}
	slices.Sort(names)
	ready := func(c *pcapi.Cloud) {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	}
	k := kindReading(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, listedCloud(ready))
	home := func(vm *pcapi.VM) { vm.Status.Cloud = "home" }
	obs := observed(list(vm(names[0], unapproved(powerOn), home), vm(names[1], unapproved(powerOn), home), vm(names[2], unapproved(powerOn), home), vm("prod-db", unapproved(powerOn), home, protected)))
	obs.members[1].Status.State = pcapi.VMStateCreating
	before := obs.members[1].DeepCopy()
	if err := k.observePlanned(t.Context(), group, obs); err != nil {
		t.Fatal(err)
	}
	wantSame(t, "a member, which is shared with the cache,", before, obs.members[1])
	var texts []string
	for _, change := range obs.planned.changes {
		texts = append(texts, approval.Text(change))
	}
	if diff := cmp.Diff([]string{"Delete " + names[0], "PowerOn " + names[1] + " and " + names[2]}, texts); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if len(obs.planned.waiting) != 2 || slices.Contains(obs.planned.waiting, obs.members[3]) || len(obs.members) != 4 {
		t.Errorf("%d members wait, of %d", len(obs.planned.waiting), len(obs.members))
	}
}

// TestCreatedByNamesAlone: which members a group created is known of those with its names that are not older.
func TestCreatedByNamesAlone(t *testing.T) {
	group := groupOfSize(3)
	group.CreationTimestamp = metav1.Unix(1000, 0)
	at := func(seconds int64) func(*pcapi.VM) {
		return func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.Unix(seconds, 0) }
	}
	far, beyond := memberName(group, maxNumber-1), memberName(group, maxNumber)
	got := createdBy(group, list(
		vm(memberName(group, 0), at(1000)), vm(memberName(group, 7), at(990)), vm(far, at(2000)), vm(beyond, at(2000)), vm(memberName(group, 1), at(939)), vm(memberName(group, 2), at(2000), func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "x"} }), vm(memberName(group, 3), at(2000), func(vm *pcapi.VM) { vm.Spec.VMName = "db" }), vm("prod-db", at(2000)), vm("web-replica-aaaaaaaa", at(2000))))
	if diff := cmp.Diff(map[string]bool{memberName(group, 0): true, memberName(group, 7): true, far: true}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestApproverOfMembers(t *testing.T) {
	group := groupOfSize(1)
	if got := approverOf(group); got != "VmGroup/"+group.Name {
		t.Error(got)
	}
	group.Status.Plan = &pcapi.PlanStatus{ApprovedBy: "alice"}
	if got := approverOf(group); got != "VmGroup/"+group.Name+" (alice)" {
		t.Error(got)
	}
}
