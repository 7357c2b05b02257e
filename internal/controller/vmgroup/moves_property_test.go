package vmgroup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// TestEveryGroupConverges plays groups of every size and strategy, edited and
// losing members as they roll, on a slow cloud. There are never more servers than
// the size and maxSurge allow; never fewer members available than maxUnavailable
// allows; and once nothing disturbs it, the group is in sync.
func TestEveryGroupConverges(t *testing.T) {
	for seed := range uint64(3000) {
		w := newPlay(t, seed)
		for range 60 {
			w.disturb()
			w.reconcile()
			w.time()
		}
		for range 400 {
			w.reconcile()
			w.time()
		}
		w.reconcile()
		if c := countOf(w.obs()); c.ready != w.desired() || c.leaving != 0 || c.outdated != 0 || len(w.members) != int(w.desired()) {
			t.Fatalf("seed %d: in the end %+v of %d: %v", seed, c, w.desired(), w.members)
		}
	}
}

// play is a group and its members, without a cluster or a cloud.
type play struct {
	t       *testing.T
	seed    uint64
	chance  *rand.Rand
	group   *pcapi.VmGroup
	caps    cloud.Capabilities
	members []*pcapi.VM
	made    int
}

func newPlay(t *testing.T, seed uint64) *play {
	chance := rand.New(rand.NewPCG(seed, 1))
	w := &play{t: t, seed: seed, chance: chance, group: groupOfSize(chance.Int32N(7), bounds(chance.Int32N(3), chance.Int32N(3)))}
	if chance.IntN(2) == 0 {
		w.caps = cloud.NewCapabilities(cloud.Resize)
	}
	return w
}

func (w *play) desired() int32 { return ptr.Deref(w.group.Spec.Replicas, 1) }

func (w *play) obs() *observation {
	tmpl := templateOf(w.group, "default")
	return &observation{claimed: true, template: tmpl, revision: tmpl.revision(), caps: w.caps, step: 1, members: w.members}
}

// disturb edits the group or changes a member now and then.
func (w *play) disturb() {
	switch w.chance.IntN(20) {
	case 0:
		w.group.Spec.Replicas = new(w.chance.Int32N(7))
	case 1:
		w.group.Spec.Template = fmt.Sprintf("image-%d", w.chance.IntN(3))
	case 2:
		w.group.Spec.CPU = pcapi.Cores(1 + w.chance.Int32N(3))
	case 5:
		w.group.Spec.ReadinessProbe = nil
		if w.chance.IntN(2) == 0 {
			w.group.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
		}
	case 6:
		if len(w.members) > 0 {
			meta.SetStatusCondition(&w.members[w.chance.IntN(len(w.members))].Status.Conditions, guest(metav1.ConditionFalse))
		}
	case 3, 4:
		if len(w.members) > 0 {
			vm := w.members[w.chance.IntN(len(w.members))]
			if exists(vm) {
				[]func(*pcapi.VM){lost, broken, leaving, off}[w.chance.IntN(4)](vm)
			}
		}
	}
}

// guest returns the condition of a guest.
func guest(status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: pcapi.GuestReadyCondition, Status: status, Reason: pcapi.NoAddressReason}
}

func (w *play) reconcile() {
	obs := w.obs()
	before := int32(0)
	for _, vm := range w.members {
		if alive(vm) && available(vm, obs.revision) {
			before++
		}
	}
	serving := before
	m := movesFor(w.group, obs)
	for _, vm := range m.remove {
		if available(vm, obs.revision) {
			serving--
		}
		leaving(vm)
	}
	for _, vm := range m.align {
		interrupts := !obs.template.sized(vm)
		if available(vm, obs.revision) && interrupts && vm.Spec.PowerState != pcapi.PowerOff {
			serving--
		}
		obs.template.apply(vm)
		vm.Spec.CPU, vm.Spec.Memory, vm.Spec.PowerState = obs.template.CPU, obs.template.Memory, pcapi.PowerOn
		vm.Labels[pcapi.RevisionLabel] = obs.revision
		if interrupts {
			building(vm)
		}
	}
	allowed := allowances(w.group.Spec.Strategy, int(w.desired()))
	least := min(before, w.desired()-int32(max(allowed.unavailable, allowed.resizing)))
	if serving < least {
		w.t.Fatalf("seed %d: %d are Ready after %+v, want at least %d", w.seed, serving, m, least)
	}
	for range m.create {
		w.made++
		w.members = append(w.members, vm(fmt.Sprintf("m%04d", w.made), unmade, func(vm *pcapi.VM) {
			obs.template.apply(vm)
			vm.Spec.Template, vm.Spec.CPU, vm.Labels[pcapi.RevisionLabel] = obs.template.Template, obs.template.CPU, obs.revision
			vm.Status.Conditions = nil
		}))
	}
	if limit := int(w.desired()) + allowed.surge; m.create > 0 && w.servers() > limit {
		w.t.Fatalf("seed %d: %d servers after %+v, want at most %d", w.seed, w.servers(), m, limit)
	}
}

// servers returns the number of servers that exist or will.
func (w *play) servers() int {
	n := 0
	for _, vm := range w.members {
		if mayExist(vm) || alive(vm) && vm.Status.State != pcapi.VMStateLost {
			n++
		}
	}
	return n
}

// time simulates the progress of the cloud and the VM controller with some members.
func (w *play) time() {
	var left []*pcapi.VM
	for _, vm := range w.members {
		switch slow := w.chance.IntN(3) == 0; {
		case slow, alive(vm) && stalled(vm) != nil:
		case !alive(vm):
			continue
		case vm.Status.VMID == "":
			vm.Status.VMID, vm.Status.State, vm.Finalizers = "id-"+vm.Name, pcapi.VMStateCreating, []string{"samplecontroller.k8s.io/vm"}
			building(vm)
		default:
			// The guest is ready some time after the server runs.
			booted := guest(metav1.ConditionFalse)
			if vm.Status.State == pcapi.VMStateRunning && running(vm) {
				booted.Status = metav1.ConditionTrue
			}
			vm.Status.State = pcapi.VMStateRunning
			says(metav1.ConditionTrue, pcapi.RunningReason)(vm)
			vm.Status.Conditions = append(vm.Status.Conditions, booted)
		}
		left = append(left, vm)
	}
	w.members = left
}
