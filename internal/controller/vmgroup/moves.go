package vmgroup

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
)

// moves is what a reconcile changes about the members.
type moves struct {
	// remove are to be deleted. replaces is whether failed ones are among them.
	remove   []*pcapi.VM
	replaces bool
	// align are to be brought in line with the template in place.
	align []*pcapi.VM
	// keep are those of older revisions that are to be powered on or to get other tags.
	keep []*pcapi.VM
	// create is the number of members to create.
	create int
	// awaited is the number of members that will be created once others are gone.
	awaited int
	// protected are those that would be deleted if they were not protected.
	protected []*pcapi.VM
}

func (m moves) none() bool {
	return len(m.remove) == 0 && len(m.align) == 0 && len(m.keep) == 0 && m.create == 0 && m.awaited == 0
}

// setOf returns a set of members.
func setOf(lists ...[]*pcapi.VM) map[*pcapi.VM]bool {
	set := map[*pcapi.VM]bool{}
	for _, list := range lists {
		for _, vm := range list {
			set[vm] = true
		}
	}
	return set
}

// movesFor decides which members are created, changed and deleted. Members count
// against the group's size until their servers are gone, so that there are never
// more servers than wanted, except for maxSurge while rolling.
func movesFor(g *pcapi.VmGroup, obs *observation) moves {
	var m moves
	m.decide(g, obs)
	m.protect(g)
	return m
}

// protect keeps the members that users protect from deletion, by themselves or with their group. They are the last ones that
// are chosen, and count as before: no member is created in place of one that has a server.
func (m *moves) protect(g *pcapi.VmGroup) {
	m.remove = slices.DeleteFunc(m.remove, func(vm *pcapi.VM) bool {
		if pcapi.Protected(vm) || pcapi.Protected(g) {
			m.protected = append(m.protected, vm)
			return true
		}
		return false
	})
	m.replaces = m.replaces && slices.ContainsFunc(m.remove, failed)
}

func (m *moves) decide(g *pcapi.VmGroup, obs *observation) {
	fresh, old := m.sort(obs)
	desired := int(ptr.Deref(g.Spec.Replicas, 1))
	leaving, removed := 0, setOf(m.remove)
	for _, vm := range obs.members {
		if mayExist(vm) && (!alive(vm) || removed[vm]) {
			leaving++
		}
	}
	if g.Spec.Strategy.Type == pcapi.StrategyOnDelete || len(old) == 0 || obs.lacking() != "" {
		m.scale(g, obs, slices.Concat(fresh, old), desired, leaving)
		return
	}
	m.roll(g, obs, fresh, old, leaving)
}

// shrink removes the members beyond the group's size and changes no others. On a
// Cloud that is being deleted, a member that is removed is not replaced.
func shrink(g *pcapi.VmGroup, obs *observation) moves {
	var kept []*pcapi.VM
	for _, vm := range obs.members {
		if alive(vm) {
			kept = append(kept, vm)
		}
	}
	m := moves{remove: victims(kept, len(kept)-int(ptr.Deref(g.Spec.Replicas, 1)), g.Spec.ScaleDown.Policy, obs.revision)}
	m.protect(g)
	return m
}

// sort removes the members that are to be replaced whatever the size, and returns
// the others: those of the current revision, and those of older ones.
func (m *moves) sort(obs *observation) (fresh, old []*pcapi.VM) {
	for _, vm := range obs.members {
		switch {
		case !alive(vm):
		case vm.Status.State == pcapi.VMStateLost:
			m.remove = append(m.remove, vm)
		case failed(vm) && obs.until(vm) == 0:
			m.remove = append(m.remove, vm)
			m.replaces = true
		case vm.Labels[pcapi.RevisionLabel] != obs.revision:
			old = append(old, vm)
			if !isOn(vm) || !obs.template.shared(vm) && obs.lacking() == "" {
				m.keep = append(m.keep, vm)
			}
		default:
			fresh = append(fresh, vm)
			if !obs.template.kept(vm) {
				m.align = append(m.align, vm)
			}
		}
	}
	return fresh, old
}

// changeable reports whether the cloud can change the size and the disks of a member to those of the template.
func (t template) changeable(vm *pcapi.VM, caps cloud.Capabilities) bool {
	return (t.sized(vm) || caps.Has(cloud.Resize)) && (contains(vm.Spec.Disks, t.Disks) || caps.Has(cloud.WithDisks)) &&
		(rooted(vm.Spec.RootDisk, t.RootDisk) || caps.Has(cloud.WithRootDisk))
}

// required are the fields that a Cloud must be able to give to a new member, in the order in which the group names them.
// A member with others that the Cloud lacks is created, and is Unsupported itself.
var required = []field.Field{field.Flavor, field.Disks, field.RootDisk, field.Tags, field.SecurityGroups, field.AllowedAddresses, field.PublicAddress, field.Zone, field.AntiAffinity, field.Network, field.Probe}

// lacking returns the field of the spec that the Cloud certainly cannot or may not give to a new member,
// empty for none. Then no member may be replaced by one.
func (obs *observation) lacking() string {
	switch {
	case obs.flavorRefused != nil:
		return "flavor"
	case !obs.reachable:
		return ""
	}
	member := &pcapi.VM{Spec: obs.template.VMSpec}
	member.Spec.NetworkRef = nil // only network is required
	for _, f := range required {
		if fields := f.Lacking(member, obs.caps); len(fields) > 0 {
			return fields[0]
		}
	}
	return ""
}

// scale brings the number of members to the desired one.
func (m *moves) scale(g *pcapi.VmGroup, obs *observation, kept []*pcapi.VM, desired, leaving int) {
	if surplus := len(kept) - desired; surplus > 0 {
		gone := victims(kept, surplus, g.Spec.ScaleDown.Policy, obs.revision)
		m.remove = append(m.remove, gone...)
		m.spare()
		return
	}
	m.make(desired-len(kept), desired-len(kept)-leaving)
}

// spare drops other changes of members that are to be deleted, and second changes
// of the same member.
func (m *moves) spare() {
	removed := setOf(m.remove)
	m.align = slices.DeleteFunc(m.align, func(vm *pcapi.VM) bool { return removed[vm] })
	changed := setOf(m.remove, m.align)
	m.keep = slices.DeleteFunc(m.keep, func(vm *pcapi.VM) bool { return changed[vm] })
}

// make creates as many of the missing members as there is room for.
func (m *moves) make(missing, room int) {
	m.create = max(0, min(missing, room))
	m.awaited = max(0, missing-m.create)
}

// roll brings members of older revisions to the current one: in place where
// that is possible, else by replacement, a few at a time.
func (m *moves) roll(g *pcapi.VmGroup, obs *observation, fresh, old []*pcapi.VM, leaving int) {
	desired := int(ptr.Deref(g.Spec.Replicas, 1))
	allowed := allowances(g.Spec.Strategy, desired)
	if len(obs.template.Disks) > 0 { // a member that is replaced loses what its disks hold
		allowed.resizing = max(1, allowed.resizing)
	}
	spare := allowed.unavailable - desired
	for _, vm := range slices.Concat(fresh, old) {
		if available(vm, obs.revision) {
			spare++
		}
	}
	// take reports whether a member may stop being available now.
	take := func(vm *pcapi.VM, beyond int) bool {
		if !available(vm, obs.revision) {
			return true
		}
		spare--
		return spare+beyond >= 0
	}
	total := len(fresh) + leaving
	become := len(fresh)
	var replaced []*pcapi.VM
	// Those to delete first come last: if the group shrinks while it rolls, they need no change.
	ordered := victims(old, len(old), g.Spec.ScaleDown.Policy, obs.revision)
	slices.Reverse(ordered)
	for _, vm := range ordered {
		kept := obs.template.kept(vm) && obs.template.stored(vm)
		inPlace := obs.template.sizeOnly(vm) && (kept || !mayExist(vm) || (obs.template.changeable(vm, obs.caps) && allowed.resizing > 0))
		switch {
		case inPlace && become < desired:
			become++
			total++
			if kept || take(vm, allowed.resizing-allowed.unavailable) {
				m.align = append(m.align, vm)
			}
		case !mayExist(vm):
			m.remove = append(m.remove, vm)
		default:
			replaced = append(replaced, vm)
			total++
		}
	}
	m.make(max(0, desired-become), desired+allowed.surge-total)
	slices.Reverse(replaced)
	for _, vm := range replaced {
		if take(vm, 0) {
			m.remove = append(m.remove, vm)
		}
	}
	if surplus := len(fresh) - desired; surplus > 0 {
		m.remove = append(m.remove, victims(fresh, surplus, g.Spec.ScaleDown.Policy, obs.revision)...)
	}
	m.spare()
}

// allowance is the strategy's bounds in members.
type allowance struct {
	// surge is the number of members that may exist beyond the size.
	surge int
	// unavailable is the number of members that may be missing or not Ready, and
	// resizing that while members are resized, which interrupts them for a moment at
	// most. It is rounded up, so that a small group can be resized, too.
	unavailable, resizing int
}

// allowances returns the bounds for a size. If both are 0, no member could ever be
// replaced, so one may be unavailable then.
func allowances(s pcapi.VmGroupStrategy, desired int) allowance {
	quarter := intstr.FromString("25%")
	scaled := func(bound *intstr.IntOrString, up bool) int {
		n, _ := intstr.GetScaledValueFromIntOrPercent(new(ptr.Deref(bound, quarter)), desired, up)
		return n
	}
	a := allowance{surge: scaled(s.MaxSurge, true), unavailable: scaled(s.MaxUnavailable, false), resizing: scaled(s.MaxUnavailable, true)}
	if a.surge == 0 && a.unavailable == 0 {
		a.unavailable, a.resizing = 1, max(1, a.resizing)
	}
	return a
}
