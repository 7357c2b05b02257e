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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var dawn = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

// groupOfSize is a group whose template is "debian" with two cores.
func groupOfSize(n int32, change ...func(*pcapi.VmGroup)) *pcapi.VmGroup {
	g := &pcapi.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "group"},
		Spec: pcapi.VmGroupSpec{
			Replicas: &n, CPU: pcapi.Cores(2), Template: "debian",
			Strategy: pcapi.VmGroupStrategy{Type: pcapi.StrategyRollingUpdate},
		},
	}
	for _, f := range change {
		f(g)
	}
	return g
}

func bounds(unavailable, surge int32) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) {
		g.Spec.Strategy.MaxUnavailable, g.Spec.Strategy.MaxSurge = new(intstr.FromInt32(unavailable)), new(intstr.FromInt32(surge))
	}
}

func onDelete(g *pcapi.VmGroup) { g.Spec.Strategy.Type = pcapi.StrategyOnDelete }

func policy(p pcapi.ScaleDownPolicy) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) { g.Spec.ScaleDown.Policy = p }
}

// vm is a Ready member of the group's current revision.
func vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	g := groupOfSize(1)
	t := templateOf(g, "default")
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.NewTime(dawn),
			Finalizers: []string{"samplecontroller.k8s.io/vm"}, Labels: map[string]string{pcapi.RevisionLabel: t.revision()},
		},
		Spec:   pcapi.VMSpec{VMName: name, CPU: t.CPU, Template: t.Template, CloudRef: t.CloudRef, PowerState: pcapi.PowerOn},
		Status: pcapi.VMStatus{VMID: "id-" + name, State: pcapi.VMStateRunning, ObservedGeneration: 1},
	}
	says("True", pcapi.RunningReason)(vm)
	for _, f := range change {
		f(vm)
	}
	return vm
}

func says(status metav1.ConditionStatus, reason string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: status, Reason: reason}}
	}
}

func standsStill(reason string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.Conditions = []metav1.Condition{
			{Type: pcapi.ReadyCondition, Status: "False", Reason: reason, Message: "because"},
			{Type: pcapi.StalledCondition, Status: "True", Reason: reason, Message: "because"},
		}
	}
}

// awaits: the member waits until something else changes.
func awaits(reason string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		says("False", reason)(vm)
		vm.Status.Conditions[0].Message = "because"
	}
}

// keptByOthers: the operator has released the member, and a finalizer of somebody else keeps it.
func keptByOthers(vm *pcapi.VM) { vm.Finalizers = []string{"example.com/backup"} }

func protected(vm *pcapi.VM) {
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[pcapi.DeletionProtectionAnnotation] = "true"
}
func building(vm *pcapi.VM) { says("False", pcapi.CreatingReason)(vm) }
func leaving(vm *pcapi.VM)  { vm.DeletionTimestamp = &metav1.Time{Time: dawn} }
func lost(vm *pcapi.VM) {
	vm.Status.State = pcapi.VMStateLost
	standsStill(pcapi.LostReason)(vm)
}
func broken(vm *pcapi.VM)  { standsStill(pcapi.ServerErrorReason)(vm) }
func unknown(vm *pcapi.VM) { standsStill(pcapi.UnknownStateReason)(vm) }

// unmade was never created, and no create is in flight.
func unmade(vm *pcapi.VM) {
	vm.Status.VMID, vm.Finalizers = "", nil
	standsStill(pcapi.RejectedReason)(vm)
}

// stuckInDeletion: the deletion waits for a person to act.
func stuckInDeletion(vm *pcapi.VM) {
	vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: pcapi.DeletingCondition, Status: "True", Reason: pcapi.BlockedReason})
}

func taken(vm *pcapi.VM) {
	unmade(vm)
	standsStill(pcapi.TakenReason)(vm)
}

// former is of a revision with another template, smaller of one with fewer cores.
func former(vm *pcapi.VM) {
	vm.Spec.Template, vm.Labels[pcapi.RevisionLabel] = "debian-12", "older"
}

// waiting has a probe, and a guest that is not ready.
func waiting(vm *pcapi.VM) {
	vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
	vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: pcapi.GuestReadyCondition, Status: "False", Reason: pcapi.NoAddressReason})
}

// reachable has a probe, and a guest that is ready.
func reachable(vm *pcapi.VM) {
	waiting(vm)
	vm.Status.Conditions[len(vm.Status.Conditions)-1].Status = "True"
}

func withHeartbeatProbe(obs *observation) {
	obs.template.ReadinessProbe = &pcapi.VMReadinessProbe{GuestHeartbeat: &pcapi.VMGuestHeartbeatProbe{}}
	obs.reachable, obs.caps = true, cloud.NewCapabilities(cloud.Resize, cloud.Addresses)
}

func withSocketProbe(obs *observation) {
	withProbe(obs)
	obs.template.ReadinessProbe = &pcapi.VMReadinessProbe{TCPSocket: &pcapi.VMTCPSocketProbe{Port: 22}}
}

// socketProbed has a probe of a port, and a guest for which the condition holds.
func socketProbed(port int32, status metav1.ConditionStatus, reason string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{TCPSocket: &pcapi.VMTCPSocketProbe{Port: port}}
		vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: pcapi.GuestReadyCondition, Status: status, Reason: reason})
	}
}

func withProbe(obs *observation) {
	obs.template.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
	obs.reachable, obs.caps = true, cloud.NewCapabilities(cloud.Resize, cloud.Addresses)
}

func addressless(obs *observation) { obs.caps = cloud.NewCapabilities(cloud.Resize) }

// earlier is of a revision with a smaller disk.
func earlier(vm *pcapi.VM) {
	vm.Spec.Disks, vm.Labels[pcapi.RevisionLabel] = []pcapi.VMDisk{diskOf("data", "1Gi")}, "older"
}

func withDisk(obs *observation) {
	obs.template.Disks = []pcapi.VMDisk{diskOf("data", "2Gi")}
	obs.reachable, obs.caps = true, cloud.NewCapabilities(cloud.Resize, cloud.WithDisks)
}

// tagless has a template with other tags, which the cloud cannot have.
func tagless(obs *observation) {
	withTags(obs)
	obs.caps = cloud.NewCapabilities(cloud.Resize)
}

// withTags has a template with other tags.
func withTags(obs *observation) {
	obs.template.Tags = map[string]pcapi.TagValue{"env": "prod"}
	obs.reachable, obs.caps = true, cloud.NewCapabilities(cloud.Resize, cloud.Labels)
}

func diskless(obs *observation) { obs.caps = cloud.NewCapabilities(cloud.Resize) }

func smaller(vm *pcapi.VM) {
	vm.Spec.CPU, vm.Labels[pcapi.RevisionLabel] = pcapi.Cores(1), "older"
}
func unlabelled(vm *pcapi.VM) { vm.Labels = nil }
func off(vm *pcapi.VM)        { vm.Spec.PowerState = pcapi.PowerOff }
func asleep(vm *pcapi.VM)     { vm.Spec.PowerState = pcapi.PowerSuspended }
func first(vm *pcapi.VM) {
	vm.Annotations = map[string]string{pcapi.DeleteFirstAnnotation: ""}
}

func made(minutes int) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.CreationTimestamp = metav1.NewTime(dawn.Add(time.Duration(minutes) * time.Minute))
	}
}

func busy(percent int32) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.CPUUtilization = &percent }
}

func observed(members []*pcapi.VM, change ...func(*observation)) *observation {
	t := templateOf(groupOfSize(1), "default")
	obs := &observation{claimed: true, template: t, revision: t.revision(), caps: cloud.NewCapabilities(cloud.Resize), step: 1, members: members}
	for _, f := range change {
		f(obs)
	}
	return obs
}

func patient(obs *observation)         { obs.patience = time.Minute }
func rigid(obs *observation)           { obs.caps = nil }
func nowhere(obs *observation)         { obs.claimed = false }
func list(of ...*pcapi.VM) []*pcapi.VM { return of }

func TestMoves(t *testing.T) {
	type changes struct {
		Remove, Align   []string
		Keep            []string
		Create, Awaited int
		Replaces        bool
		Protected       []string
	}
	three := []*pcapi.VM{vm("a"), vm("b"), vm("c")}
	for name, test := range map[string]struct {
		group   *pcapi.VmGroup
		members []*pcapi.VM
		obs     []func(*observation)
		want    changes
	}{
		"in sync":                                {groupOfSize(3), three, nil, changes{}},
		"no members":                             {groupOfSize(3), nil, nil, changes{Create: 3}},
		"no number in the spec: one member":      {groupOfSize(3, func(g *pcapi.VmGroup) { g.Spec.Replicas = nil }), nil, nil, changes{Create: 1}},
		"size 0: all are deleted":                {groupOfSize(0), three, nil, changes{Remove: []string{"a", "b", "c"}}},
		"one that is being deleted still counts": {groupOfSize(3), list(vm("a"), vm("b"), vm("c", leaving)), nil, changes{Awaited: 1}},
		"one that is being deleted and has no server does not count": {groupOfSize(3), list(vm("a"), vm("b"), vm("c", unmade, leaving)), nil, changes{Create: 1}},
		"a lost one is replaced at once":                             {groupOfSize(2), list(vm("a"), vm("b", lost)), nil, changes{Remove: []string{"b"}, Create: 1}},
		"a failed one is deleted before another is created":          {groupOfSize(2), list(vm("a"), vm("b", broken)), nil, changes{Remove: []string{"b"}, Awaited: 1, Replaces: true}},
		"one that fails again is kept for a while":                   {groupOfSize(2), list(vm("a"), vm("b", broken)), []func(*observation){patient}, changes{}},
		"one of unknown state is not deleted":                        {groupOfSize(2), list(vm("a"), vm("b", unknown)), nil, changes{}},
		"a rejected one is not created again and again":              {groupOfSize(2), list(vm("a"), vm("b", unmade)), nil, changes{}},
		"one whose name is taken is replaced under another name":     {groupOfSize(2), list(vm("a"), vm("b", taken)), nil, changes{Remove: []string{"b"}, Create: 1, Replaces: true}},
		"one that was powered off is powered on":                     {groupOfSize(2), list(vm("a"), vm("b", off)), nil, changes{Align: []string{"b"}}},
		"one that was suspended is powered on":                       {groupOfSize(2), list(vm("a"), vm("b", asleep)), nil, changes{Align: []string{"b"}}},
		"one that is to be deleted is not powered on":                {groupOfSize(1), list(vm("a"), vm("b", off, first)), nil, changes{Remove: []string{"b"}}},

		"the newest is deleted":                                     {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1)), vm("c", made(2))), nil, changes{Remove: []string{"a"}}},
		"the oldest is deleted":                                     {groupOfSize(2, policy(pcapi.ScaleDownOldest)), list(vm("a", made(3)), vm("b", made(1)), vm("c", made(2))), nil, changes{Remove: []string{"b"}}},
		"the least utilised is deleted":                             {groupOfSize(2, policy(pcapi.ScaleDownLeastUtilised)), list(vm("a", busy(50)), vm("b", busy(70)), vm("c", busy(10))), nil, changes{Remove: []string{"c"}}},
		"one annotated delete-first is deleted before the policy's": {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1), first), vm("c", made(2))), nil, changes{Remove: []string{"b"}}},
		"one that is not Ready is deleted before the policy's":      {groupOfSize(2), list(vm("a", made(3)), vm("b", made(1), building), vm("c", made(2))), nil, changes{Remove: []string{"b"}}},

		"protected ones are not deleted before the policy's":   {groupOfSize(2), list(vm("a", made(3), first, protected), vm("b", made(1)), vm("c", made(2))), nil, changes{Remove: []string{"c"}}},
		"protected ones beyond the size are kept":              {groupOfSize(0), list(vm("a", protected), vm("b")), nil, changes{Remove: []string{"b"}, Protected: []string{"a"}}},
		"a protected one that failed is kept and not replaced": {groupOfSize(2), list(vm("a"), vm("b", broken, protected)), nil, changes{Awaited: 1, Protected: []string{"b"}}},
		"a protected one that is lost is kept and replaced":    {groupOfSize(2), list(vm("a"), vm("b", lost, protected)), nil, changes{Create: 1, Protected: []string{"b"}}},

		"surge 0: old ones that are not protected are replaced":                       {groupOfSize(2, bounds(1, 0)), list(vm("a", former, protected), vm("b", former)), nil, changes{Remove: []string{"b"}, Awaited: 2}},
		"only protected ones are old: none is deleted":                                {groupOfSize(2, bounds(1, 0)), list(vm("a", former, protected), vm("b")), nil, changes{Awaited: 1, Protected: []string{"a"}}},
		"a new template, surge 1: one more is created":                                {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former)), nil, changes{Create: 1, Awaited: 2}},
		"surge 1, the new one is Ready: an old one is deleted":                        {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d")), nil, changes{Remove: []string{"a"}, Awaited: 2}},
		"surge 1, the new one is not Ready: nothing":                                  {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d", building)), nil, changes{Awaited: 2}},
		"surge 1, the guest of the new one is not ready: nothing":                     {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", waiting)), []func(*observation){withProbe}, changes{Awaited: 1}},
		"surge 1, the guest of the new one is ready: an old one is deleted":           {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", reachable)), []func(*observation){withProbe}, changes{Remove: []string{"a"}, Awaited: 1}},
		"surge 1, no guest is ready, and a new one is made first":                     {groupOfSize(3, bounds(0, 1)), list(vm("a", former, waiting), vm("b", former, waiting), vm("c", former, waiting)), []func(*observation){withProbe}, changes{Create: 1, Awaited: 2}},
		"surge 0, no guest is ready: one is replaced, as many as may be":              {groupOfSize(3, bounds(1, 0)), list(vm("a", former, waiting), vm("b", former, waiting), vm("c", former, waiting)), []func(*observation){withProbe}, changes{Remove: []string{"a"}, Awaited: 3}},
		"surge 0, the guest of the first new one is not ready: nothing":               {groupOfSize(3, bounds(1, 0)), list(vm("b", former, waiting), vm("c", former, waiting), vm("d", waiting)), []func(*observation){withProbe}, changes{Awaited: 2}},
		"a new size, no guest is ready: one at a time":                                {groupOfSize(3, bounds(1, 0)), list(vm("a", smaller, waiting), vm("b", smaller, waiting), vm("c", smaller, waiting)), []func(*observation){withProbe}, changes{Align: []string{"c"}}},
		"a new template and a probe, the cloud shows no addresses: nothing":           {groupOfSize(2, bounds(1, 0)), list(vm("a", former, waiting), vm("b", former, waiting)), []func(*observation){withProbe, addressless}, changes{}},
		"a new template and a heartbeat probe, the cloud shows none: nothing":         {groupOfSize(2, bounds(1, 0)), list(vm("a", former, waiting), vm("b", former, waiting)), []func(*observation){withHeartbeatProbe}, changes{}},
		"a new template and a probe of a port, the cloud shows no addresses: nothing": {groupOfSize(2, bounds(1, 0)), list(vm("a", former, waiting), vm("b", former, waiting)), []func(*observation){withSocketProbe, addressless}, changes{}},
		"surge 1, the port of the new one is closed: nothing":                         {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", socketProbed(22, "False", pcapi.ConnectionRefusedReason))), []func(*observation){withSocketProbe}, changes{Awaited: 1}},
		"surge 1, the port of the new one may not be probed: nothing":                 {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", socketProbed(22, "Unknown", pcapi.ProbeNotAllowedReason))), []func(*observation){withSocketProbe}, changes{Awaited: 1}},
		"surge 1, the port of the new one is open: an old one is deleted":             {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", socketProbed(22, "True", pcapi.PortOpenReason))), []func(*observation){withSocketProbe}, changes{Remove: []string{"a"}, Awaited: 1}},
		"another port to probe: all members of the revision get it":                   {groupOfSize(2), list(vm("a", socketProbed(80, "True", pcapi.PortOpenReason)), vm("b", socketProbed(22, "True", pcapi.PortOpenReason))), []func(*observation){withSocketProbe}, changes{Align: []string{"a"}}},
		"a new probe: all members of the revision get it":                             {groupOfSize(2), list(vm("a"), vm("b")), []func(*observation){withProbe}, changes{Align: []string{"a", "b"}}},
		"a new power-off mode: all members of the revision get it":                    {groupOfSize(2), list(vm("a"), vm("b", off)), []func(*observation){func(obs *observation) { obs.template.PowerOffMode = pcapi.PowerOffModeHard }}, changes{Align: []string{"a", "b"}}},
		"the probe was removed: from all members":                                     {groupOfSize(2), list(vm("a", reachable), vm("b", waiting)), nil, changes{Align: []string{"a", "b"}}},
		"surge 1, the old one is being deleted: nothing":                              {groupOfSize(3, bounds(0, 1)), list(vm("a", former, leaving), vm("b", former), vm("c", former), vm("d")), nil, changes{Awaited: 2}},
		"a new template, surge 0: an old one is deleted first":                        {groupOfSize(3, bounds(1, 0)), list(vm("a", former), vm("b", former), vm("c", former)), nil, changes{Remove: []string{"a"}, Awaited: 3}},
		"surge 0, an old one is gone: a new one is created":                           {groupOfSize(3, bounds(1, 0)), list(vm("b", former), vm("c", former)), nil, changes{Create: 1, Awaited: 2}},
		"the default surge of a small group is one":                                   {groupOfSize(3), list(vm("a", former), vm("b", former), vm("c", former)), nil, changes{Create: 1, Awaited: 2}},
		"surge 0 and unavailable 0: one may be unavailable":                           {groupOfSize(2, bounds(0, 0)), list(vm("a", former), vm("b", former)), nil, changes{Remove: []string{"a"}, Awaited: 2}},
		"old ones that are not Ready are deleted first":                               {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former, broken), vm("c", former)), []func(*observation){patient}, changes{Remove: []string{"b"}, Create: 1, Awaited: 2}},
		"old ones that were never created are all replaced":                           {groupOfSize(2, bounds(0, 1)), list(vm("a", former, unmade), vm("b", former, unmade)), nil, changes{Remove: []string{"a", "b"}, Create: 2}},
		"the new one is rejected: the roll stops":                                     {groupOfSize(3, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c", former), vm("d", unmade)), nil, changes{Awaited: 2}},
		"the size shrinks while rolling: old ones are deleted":                        {groupOfSize(1, bounds(0, 1)), list(vm("a", former), vm("b", former), vm("c")), nil, changes{Remove: []string{"a", "b"}}},
		"an old one that is off is powered on":                                        {groupOfSize(2, onDelete), list(vm("a"), vm("b", former, off)), nil, changes{Keep: []string{"b"}}},
		"an old one that is off is not Ready, and deleted first":                      {groupOfSize(2, bounds(1, 0)), list(vm("a", former), vm("b", former, off)), nil, changes{Remove: []string{"b"}, Awaited: 2}},
		"a new one that is to be deleted is not powered on":                           {groupOfSize(1, bounds(1, 0)), list(vm("a", former), vm("b"), vm("c", off)), nil, changes{Remove: []string{"a", "c"}}},
		"OnDelete: old ones stay":                                                     {groupOfSize(2, onDelete), list(vm("a", former), vm("b", former)), nil, changes{}},
		"OnDelete, one was deleted: a new one is created":                             {groupOfSize(2, onDelete), list(vm("a", former)), nil, changes{Create: 1}},
		"an old one that is suspended is powered on":                                  {groupOfSize(2, onDelete), list(vm("a"), vm("b", former, asleep)), nil, changes{Keep: []string{"b"}}},
		"an old one that is suspended is not Ready, and deleted first":                {groupOfSize(2, bounds(1, 0)), list(vm("a", former), vm("b", former, asleep)), nil, changes{Remove: []string{"b"}, Awaited: 2}},

		"a new size: one at a time":                                                 {groupOfSize(3, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller), vm("c", smaller)), nil, changes{Align: []string{"c"}}},
		"a new size, unavailable 0: replaced":                                       {groupOfSize(2, bounds(0, 1)), list(vm("a", smaller), vm("b", smaller)), nil, changes{Create: 1, Awaited: 1}},
		"a small group is resized by percentage, too":                               {groupOfSize(3), list(vm("a", smaller), vm("b", smaller), vm("c", smaller)), nil, changes{Align: []string{"c"}}},
		"a new size, the first is not Ready: no other is resized":                   {groupOfSize(3, bounds(1, 0)), list(vm("a", building), vm("b", smaller), vm("c", smaller)), nil, changes{}},
		"a new size, the cloud cannot resize: replaced":                             {groupOfSize(2, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller)), []func(*observation){rigid}, changes{Remove: []string{"a"}, Awaited: 2}},
		"a new size, never created: changed whatever the cloud can":                 {groupOfSize(1), list(vm("a", smaller, unmade)), []func(*observation){rigid}, changes{Align: []string{"a"}}},
		"disks grow, unavailable 0: in place, one at a time":                        {groupOfSize(3, bounds(0, 1)), list(vm("a", earlier), vm("b", earlier), vm("c", earlier)), []func(*observation){withDisk}, changes{Align: []string{"c"}}},
		"other tags: all members at once, in place":                                 {groupOfSize(2, bounds(0, 1)), list(vm("a"), vm("b")), []func(*observation){withTags}, changes{Align: []string{"a", "b"}}},
		"other tags, OnDelete: also old members":                                    {groupOfSize(2, onDelete), list(vm("a"), vm("b", former)), []func(*observation){withTags}, changes{Align: []string{"a"}, Keep: []string{"b"}}},
		"other tags and a template: also old members that wait":                     {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former)), []func(*observation){withTags}, changes{Create: 1, Awaited: 1, Keep: []string{"a", "b"}}},
		"a new template and tags, the cloud has none: nothing":                      {groupOfSize(2, bounds(1, 0)), list(vm("a", former), vm("b", former)), []func(*observation){tagless}, changes{}},
		"disks grow, the cloud has none: no member is replaced":                     {groupOfSize(3), list(vm("a", earlier), vm("b", earlier), vm("c", earlier)), []func(*observation){withDisk, diskless}, changes{}},
		"a member of the revision lost a disk and its spec lacks it: left as it is": {groupOfSize(2), list(vm("a"), vm("b")), []func(*observation){withDisk}, changes{}},
		"labels that were removed are added again":                                  {groupOfSize(2), list(vm("a"), vm("b", unlabelled)), []func(*observation){rigid}, changes{Align: []string{"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := movesFor(test.group, observed(test.members, test.obs...))
			got := changes{Remove: namesOf(m.remove), Align: namesOf(m.align), Keep: namesOf(m.keep), Create: m.create, Awaited: m.awaited, Replaces: m.replaces, Protected: namesOf(m.protected)}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

func namesOf(members []*pcapi.VM) []string {
	var names []string
	for _, vm := range members {
		names = append(names, vm.Name)
	}
	slices.Sort(names)
	return names
}

func TestRandomVictimsAreTheSameEachTime(t *testing.T) {
	var members []*pcapi.VM
	for i := range 20 {
		members = append(members, vm(fmt.Sprintf("m%02d", i), made(i)))
	}
	want := namesOf(victims(members, 5, pcapi.ScaleDownRandom, observed(nil).revision))
	slices.Reverse(members)
	if diff := cmp.Diff(want, namesOf(victims(members, 5, pcapi.ScaleDownRandom, observed(nil).revision))); diff != "" {
		t.Errorf("victims (-once +again):\n%s", diff)
	}
	if slices.Equal(want, []string{"m00", "m01", "m02", "m03", "m04"}) || slices.Equal(want, []string{"m15", "m16", "m17", "m18", "m19"}) {
		t.Errorf("chance picked %v, which is an age", want)
	}
}
