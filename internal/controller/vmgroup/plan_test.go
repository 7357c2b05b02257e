package vmgroup

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// planned plans and reports. Nothing runs its steps.
var planned = &kind{}

func doomed(finalizers ...string) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) {
		g.DeletionTimestamp, g.Finalizers = &metav1.Time{Time: dawn}, append([]string{pcapi.VmGroupFinalizer}, finalizers...)
	}
}

// sum returns an outcome as text.
func sum(outcome error) string {
	if outcome == nil {
		return "in sync"
	}
	kind := "error"
	if wait, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		kind = "waiting"
		if wait.After > 0 {
			kind += " " + wait.After.String()
		}
	}
	if _, ok := errors.AsType[*reconciler.BlockedError](outcome); ok {
		kind = "blocked"
	}
	if stalled, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		kind = "stalled"
		if stalled.Recheck > 0 {
			kind += ", look again after " + stalled.Recheck.String()
		}
	}
	return fmt.Sprintf("%s, %s: %s", kind, reconciler.Reason(outcome), outcome)
}

func denied(obs *observation) {
	obs.denied = reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New("not allowed"))
}

func closes(obs *observation) { obs.closing = true }

func TestPlan(t *testing.T) {
	const closed = `blocked, CloudUnavailable: Cloud "default" is being deleted, so members are neither created nor replaced on it: ` +
		"choose another in spec.cloudRef, or delete this group"
	for name, test := range map[string]struct {
		group   *pcapi.VmGroup
		members []*pcapi.VM
		obs     []func(*observation)
		steps   []string
		outcome string
		phase   pcapi.VmGroupPhase
	}{
		"in sync":                   {group: groupOfSize(1), members: list(vm("a")), outcome: "in sync", phase: pcapi.VmGroupRunning},
		"the finalizer comes first": {group: groupOfSize(2), obs: []func(*observation){nowhere}, steps: []string{"Claim", "Create"}, outcome: "waiting, Scaling: 0 of 2 members exist, 0 are Ready", phase: pcapi.VmGroupScaling},
		"its Cloud is denied":       {group: groupOfSize(2), members: list(vm("a")), obs: []func(*observation){denied}, outcome: "stalled, CloudUnavailable: not allowed", phase: pcapi.VmGroupError},
		"too many members":          {group: groupOfSize(1), members: list(vm("a"), vm("b")), steps: []string{"Remove"}, outcome: "waiting, Scaling: 2 of 1 members exist, 2 are Ready", phase: pcapi.VmGroupScaling},
		"one waits for the quota":   {group: groupOfSize(2), members: list(vm("a"), vm("b", unmade, awaits(pcapi.QuotaExceededReason))), outcome: "waiting, MembersNotReady: 1 of 2 members are Ready; VM b: QuotaExceeded: because", phase: pcapi.VmGroupScaling},
		"one that was released is kept by somebody else":    {group: groupOfSize(1), members: list(vm("a"), vm("b", leaving, keptByOthers)), outcome: "in sync", phase: pcapi.VmGroupRunning},
		"one that was released is replaced at once":         {group: groupOfSize(1), members: list(vm("b", leaving, keptByOthers)), steps: []string{"Create"}, outcome: "waiting, Scaling: 0 of 1 members exist, 0 are Ready", phase: pcapi.VmGroupScaling},
		"one is still being deleted":                        {group: groupOfSize(1), members: list(vm("a"), vm("b", leaving)), outcome: "waiting, Scaling: 1 of 1 members exist, 1 are Ready", phase: pcapi.VmGroupScaling},
		"one is being built":                                {group: groupOfSize(2), members: list(vm("a"), vm("b", building)), outcome: "waiting, MembersNotReady: 1 of 2 members are Ready", phase: pcapi.VmGroupScaling},
		"one is stalled":                                    {group: groupOfSize(3), members: list(vm("a"), vm("b", unmade), vm("c", building)), outcome: "stalled, MembersStalled: VM b: because", phase: pcapi.VmGroupError},
		"one is stalled, others go on":                      {group: groupOfSize(3), members: list(vm("a"), vm("b", unmade)), steps: []string{"Create"}, outcome: "stalled, MembersStalled: VM b: because", phase: pcapi.VmGroupError},
		"a stalled one is deleted":                          {group: groupOfSize(1), members: list(vm("a"), vm("b", unmade)), steps: []string{"Remove"}, outcome: "waiting, Scaling: 1 of 1 members exist, 1 are Ready", phase: pcapi.VmGroupScaling},
		"one failed again":                                  {group: groupOfSize(2), members: list(vm("a"), vm("b", broken)), obs: []func(*observation){patient}, outcome: "waiting 1m0s, MembersNotReady: members fail again and again: they are replaced later and later; their Ready conditions say why", phase: pcapi.VmGroupScaling},
		"one is stalled, and another failed again":          {group: groupOfSize(2), members: list(vm("a", unmade), vm("b", broken)), obs: []func(*observation){patient}, outcome: "stalled, look again after 1m0s, MembersStalled: VM a: because", phase: pcapi.VmGroupError},
		"one of the former template is still being deleted": {group: groupOfSize(2), members: list(vm("a"), vm("b", former, standsStill(pcapi.RejectedReason), leaving)), outcome: "waiting, Scaling: 1 of 2 members exist, 1 are Ready", phase: pcapi.VmGroupScaling},
		"rolling":                                {group: groupOfSize(2, bounds(1, 0)), members: list(vm("a"), vm("b", former)), steps: []string{"Remove"}, outcome: "waiting, Rolling: 1 of 2 members are of the current revision, 2 are Ready", phase: pcapi.VmGroupRolling},
		"rolling, and the new member is stalled": {group: groupOfSize(1), members: list(vm("a", former), vm("b", unmade)), outcome: "stalled, MembersStalled: VM b: because", phase: pcapi.VmGroupError},
		"OnDelete: an outdated member stays":     {group: groupOfSize(2, onDelete), members: list(vm("a"), vm("b", former)), outcome: "in sync", phase: pcapi.VmGroupRunning},

		"its Cloud is being deleted, in sync":                      {group: groupOfSize(1), members: list(vm("a")), obs: []func(*observation){closes}, outcome: "in sync", phase: pcapi.VmGroupRunning},
		"its Cloud is being deleted: no member is created":         {group: groupOfSize(2), members: list(vm("a")), obs: []func(*observation){closes}, outcome: closed, phase: pcapi.VmGroupPending},
		"its Cloud is being deleted: the group shrinks":            {group: groupOfSize(1), members: list(vm("a"), vm("b")), obs: []func(*observation){closes}, steps: []string{"Remove"}, outcome: closed, phase: pcapi.VmGroupPending},
		"its Cloud is being deleted: no member is replaced":        {group: groupOfSize(2, bounds(1, 0)), members: list(vm("a"), vm("b", former)), obs: []func(*observation){closes}, outcome: closed, phase: pcapi.VmGroupPending},
		"its Cloud is being deleted: a lost member is not removed": {group: groupOfSize(1), members: list(vm("a", lost)), obs: []func(*observation){closes}, outcome: closed, phase: pcapi.VmGroupPending},
		"its Cloud is being deleted: a failed member stays":        {group: groupOfSize(1), members: list(vm("a", broken)), obs: []func(*observation){closes}, outcome: closed, phase: pcapi.VmGroupPending},

		"deleted, and its Cloud, too":                                    {group: groupOfSize(2, doomed()), members: list(vm("a")), obs: []func(*observation){closes}, steps: []string{"Remove", "Release"}, outcome: "in sync", phase: pcapi.VmGroupDeleting},
		"deleted":                                                        {group: groupOfSize(2, doomed()), members: list(vm("a"), vm("b", leaving)), steps: []string{"Remove", "Release"}, outcome: "in sync", phase: pcapi.VmGroupDeleting},
		"deleted, and its Cloud is denied":                               {group: groupOfSize(2, doomed()), members: list(vm("a")), obs: []func(*observation){denied}, steps: []string{"Remove", "Release"}, outcome: "in sync", phase: pcapi.VmGroupDeleting},
		"deleted in the foreground":                                      {group: groupOfSize(2, doomed(metav1.FinalizerDeleteDependents)), members: list(vm("a"), vm("b", leaving)), steps: []string{"Remove"}, outcome: "waiting, Deleting: 2 members are being deleted", phase: pcapi.VmGroupDeleting},
		"deleted, protected: no member is deleted":                       {group: groupOfSize(2, doomed(), keepsMembers), members: list(vm("a"), vm("b")), outcome: "stalled, Blocked: deletion protection is on, so this VmGroup and its members are kept: remove the annotation samplecontroller.k8s.io/deletion-protection to have them deleted", phase: pcapi.VmGroupDeleting},
		"smaller, protected: no member is deleted":                       {group: groupOfSize(1, keepsMembers), members: list(vm("a"), vm("b")), outcome: "stalled, MembersStalled: VM a: deletion protection of this VmGroup is on, so no member is deleted: remove its annotation samplecontroller.k8s.io/deletion-protection to continue", phase: pcapi.VmGroupError},
		"deleted in the foreground: the last member is gone":             {group: groupOfSize(2, doomed(metav1.FinalizerDeleteDependents)), steps: []string{"Remove", "Release"}, outcome: "in sync", phase: pcapi.VmGroupDeleting},
		"deleted in the foreground: the deletion of a member is blocked": {group: groupOfSize(2, doomed(metav1.FinalizerDeleteDependents)), members: list(vm("a", standsStill(pcapi.BlockedReason), stuckInDeletion, leaving)), steps: []string{"Remove"}, outcome: "stalled, MembersStalled: VM a: because", phase: pcapi.VmGroupDeleting},
		"deleted with orphaned members":                                  {group: groupOfSize(2, doomed(metav1.FinalizerOrphanDependents)), members: list(vm("a")), steps: []string{"Disown", "Release"}, outcome: "in sync", phase: pcapi.VmGroupDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(test.members, test.obs...)
			wantInputsUnchanged(t, test.group, obs)
			p := planned.Plan(test.group, obs)
			planned.Report(test.group, obs, p.Outcome)
			if diff := cmp.Diff([]any{test.steps, test.outcome, test.phase}, []any{p.Names(), sum(p.Outcome), test.group.Status.Phase}); diff != "" {
				t.Errorf("steps, outcome and phase (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGroupSaysWhatAMemberWaitsFor has a case for each of lastingReasons: how a member is that waits for it.
func TestGroupSaysWhatAMemberWaitsFor(t *testing.T) {
	made := func(*pcapi.VM) {}
	cases := map[string][]func(*pcapi.VM){
		pcapi.QuotaExceededReason:       {unmade, made},
		pcapi.UnschedulableReason:       {unmade, made},
		pcapi.ClassUnavailableReason:    {unmade, made},
		pcapi.NetworkNotReadyReason:     {unmade},
		pcapi.UserDataUnavailableReason: {unmade},
		pcapi.ApprovalRequiredReason:    {unmade, made},
		pcapi.SnapshotUnavailableReason: {made},
		pcapi.AddressInUseReason:        {unmade},
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(lastingReasons)), slices.Sorted(maps.Keys(cases))); diff != "" {
		t.Fatalf("reasons with a case (-want +got):\n%s", diff)
	}
	for reason, members := range cases {
		for i, member := range members {
			t.Run(fmt.Sprint(reason, " ", i), func(t *testing.T) {
				waits, exist := "; VM b: "+reason+": because", 2
				if vm("b", member).Status.VMID == "" {
					exist = 1
				}
				for _, test := range []struct {
					members []*pcapi.VM
					outcome string
				}{
					{list(vm("a"), vm("b", member, awaits(reason))), "waiting, MembersNotReady: 1 of 2 members are Ready" + waits},
					{list(vm("a"), vm("b", member, awaits(reason)), vm("c", leaving)), fmt.Sprintf("waiting, Scaling: %d of 2 members exist, 1 are Ready%s", exist, waits)},
				} {
					g, obs := groupOfSize(2), observed(test.members)
					p := planned.Plan(g, obs)
					if got := sum(p.Outcome); got != test.outcome {
						t.Errorf("outcome %q, want %q", got, test.outcome)
					}
					planned.Report(g, obs, p.Outcome)
					if g.Status.Phase != pcapi.VmGroupScaling {
						t.Errorf("phase %s, want Scaling", g.Status.Phase)
					}
				}
			})
		}
	}
}

func TestReport(t *testing.T) {
	obs := observed(list(vm("a", busy(20)), vm("b", busy(41)), vm("c", building), vm("d", unmade), vm("e", former), vm("f", lost, busy(90)), vm("g", leaving, busy(90))))
	g := groupOfSize(6)
	planned.Report(g, obs, planned.Plan(g, obs).Outcome)
	half := int32(31)
	want := pcapi.VmGroupStatus{
		Phase: pcapi.VmGroupError, Replicas: 4, ReadyReplicas: 3, UpdatedReplicas: 5, CPUUtilization: &half,
		Revision: obs.revision, Selector: "samplecontroller.k8s.io/group=web",
	}
	if diff := cmp.Diff(want, g.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestReportWritesUtilizationInSteps(t *testing.T) {
	g := groupOfSize(1)
	for _, test := range []struct{ member, want int32 }{{50, 50}, {54, 50}, {46, 50}, {55, 55}, {50, 50}} {
		obs := observed(list(vm("a", busy(test.member))), func(obs *observation) { obs.step = 5 })
		planned.Report(g, obs, nil)
		if got := *g.Status.CPUUtilization; got != test.want {
			t.Errorf("at %d %%: status says %d, want %d", test.member, got, test.want)
		}
	}
	planned.Report(g, observed(list(vm("a"))), nil)
	if got := g.Status.CPUUtilization; got != nil {
		t.Errorf("no utilization is known: status says %d", *got)
	}
}

func textCores(c *pcapi.VMCores) *pcapi.VMCores {
	return new(pcapi.VMCores(intstr.FromString(strconv.Itoa(c.Count()))))
}

func textMemory(text string) *pcapi.VMMemory { return new(pcapi.VMMemory(intstr.FromString(text))) }

func TestRevisionChangesWithTheTemplate(t *testing.T) {
	base := templateOf(groupOfSize(1), "default").revision()
	revisions := map[string]string{
		"unchanged": base, "another Cloud": templateOf(groupOfSize(1), "other").revision(),
	}
	for name, change := range map[string]func(*pcapi.VmGroup){
		"cpu":      func(g *pcapi.VmGroup) { g.Spec.CPU = pcapi.Cores(3) },
		"memory":   func(g *pcapi.VmGroup) { g.Spec.Memory = pcapi.GiB(1) },
		"less":     func(g *pcapi.VmGroup) { g.Spec.Memory = textMemory("512Mi") },
		"template": func(g *pcapi.VmGroup) { g.Spec.Template = "other" },
		"network":  func(g *pcapi.VmGroup) { g.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} },
	} {
		revisions[name] = templateOf(groupOfSize(1, change), "default").revision()
	}
	for name, change := range map[string]func(*pcapi.VmGroup){
		"cpu as text":  func(g *pcapi.VmGroup) { g.Spec.CPU = textCores(g.Spec.CPU) },
		"memory in Gi": func(g *pcapi.VmGroup) { g.Spec.Memory = textMemory("4Gi") },
		"memory in Mi": func(g *pcapi.VmGroup) { g.Spec.Memory = textMemory("4096Mi") },
	} {
		same := groupOfSize(1, func(g *pcapi.VmGroup) { g.Spec.Memory = pcapi.GiB(4) })
		want := templateOf(same, "default").revision()
		change(same)
		if got := templateOf(same, "default").revision(); got != want {
			t.Errorf("%s: revision %s, want %s", name, got, want)
		}
	}
	for name, revision := range revisions {
		t.Run(name, func(t *testing.T) {
			for other, got := range revisions {
				if other != name && got == revision {
					t.Errorf("revision %s, as of %s", revision, other)
				}
			}
		})
	}
	if got := templateOf(groupOfSize(7, onDelete), "default").revision(); got != base {
		t.Error("another size and strategy have another revision")
	}
	if base != "b1105e1d0f" {
		t.Errorf("revision %s of a template that has not changed: an upgrade of the operator would replace every member", base)
	}
}

func TestFailuresDelayReplacementsMoreAndMore(t *testing.T) {
	k := New(nil, nil, controller.Options{Clock: func() time.Time { return dawn }}).Kind.(*kind)
	if got := k.memory.untilReplaceable("group", dawn); got != 0 {
		t.Errorf("before any failure: wait %s", got)
	}
	for _, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		k.memory.replaced("group", dawn)
		if got := k.memory.untilReplaceable("group", dawn); got != want {
			t.Errorf("wait %s, want %s", got, want)
		}
	}
	k.memory.inSync("group", dawn.Add(40*time.Second+lastBackoff))
	if got := k.memory.untilReplaceable("group", dawn); got == 0 {
		t.Error("the backoff of a group that was in sync for a moment began anew")
	}
	if got := k.memory.untilReplaceable("another", dawn); got != 0 {
		t.Errorf("another group waits %s", got)
	}
	for range 10 {
		k.memory.replaced("often", dawn)
	}
	if got := k.memory.untilReplaceable("often", dawn); got != lastBackoff {
		t.Errorf("after ten failures: wait %s, want %s", got, lastBackoff)
	}
	k.memory.inSync("group", dawn.Add(41*time.Second+lastBackoff))
	if got := k.memory.untilReplaceable("group", dawn); got != 0 {
		t.Errorf("in sync again: wait %s", got)
	}
}

func TestMemberInErrorIsReplacedOnlyIfItsServerDoesNotRecover(t *testing.T) {
	const grace = 40 * time.Second
	slow := &pcapi.Cloud{Spec: pcapi.CloudSpec{PollInterval: metav1.Duration{Duration: 30 * time.Second}}}
	if got := graceOn(slow, nil); got != grace {
		t.Errorf("without events the grace is %s, want %s", got, grace)
	}
	if got := graceOn(slow, cloud.Capabilities{cloud.Events}); got != 10*time.Second {
		t.Errorf("with events the grace is %s, want 10s", got)
	}
	for name, test := range map[string]struct {
		// broken reports whether the server is in error after so many seconds.
		broken func(seconds int) bool
		// unreachable reports whether the Cloud does not answer then.
		unreachable func(seconds int) bool
		want        int // the second in which it is replaced, -1 for never
	}{
		"for 8 s: kept":                     {broken: func(s int) bool { return s < 8 }, want: -1},
		"again and again for 39 s: kept":    {broken: func(s int) bool { return s%40 != 39 }, want: -1},
		"for good: replaced":                {broken: func(int) bool { return true }, want: 40},
		"while the Cloud is away: no proof": {broken: func(int) bool { return true }, unreachable: func(s int) bool { return s < 60 }, want: 99},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKind(nil, nil, controller.Options{Clock: func() time.Time { return dawn }})
			got := -1
			for s := 0; s < 120 && got < 0; s++ {
				member := vm("a")
				if test.broken(s) {
					broken(member)
				}
				obs := observed([]*pcapi.VM{member})
				obs.reachable = test.unreachable == nil || !test.unreachable(s)
				obs.recovering = k.memory.observeErrors("group", obs, dawn.Add(time.Duration(s)*time.Second), grace)
				m := movesFor(groupOfSize(1), obs)
				if len(m.remove) > 0 {
					got = s
				}
				if wait, ok := errors.AsType[*reconciler.WaitError](outcomeOf(groupOfSize(1), obs, m)); test.broken(s) && got < 0 && (!ok || wait.After <= 0) {
					t.Errorf("after %d s: the group does not come back to replace it", s)
				}
			}
			if got != test.want {
				t.Errorf("replaced after %d s, want %d", got, test.want)
			}
		})
	}
	k := newKind(nil, nil, controller.Options{Clock: func() time.Time { return dawn }})
	k.memory.observeErrors("group", observed([]*pcapi.VM{vm("a", broken)}), dawn, grace)
	k.memory.forget("group")
	if len(k.memory.of) != 0 {
		t.Error("a group that is gone is remembered")
	}
}

func TestMemberNameFits(t *testing.T) {
	for _, name := range []string{"web", "a.b", "a-very-long-name-that-goes-on-and-on-until-it-does-not-fit-any-more"} {
		t.Run(name, func(t *testing.T) {
			g := groupOfSize(1, func(g *pcapi.VmGroup) { g.Name = name })
			first, second := memberName(g, 0), memberName(g, 1)
			if len(first) > maxVMName || first == second || first != memberName(g, 0) {
				t.Errorf("members of %s are named %s and %s", name, first, second)
			}
			other := groupOfSize(1, func(g *pcapi.VmGroup) { g.Name, g.UID = name, "another" })
			if memberName(other, 0) == first {
				t.Errorf("the first members of two groups are both named %s", first)
			}
		})
	}
}

// keepsMembers protects a group from deletion.
func keepsMembers(g *pcapi.VmGroup) {
	g.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "yes"}
}

func TestReportSetsDeletingOnlyDuringDeletion(t *testing.T) {
	g := groupOfSize(1, doomed())
	planned.Report(g, observed(nil), nil)
	if !meta.IsStatusConditionTrue(g.Status.Conditions, pcapi.DeletingCondition) {
		t.Error("a group that is being deleted has no condition Deleting")
	}
	g.DeletionTimestamp = nil
	planned.Report(g, observed(nil), nil)
	if meta.FindStatusCondition(g.Status.Conditions, pcapi.DeletingCondition) != nil {
		t.Error("a group that is not being deleted has the condition Deleting")
	}
}

func TestGroupInSyncForgetsItsFailures(t *testing.T) {
	now := dawn
	r := New(nil, nil, controller.Options{Clock: func() time.Time { return now }})
	k, g := r.Kind.(*kind), groupOfSize(1)
	k.memory.replaced(g.UID, now)
	now = now.Add(firstBackoff + lastBackoff + time.Second)
	r.Reported(g, observed(nil), errors.New("not in sync"))
	if k.memory.of[g.UID] == nil {
		t.Error("the failures are forgotten although the group is not in sync")
	}
	r.Reported(g, observed(nil), nil)
	if k.memory.of[g.UID] != nil {
		t.Error("the failures are still known although the group is in sync")
	}
}

func TestDeletedGroupIsForgotten(t *testing.T) {
	k, g := newKind(nil, nil, controller.Options{Clock: func() time.Time { return dawn }}), groupOfSize(1)
	k.memory.replaced(g.UID, dawn)
	k.memory.setSize(g.UID, 10_000)
	k.reconciler(controller.Options{}).Forget(func(o client.Object) { k.memory.forget(o.GetUID()) }).Delete(t.Context(), event.DeleteEvent{Object: g}, nil)
	if len(k.memory.of) != 0 {
		t.Error("a group is remembered although it was deleted, whoever removed its finalizer")
	}
}
