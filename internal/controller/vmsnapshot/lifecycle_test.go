package vmsnapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
)

func TestSnapshotIsCreatedAndDeletedWithFourWrites(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	if again := h.reconcile().RequeueAfter; again != recheck {
		t.Errorf("requeued after %v, want %v", again, recheck)
	}
	h.wantSnapshots("snap1")
	h.wantCondition("Ready", "True InSync")
	h.wantCondition("Created", "True Created")
	h.now = h.now.Add(recheck)
	h.reconcile()
	h.delete(snapshot())
	h.reconcile()
	h.wantSnapshots()
	h.wantGone()
	if diff := cmp.Diff([]string{"status", "object", "status", "object"}, h.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	calls := h.cloud.TakeCalls(cloudfake.ListServers)
	if n := h.cloud.Sent(cloudfake.CreateSnapshot, cloudfake.DeleteSnapshot); n != 2 {
		t.Errorf("%d changes were sent, want a create and a delete: %v", n, calls)
	}
}

func TestLostAnswerToCreateMakesNoSecondSnapshot(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]cloud.Capabilities{"with keys": withKeys, "without": plain} {
		for restarted, restart := range map[string]bool{"same manager": false, "another manager": true} {
			t.Run(name+", "+restarted, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, caps, vm(), snapshot())
				h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
				h.reconcile()
				h.wantCondition("Created", "False OutcomeUnknown")
				if restart {
					h.start()
				}
				h.reconcileFor(2 * settleTime)
				h.wantCondition("Ready", "True InSync")
				h.wantSnapshots("snap1")
			})
		}
	}
}

func TestDeletionAfterLostAnswerLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, plain, vm(), snapshot())
	h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
	h.reconcile()
	h.delete(snapshot())
	h.start()
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots()
	h.wantGone()
}

// A create that takes longer than the settle time: only the end of the work of the cloud
// shows whether it made the snapshot.
func TestDeletionWaitsWhileTheCloudTakesTheSnapshot(t *testing.T) {
	t.Parallel()
	busy := &cloud.Error{Kind: cloud.Busy, Op: "call", Detail: "the cloud takes a snapshot", Uncertain: true}
	for name, caps := range map[string]cloud.Capabilities{"with keys": withKeys, "without": plain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, caps, vm(), snapshot())
			h.cloud.Fail(cloudfake.CreateSnapshot, busy, false)
			h.reconcile()
			h.cloud.FailAlways(cloudfake.ListSnapshots, busy, false)
			h.delete(snapshot())
			h.reconcileFor(10 * settleTime)
			h.wantCondition("Ready", "False Progressing", "takes a snapshot")
			h.cloud.Heal()
			h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "late", Name: newKind(h.client, controller.Options{Cluster: "cluster"}).Record(snapshot()).Name})
			h.reconcileFor(2 * settleTime)
			h.wantSnapshots()
			h.wantGone()
		})
	}
}

func TestLostAnswerToDeletion(t *testing.T) {
	t.Parallel()
	h := newHarness(t, plain, vm(), snapshot())
	h.reconcile()
	h.delete(snapshot())
	h.cloud.Fail(cloudfake.DeleteSnapshot, errReset, true)
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots()
	h.wantGone()
}

func TestProtectedSnapshotOutlivesItsMaxAge(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) {
		s.Spec.MaxAge = &metav1.Duration{Duration: 5 * time.Minute}
		s.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "true"}
	}))
	for range 3 {
		if again := h.reconcile().RequeueAfter; again != recheck {
			t.Errorf("requeued after %v, want %v", again, recheck)
		}
		h.now = h.now.Add(recheck)
	}
	h.wantCondition("Ready", "True InSync")
	h.wantSnapshots("snap1")
}

func TestSnapshotThatGoesWithItsServerIsLost(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.cloud.RemoveServers("s1")
	h.now = h.now.Add(2 * settleTime)
	h.reconcile()
	h.wantCondition("Ready", "False Lost", "snapshots go with their VM")
	h.delete(snapshot())
	h.reconcileFor(settleTime)
	h.wantGone()
}

func TestSnapshotIsDeletedWhenMaxAgeIsOver(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) { s.Spec.MaxAge = &metav1.Duration{Duration: 5 * time.Minute} }))
	if again := h.reconcile().RequeueAfter; again != 5*time.Minute-fraction {
		t.Errorf("requeued after %v, want maxAge after createdTime", again)
	}
	h.reconcile()
	h.wantSnapshots("snap1")
	h.reconcileFor(10 * time.Minute)
	h.wantSnapshots()
	h.wantGone()
}

func TestWrongClockOfTheCloudDoesNotChangeMaxAge(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"slow by days": -72 * time.Hour, "fast by days": 72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) {
				s.CreationTimestamp, s.Spec.MaxAge = metav1.NewTime(startTime), &metav1.Duration{Duration: time.Hour}
			}))
			h.reconcile()
			made := h.cloud.Snapshots("s1")[0]
			made.CreatedAt = made.CreatedAt.Add(off)
			h.cloud.SetSnapshots("s1", made)
			h.reconcileFor(45 * time.Minute)
			h.wantSnapshots("snap1")
			h.reconcileFor(45 * time.Minute)
			h.wantSnapshots()
			h.wantGone()
		})
	}
}

func TestOrphanedSnapshotStays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) { s.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }))
	h.reconcile()
	h.delete(snapshot())
	h.reconcile()
	h.wantGone()
	h.wantSnapshots("snap1")
}

func TestSnapshotOfAnotherNameIsNotDeleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	renamed := h.cloud.Snapshots("s1")[0]
	renamed.Name = "somebody-else"
	h.cloud.SetSnapshots("s1", renamed)
	h.now = h.now.Add(recheck)
	h.reconcile()
	h.wantCondition("Ready", "False Drift", "rename it in the cloud")
	h.delete(snapshot())
	h.reconcile()
	h.wantCondition("Ready", "False Blocked", "not deleted")
	h.wantSnapshots("snap1")
}

// A VMSnapshot has no cloudRef.
func TestAdviceIsAboutTheVMSnapshot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pcapi.VM, *pcapi.Cloud){
		"the Cloud does not exist": func(o *pcapi.VM, _ *pcapi.Cloud) { o.Status.Cloud = "gone" },
		"the namespace may not use it": func(_ *pcapi.VM, c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
		},
		"the Cloud is being deleted": func(_ *pcapi.VM, c *pcapi.Cloud) {
			c.Finalizers, c.DeletionTimestamp = []string{"f"}, &metav1.Time{Time: startTime}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine, c := vm(), &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			change(machine, c)
			h := newHarness(t, withKeys, machine, snapshot(), c)
			h.reconcile()
			h.wantCondition("Ready", "False CloudUnavailable", "delete this VMSnapshot")
		})
	}
}

func TestSnapshotOfVMThatIsOnlyObservedSinceIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	observed := vm()
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(observed), observed); err != nil {
		t.Fatalf("Get: %v", err)
	}
	observed.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly
	if err := h.client.Update(t.Context(), observed); err != nil {
		t.Fatalf("Update: %v", err)
	}
	h.delete(snapshot())
	h.reconcile()
	h.wantSnapshots()
	h.wantGone()
}

func TestDeletionWaitsUntilTheVMIsReverted(t *testing.T) {
	requested := pcapi.VMRevertStatus{Phase: pcapi.VMRevertRequested, SnapshotName: snapshot().Name, SnapshotUID: snapshot().UID}
	for name, end := range map[string]func(*pcapi.VM){
		"it succeeds":                          func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertSucceeded },
		"it fails, as when the server is gone": func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertFailed },
		"another VMSnapshot is named":          func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "another" },
		"the VM is only observed":              func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withKeys, snapshot(), vm())
			h.reconcileFor(time.Minute)
			change := func(change func(*pcapi.VM)) {
				t.Helper()
				var changed pcapi.VM
				if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(vm()), &changed); err != nil {
					t.Fatalf("Get: %v", err)
				}
				change(&changed)
				status := changed.Status
				if err := h.client.Update(t.Context(), &changed); err != nil {
					t.Fatalf("Update: %v", err)
				}
				changed.Status = status
				if err := h.client.Status().Update(t.Context(), &changed); err != nil {
					t.Fatalf("Update of the status: %v", err)
				}
			}
			change(func(vm *pcapi.VM) {
				vm.Spec.CurrentSnapshotName, vm.Status.Revert = snapshot().Name, requested.DeepCopy()
			})
			h.delete(snapshot())
			h.reconcileFor(time.Minute)
			h.wantSnapshots("snap1")
			h.wantCondition(pcapi.DeletingCondition, "True Requested", "is being reverted to this snapshot")
			change(end)
			h.reconcileFor(time.Minute)
			h.wantGone()
		})
	}
}

func TestVMEnqueuesItsVMSnapshotsWhenItsServerChanges(t *testing.T) {
	reverting := vm()
	reverting.Spec.CurrentSnapshotName = "s"
	reverting.Status.Revert = &pcapi.VMRevertStatus{Phase: pcapi.VMRevertRequested, SnapshotName: "s", SnapshotUID: "uid-s"}
	for name, end := range map[string]func(*pcapi.VM){
		"the server is lost":  func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateLost },
		"the VM has another":  func(vm *pcapi.VM) { vm.Status.VMID = "s9" },
		"it is only observed": func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly },
		"the VM is Ready": func(vm *pcapi.VM) {
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
		},
		"the revert ends":         func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertFailed },
		"the revert is given up":  func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "" },
		"the VM is deleted":       func(vm *pcapi.VM) { vm.DeletionTimestamp = new(metav1.Now()) },
		"another revert is begun": func(vm *pcapi.VM) { vm.Status.Revert.SnapshotUID = "uid-t" },
	} {
		after := reverting.DeepCopy()
		end(after)
		if !serverChanged.Update(event.UpdateEvent{ObjectOld: reverting, ObjectNew: after}) {
			t.Errorf("%s: no VMSnapshot is enqueued", name)
		}
	}
	if serverChanged.Update(event.UpdateEvent{ObjectOld: reverting, ObjectNew: reverting.DeepCopy()}) {
		t.Error("an event without a change enqueues VMSnapshots")
	}
}
