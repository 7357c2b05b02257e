package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// createSnapshot creates a VMSnapshot of the VM web.
func (f *fixture) createSnapshot(change ...func(*pcapi.VMSnapshot)) *pcapi.VMSnapshot {
	f.t.Helper()
	snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "snap"}, Spec: pcapi.VMSnapshotSpec{VMName: "web"}}
	for _, apply := range change {
		apply(snap)
	}
	f.t.Expect(env.Client.Create(f.t.Context(), snap)).To(Succeed())
	return snap
}

func TestVMSnapshot(t *testing.T) {
	all := cases{
		"it precedes its VM, and is deleted before it: the snapshot follows, as the spec says": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			snap := f.createSnapshot(func(s *pcapi.VMSnapshot) {
				s.Spec.Memory, s.Spec.Description = new(true), "before the upgrade"
				s.Spec.Quiesce = &pcapi.VMSnapshotQuiesce{Timeout: metav1.Duration{Duration: time.Minute}}
			})
			t.Eventually(latest(snap)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "VMNotReady", `VM "web" does not exist`))
			server := f.readyVM("web").Status.VMID
			t.Eventually(latest(snap)).Should(testkit.BeReady())
			taken := f.Snapshots(server)
			t.Expect(taken).To(HaveExactElements(SatisfyAll(HaveField("Memory", true), HaveField("Quiesced", true),
				HaveField("Description", "before the upgrade"), HaveField("Name", MatchRegexp(`^%s-snap-[0-9a-f]{12}$`, f.namespace)))))
			t.Expect(get(t, snap).Status).To(SatisfyAll(HaveField("SnapshotID", taken[0].ID), HaveField("VMID", server),
				HaveField("SizeBytes", taken[0].SizeBytes), HaveField("Cloud", f.object.Name), HaveField("TakenTime.IsZero()", false)))
			_, err := tryEdit(t, snap, func(s *pcapi.VMSnapshot) { s.Spec.VMName = "other" })
			t.Expect(err).To(MatchError(ContainSubstring("vmName cannot be changed")))
			deleteObject(t, snap)
			t.Eventually(isGone(snap)).Should(BeTrue())
			t.Expect(f.Snapshots(server)).To(BeEmpty())
			t.Eventually(eventReasons(snap)).Should(ContainElements("Created", "Deleted"))
		},

		"maxAge is over: the snapshot and its object are deleted": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			server := f.readyVM("web").Status.VMID
			snap := f.createSnapshot(func(s *pcapi.VMSnapshot) { s.Spec.MaxAge = &metav1.Duration{Duration: time.Second} })
			t.Eventually(isGone(snap)).Should(BeTrue())
			t.Expect(f.Snapshots(server)).To(BeEmpty())
			t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpCreateSnapshot, mockcloud.OpDeleteSnapshot}))
		},

		"the VM is deleted: an event of the VM says so, the VMSnapshot is Lost, and can be deleted": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web")
			snap := f.createSnapshot()
			t.Eventually(latest(snap)).Should(testkit.BeReady())
			deleteObject(t, vm)
			t.Eventually(isGone(vm)).Should(BeTrue())
			t.Eventually(latest(snap)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Lost", "snapshots go with their VM"))
			t.Eventually(eventReasons(vm)).Should(ContainElements("SnapshotsDeleted", "Deleted"))
			deleteObject(t, snap)
			t.Eventually(isGone(snap)).Should(BeTrue())
		},

		"the cloud has no snapshots: the VMSnapshot is Unsupported, and can be deleted": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Snapshots: false}})
			f.readyVM("web")
			snap := f.createSnapshot()
			t.Eventually(latest(snap)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "has no snapshots"))
			deleteObject(t, snap)
			t.Eventually(isGone(snap)).Should(BeTrue())
		},
	}
	keyless := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false}}
	for _, answer := range []string{"reset", "a login page"} {
		for cloud, options := range map[string]mockcloud.Options{"with keys": {}, "without keys": keyless} {
			all["a cloud "+cloud+", the answer to the create is lost ("+answer+"): there is one snapshot"] = snapshotOnce(options, lostAnswers[answer])
		}
	}
	all.run(t)
}

// snapshotOnce returns a case of a create of a snapshot whose answer is lost.
func snapshotOnce(on mockcloud.Options, fault mockcloud.Fault) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		server := f.readyVM("web").Status.VMID
		fault := losing(fault, on)
		fault.Match.Path = "/servers/*/snapshots"
		f.addFault(fault)
		snap := f.createSnapshot()
		t.Eventually(latest(snap)).Should(testkit.BeReady())
		t.Expect(f.Snapshots(server)).To(HaveExactElements(HaveField("ID", get(t, snap).Status.SnapshotID)))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpCreateSnapshot}))
	}
}

func TestRevert(t *testing.T) {
	run := cases{}
	operations := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Operations: true}, Behaviour: mockcloud.Behaviour{OperationTime: mockcloud.Duration(100 * time.Millisecond)}}
	for name, options := range map[string]mockcloud.Options{"at once": {}, "by an operation": operations} {
		run["a VM is reverted "+name+", once, and is as its spec says after that; the VMSnapshot can be deleted"] = func(t *T) {
			f := newFixture(t, options)
			vm := f.readyVM("web")
			snap := f.createSnapshot()
			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "snap" })
			t.Eventually(latest(snap)).Should(testkit.BeReady())
			t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.Revert", HaveValue(SatisfyAll(
				HaveField("Phase", pcapi.VMRevertSucceeded), HaveField("SnapshotUID", snap.UID), HaveField("EndedTime.IsZero()", false))))))
			deleteObject(t, snap)
			t.Eventually(isGone(snap)).Should(BeTrue())
			t.Expect(f.effects()).To(Equal([]mockcloud.Op{
				mockcloud.OpCreate, mockcloud.OpCreateSnapshot, mockcloud.OpRevert, mockcloud.OpUpdate, mockcloud.OpDeleteSnapshot,
			}))
			t.Eventually(eventReasons(vm)).Should(ContainElement("Reverted"))
		}
	}
	run["the VMSnapshot does not exist: the VM says so, and runs"] = func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "none" })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "SnapshotUnavailable", `VMSnapshot "none" does not exist in this namespace`))
		t.Expect(get(t, vm).Status.State).To(Equal(pcapi.VMStateRunning))
	}
	run.run(t)
}
