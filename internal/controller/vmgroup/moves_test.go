package vmgroup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var dawn = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

// groupOfSize is a group whose template is "debian" with two cores.
func groupOfSize(n int32, change ...func(*v1alpha1.VmGroup)) *v1alpha1.VmGroup {
	g := &v1alpha1.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "group"},
		Spec: v1alpha1.VmGroupSpec{
			Replicas: &n, CPU: ptr.To[int32](2), Template: "debian",
			Strategy: v1alpha1.VmGroupStrategy{Type: v1alpha1.StrategyRollingUpdate},
		},
	}
	for _, f := range change {
		f(g)
	}
	return g
}

func bounds(unavailable, surge int32) func(*v1alpha1.VmGroup) {
	return func(g *v1alpha1.VmGroup) {
		g.Spec.Strategy.MaxUnavailable, g.Spec.Strategy.MaxSurge = new(intstr.FromInt32(unavailable)), new(intstr.FromInt32(surge))
	}
}

func onDelete(g *v1alpha1.VmGroup) { g.Spec.Strategy.Type = v1alpha1.StrategyOnDelete }

func policy(p v1alpha1.ScaleDownPolicy) func(*v1alpha1.VmGroup) {
	return func(g *v1alpha1.VmGroup) { g.Spec.ScaleDown.Policy = p }
}

// vm is a Ready member of the group's current revision.
func vm(name string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	g := groupOfSize(1)
	t := templateOf(g, "default")
	vm := &v1alpha1.VM{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(dawn),
			Finalizers: []string{"samplecontroller.k8s.io/vm"}, Labels: map[string]string{v1alpha1.RevisionLabel: t.revision()},
		},
		Spec:   v1alpha1.VMSpec{VMName: name, CPU: t.CPU, Template: t.Template, CloudRef: &v1alpha1.CloudReference{Name: t.Cloud}, PowerState: v1alpha1.PowerOn},
		Status: v1alpha1.VMStatus{VMID: "id-" + name, State: v1alpha1.VMStateRunning, ObservedGeneration: 1},
	}
	says("True", v1alpha1.RunningReason)(vm)
	for _, f := range change {
		f(vm)
	}
	return vm
}

func says(status metav1.ConditionStatus, reason string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) {
		vm.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: reason}}
	}
}

func standsStill(reason string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) {
		vm.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ReadyCondition, Status: "False", Reason: reason, Message: "because"},
			{Type: v1alpha1.StalledCondition, Status: "True", Reason: reason, Message: "because"},
		}
	}
}

func building(vm *v1alpha1.VM) { says("False", v1alpha1.CreatingReason)(vm) }
func leaving(vm *v1alpha1.VM)  { vm.DeletionTimestamp = &metav1.Time{Time: dawn} }
func lost(vm *v1alpha1.VM) {
	vm.Status.State = v1alpha1.VMStateLost
	standsStill(v1alpha1.LostReason)(vm)
}
func broken(vm *v1alpha1.VM)  { standsStill(v1alpha1.ServerErrorReason)(vm) }
func unknown(vm *v1alpha1.VM) { standsStill(v1alpha1.UnknownStateReason)(vm) }

// unmade was never created, nor is a create on its way.
func unmade(vm *v1alpha1.VM) {
	vm.Status.VMID, vm.Finalizers = "", nil
	standsStill(v1alpha1.RejectedReason)(vm)
}

// stuckInDeletion: the deletion needs somebody to act.
func stuckInDeletion(vm *v1alpha1.VM) {
	vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: v1alpha1.DeletingCondition, Status: "True", Reason: v1alpha1.BlockedReason})
}

func taken(vm *v1alpha1.VM) {
	unmade(vm)
	standsStill(v1alpha1.TakenReason)(vm)
}

// former is of a revision with another template, smaller of one with less cores.
func former(vm *v1alpha1.VM) {
	vm.Spec.Template, vm.Labels[v1alpha1.RevisionLabel] = "debian-12", "older"
}

func smaller(vm *v1alpha1.VM) {
	vm.Spec.CPU, vm.Labels[v1alpha1.RevisionLabel] = ptr.To[int32](1), "older"
}
func unlabelled(vm *v1alpha1.VM) { vm.Labels = nil }
func off(vm *v1alpha1.VM)        { vm.Spec.PowerState = v1alpha1.PowerOff }
func first(vm *v1alpha1.VM) {
	vm.Annotations = map[string]string{v1alpha1.DeleteFirstAnnotation: ""}
}

func made(minutes int) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) {
		vm.CreationTimestamp = metav1.NewTime(dawn.Add(time.Duration(minutes) * time.Minute))
	}
}

func busy(percent int32) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) { vm.Status.CPUUtilization = &percent }
}

func seeing(members []*v1alpha1.VM, change ...func(*scope)) *scope {
	t := templateOf(groupOfSize(1), "default")
	obs := &scope{claimed: true, template: t, revision: t.revision(), caps: cloud.NewCapabilities(cloud.Resize), step: 1, members: members}
	for _, f := range change {
		f(obs)
	}
	return obs
}

func patient(obs *scope)                     { obs.patience = time.Minute }
func rigid(obs *scope)                       { obs.caps = nil }
func nowhere(obs *scope)                     { obs.claimed = false }
func list(of ...*v1alpha1.VM) []*v1alpha1.VM { return of }

func TestMoves(t *testing.T) {
	type told struct {
		Remove, Align   []string
		Start           []string
		Create, Awaited int
		Replaces        bool
	}
	three := []*v1alpha1.VM{vm("a"), vm("b"), vm("c")}
	for name, test := range map[string]struct {
		group   *v1alpha1.VmGroup
		members []*v1alpha1.VM
		obs     []func(*scope)
		want    told
	}{
		"as it should be":                                {groupOfSize(3), three, nil, told{}},
		"from nothing":                                   {groupOfSize(3), nil, nil, told{Create: 3}},
		"one is asked for where no number is":            {groupOfSize(3, func(g *v1alpha1.VmGroup) { g.Spec.Replicas = nil }), nil, nil, told{Create: 1}},
		"to nothing":                                     {groupOfSize(0), three, nil, told{Remove: []string{"a", "b", "c"}}},
		"one that is leaving still counts":               {groupOfSize(3), list(vm("a"), vm("b"), vm("c", leaving)), nil, told{Awaited: 1}},
		"one that leaves and never had a server is none": {groupOfSize(3), list(vm("a"), vm("b"), vm("c", unmade, leaving)), nil, told{Create: 1}},
		"a lost one is replaced at once":                 {groupOfSize(2), list(vm("a"), vm("b", lost)), nil, told{Remove: []string{"b"}, Create: 1}},
		"a broken one goes before another comes":         {groupOfSize(2), list(vm("a"), vm("b", broken)), nil, told{Remove: []string{"b"}, Awaited: 1, Replaces: true}},
		"one that breaks again is kept for a while":      {groupOfSize(2), list(vm("a"), vm("b", broken)), []func(*scope){patient}, told{}},
		"a state without a word is no reason to delete":  {groupOfSize(2), list(vm("a"), vm("b", unknown)), nil, told{}},
		"a rejected one is not made again and again":     {groupOfSize(2), list(vm("a"), vm("b", unmade)), nil, told{}},
		"one whose name is taken gets another":           {groupOfSize(2), list(vm("a"), vm("b", taken)), nil, told{Remove: []string{"b"}, Create: 1, Replaces: true}},
		"one that was switched off is put on":            {groupOfSize(2), list(vm("a"), vm("b", off)), nil, told{Align: []string{"b"}}},
		"one that goes is not put on":                    {groupOfSize(1), list(vm("a"), vm("b", off, first)), nil, told{Remove: []string{"b"}}},

		"the newest goes":     {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1)), vm("c", made(2))), nil, told{Remove: []string{"a"}}},
		"the oldest goes":     {groupOfSize(2, policy(v1alpha1.ScaleDownOldest)), list(vm("a", made(3)), vm("b", made(1)), vm("c", made(2))), nil, told{Remove: []string{"b"}}},
		"the least used goes": {groupOfSize(2, policy(v1alpha1.ScaleDownLeastUtilised)), list(vm("a", busy(50)), vm("b", busy(70)), vm("c", busy(10))), nil, told{Remove: []string{"c"}}},
		"one that was marked goes before the policy's":    {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1), first), vm("c", made(2))), nil, told{Remove: []string{"b"}}},
		"one that serves nobody goes before the policy's": {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1), building), vm("c", made(2))), nil, told{Remove: []string{"b"}}},

		"a new template: one more, while all serve": {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former)), nil, told{Create: 1, Awaited: 2}},
		"then one less":                                        {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d")), nil, told{Remove: []string{"a"}, Awaited: 2}},
		"not before the new one serves":                        {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d", building)), nil, told{Awaited: 2}},
		"nor while the old one is leaving":                     {groupOfSize(3, bounds(0, 1)), list(vm("a", former, leaving), vm("b", former), vm("c", former), vm("d")), nil, told{Awaited: 2}},
		"without surge: one less first":                        {groupOfSize(3, bounds(1, 0)), list(vm("a", former), vm("b", former), vm("c", former)), nil, told{Remove: []string{"a"}, Awaited: 3}},
		"then one more":                                        {groupOfSize(3, bounds(1, 0)), list(vm("b", former), vm("c", former)), nil, told{Create: 1, Awaited: 2}},
		"a quarter of a small group rounds to one more":        {groupOfSize(3), list(vm("a", former), vm("b", former), vm("c", former)), nil, told{Create: 1, Awaited: 2}},
		"neither more nor less would stand still":              {groupOfSize(2, bounds(0, 0)), list(vm("a", former), vm("b", former)), nil, told{Remove: []string{"a"}, Awaited: 2}},
		"old ones that serve nobody go first":                  {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former, broken), vm("c", former)), []func(*scope){patient}, told{Remove: []string{"b"}, Create: 1, Awaited: 2}},
		"a template that was wrong: nothing is lost":           {groupOfSize(2, bounds(0, 1)), list(vm("a", former, unmade), vm("b", former, unmade)), nil, told{Remove: []string{"a", "b"}, Create: 2}},
		"a template that is wrong now stops the roll":          {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d", unmade)), nil, told{Awaited: 2}},
		"shrinking while rolling":                              {groupOfSize(1, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c")), nil, told{Remove: []string{"a", "b"}}},
		"an old one that is off is put on":                     {groupOfSize(2, onDelete), list(vm("a"), vm("b", former, off)), nil, told{Start: []string{"b"}}},
		"an old one that is off serves nobody, and goes first": {groupOfSize(2, bounds(1, 0)), list(vm("a", former), vm("b", former, off)), nil, told{Remove: []string{"b"}, Awaited: 2}},
		"a fresh one that goes is not put on":                  {groupOfSize(1, bounds(1, 0)), list(vm("a", former), vm("b"), vm("c", off)), nil, told{Remove: []string{"a", "c"}}},
		"of other revisions, left until deleted":               {groupOfSize(2, onDelete), list(vm("a", former), vm("b", former)), nil, told{}},
		"one of them was deleted":                              {groupOfSize(2, onDelete), list(vm("a", former)), nil, told{Create: 1}},

		"a new size: one at a time":                   {groupOfSize(3, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller), vm("c", smaller)), nil, told{Align: []string{"c"}}},
		"with surge alone they are replaced":          {groupOfSize(2, bounds(0, 1)), list(vm("a", smaller), vm("b", smaller)), nil, told{Create: 1, Awaited: 1}},
		"a small group is resized by percentage, too": {groupOfSize(3), list(vm("a", smaller), vm("b", smaller), vm("c", smaller)), nil, told{Align: []string{"c"}}},
		"not the next before the first serves":        {groupOfSize(3, bounds(1, 0)), list(vm("a", building), vm("b", smaller), vm("c", smaller)), nil, told{}},
		"the cloud cannot resize: replaced":           {groupOfSize(2, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller)), []func(*scope){rigid}, told{Remove: []string{"a"}, Awaited: 2}},
		"never made: resized whatever the cloud can":  {groupOfSize(1), list(vm("a", smaller, unmade)), []func(*scope){rigid}, told{Align: []string{"a"}}},
		"labels taken off by hand are put on again":   {groupOfSize(2), list(vm("a"), vm("b", unlabelled)), []func(*scope){rigid}, told{Align: []string{"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := movesFor(test.group, seeing(test.members, test.obs...))
			got := told{Remove: namesOf(m.remove), Align: namesOf(m.align), Start: namesOf(m.start), Create: m.create, Awaited: m.awaited, Replaces: m.replaces}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

func namesOf(members []*v1alpha1.VM) []string {
	var names []string
	for _, vm := range members {
		names = append(names, vm.Name)
	}
	slices.Sort(names)
	return names
}

func TestRandomVictimsAreTheSameWheneverAsked(t *testing.T) {
	var members []*v1alpha1.VM
	for i := range 20 {
		members = append(members, vm(fmt.Sprintf("m%02d", i), made(i)))
	}
	want := namesOf(victims(members, 5, v1alpha1.ScaleDownRandom, seeing(nil).revision))
	slices.Reverse(members)
	if diff := cmp.Diff(want, namesOf(victims(members, 5, v1alpha1.ScaleDownRandom, seeing(nil).revision))); diff != "" {
		t.Errorf("victims (-once +again):\n%s", diff)
	}
	if slices.Equal(want, []string{"m00", "m01", "m02", "m03", "m04"}) || slices.Equal(want, []string{"m15", "m16", "m17", "m18", "m19"}) {
		t.Errorf("chance picked %v, which is an age", want)
	}
}
