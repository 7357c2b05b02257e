package vm

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var (
	revertKeyed   = []cloud.Capability{cloud.Snapshots, cloud.Revert}
	withReverts   = cloud.NewCapabilities(append(revertKeyed, everything...)...)
	revertUnkeyed = cloud.NewCapabilities(append(revertKeyed, without(cloud.Idempotency)...)...)
)

func revertTo(name string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = name }
}

// snapshotOf returns the VMSnapshot before of the VM, which has its snapshot, with changes.
func snapshotOf(change ...func(*pcapi.VMSnapshot)) *pcapi.VMSnapshot {
	snap := &pcapi.VMSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "before", UID: "uid-before"}, Spec: pcapi.VMSnapshotSpec{VMName: "a"},
		Status: pcapi.VMSnapshotStatus{SnapshotID: "snap1", VMID: "s1", Cloud: "default", Conditions: []metav1.Condition{
			{Type: pcapi.CreatedCondition, Status: metav1.ConditionTrue, Reason: pcapi.CreatedReason},
		}},
	}
	for _, f := range change {
		f(snap)
	}
	return snap
}

// newReverting returns a harness with a VM that has the VMSnapshot before, taken when its
// server had one core, and that is to be reverted to it.
func newReverting(t *testing.T, caps cloud.Capabilities) *harness {
	t.Helper()
	h := newHarness(t, caps, onRecord(revertTo("before")), snapshotOf())
	h.cloud.AddServers(serverWith(withCores(1)))
	if _, err := h.cloud.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: "s1", Name: "before"}); err != nil {
		t.Fatalf("CreateSnapshot: %v", err)
	}
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU = 2 })
	h.poll()
	h.wantCalls("create snapshot before")
	return h
}

// wantRevert checks the phase of status.revert, empty for none, and how many reverts took effect.
func (h *harness) wantRevert(phase pcapi.VMRevertPhase, reverts int) {
	h.t.Helper()
	var got pcapi.VMRevertPhase
	if r := h.vm().Status.Revert; r != nil {
		got = r.Phase
	}
	equal(h.t, "phase", phase, got)
	equal(h.t, "reverts", reverts, h.cloud.Reverts())
}

// reconcileFor reconciles once a second.
func (h *harness) reconcileFor(n int) {
	h.t.Helper()
	for range n {
		h.later(time.Second)
		h.mustReconcile()
	}
}

// wantInSync checks that the server is as the spec says and stays so.
func (h *harness) wantInSync() {
	h.t.Helper()
	h.reconcileFor(4)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(h.t, "cores", 2, h.cloud.Server("s1").CPU)
}

func TestVMIsRevertedOnceAndThenAsTheSpecSays(t *testing.T) {
	h := newReverting(t, revertUnkeyed)
	h.mustReconcile()
	h.wantCalls("revert snap1")
	h.wantRevert(pcapi.VMRevertSucceeded, 1)
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "in line with the spec")
	equal(t, "the server is as in the snapshot", []any{1, cloud.StateStopped}, []any{h.cloud.Server("s1").CPU, h.serverState()})
	h.wantInSync()
	h.wantCalls("update s1", "update s1")
	writes := len(h.writes)
	h.reconcileFor(3)
	equal(t, "writes at rest", writes, len(h.writes))

	h.edit(revertTo(""))
	h.mustReconcile()
	h.wantRevert("", 1)
	h.edit(revertTo("before"))
	h.advance(time.Second)
	h.mustReconcile()
	h.wantRevert(pcapi.VMRevertSucceeded, 2)
}

func TestRevertOfLessThanASecondDoesNotEndBeforeItBegan(t *testing.T) {
	h := newReverting(t, withReverts)
	h.advance(300 * time.Millisecond)
	h.mustReconcile()
	h.wantRevert(pcapi.VMRevertSucceeded, 1)
	if r := h.vm().Status.Revert; r.EndedTime.Time.Before(r.RequestedTime.Time) {
		t.Errorf("the revert ended at %v, before it was requested at %v", r.EndedTime, r.RequestedTime)
	}
}

func TestSuspendedVMIsResumedForItsRevertAndSuspendedAgain(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{
		"keys": cloud.NewCapabilities(append(revertKeyed, withSuspend...)...), "no keys": cloud.NewCapabilities(append([]cloud.Capability{cloud.Suspend}, revertUnkeyed...)...),
	} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, caps)
			h.edit(suspended)
			h.setServerState(cloud.StateSuspended)
			h.poll()
			equal(t, "states", []cloud.State{cloud.StateSuspended, cloud.StateActive, cloud.StateStopped, cloud.StateActive, cloud.StateSuspended}, h.complete())
			h.wantRevert(pcapi.VMRevertSucceeded, 1)
			h.wantCondition(pcapi.ReadyCondition, "True Suspended")
			equal(t, "cores", 2, h.cloud.Server("s1").CPU)
		})
	}
}

func TestSuspendedVMIsNotResumedForARevertThatTheBrakeHolds(t *testing.T) {
	h := newReverting(t, cloud.NewCapabilities(append(revertKeyed, withSuspend...)...))
	h.edit(suspended)
	h.setServerState(cloud.StateSuspended)
	h.poll()
	h.inv.Brake(true)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Braked")
	equal(t, "state", cloud.StateSuspended, h.cloud.Server("s1").State)
}

func TestOperationOfRevertIsRecordedAtOnceAndFollowed(t *testing.T) {
	operations := cloud.NewCapabilities(append([]cloud.Capability{cloud.Operations}, revertUnkeyed...)...)
	start := func(t *testing.T) *harness {
		t.Helper()
		h := newReverting(t, operations)
		h.cloud.SetOperating(true)
		h.mustReconcile()
		h.wantCalls("revert snap1")
		equal(t, "operation", "op1", h.vm().Status.Revert.Operation)
		h.start() // a new process
		h.connect()
		h.mustReconcile()
		h.wantCalls("operation op1")
		h.wantCondition(pcapi.ReadyCondition, "False Progressing", "is being reverted")
		return h
	}
	t.Run("it succeeds: in sync, though the field is cleared meanwhile", func(t *testing.T) {
		h := start(t)
		h.edit(revertTo(""))
		h.mustReconcile()
		h.wantRevert(pcapi.VMRevertRequested, 0)
		h.cloud.SetOperating(false)
		h.cloud.FinishOperations()
		h.wantInSync()
		h.wantRevert("", 1)
	})
	t.Run("it fails: stalled, and not sent again", func(t *testing.T) {
		h := start(t)
		h.cloud.FailOperations(errFull)
		h.reconcileFor(3)
		h.wantRevert(pcapi.VMRevertFailed, 0)
		h.wantCondition(pcapi.ReadyCondition, "False RevertFailed", "no capacity left", "set it again")
		h.wantCalls("operation op1")
	})
	t.Run("it is forgotten: stalled, and not sent again", func(t *testing.T) {
		h := start(t)
		h.cloud.ForgetOperations()
		h.reconcileFor(3)
		h.wantRevert(pcapi.VMRevertRequested, 0)
		h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown")
		h.wantCalls("operation op1")
	})
}

func TestRevertEndsWhenItsServerIsGone(t *testing.T) {
	operations := cloud.NewCapabilities(append([]cloud.Capability{cloud.Operations}, revertUnkeyed...)...)
	for name, tc := range map[string]struct {
		caps   cloud.Capabilities
		revert func(*harness)
	}{
		"its answer was lost, keys":    {withReverts, func(h *harness) { h.cloud.FailAlways(cloudfake.RevertServer, errReset, false) }},
		"its answer was lost, no keys": {revertUnkeyed, func(h *harness) { h.cloud.Fail(cloudfake.RevertServer, errReset, true) }},
		"it has an operation":          {operations, func(h *harness) { h.cloud.SetOperating(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, tc.caps)
			tc.revert(h)
			h.mustReconcile()
			equal(t, "phase", pcapi.VMRevertRequested, h.vm().Status.Revert.Phase)
			h.cloud.RemoveServers("s1")
			h.cloud.ForgetOperations()
			for range 3 {
				h.advance(time.Minute)
				h.poll()
				h.mustReconcile()
			}
			h.wantCondition(pcapi.CreatedCondition, "False Lost")
			r := h.vm().Status.Revert
			equal(t, "revert", []any{pcapi.VMRevertFailed, "", "VM s1 was deleted in the cloud before the end of the revert was known"}, []any{r.Phase, r.Operation, r.Message})
			equal(t, "it has an end", true, r.EndedTime != nil)
			h.edit(revertTo(""))
			h.mustReconcile()
			equal(t, "revert", (*pcapi.VMRevertStatus)(nil), h.vm().Status.Revert)
		})
	}
}

// Only the operation is read, since nothing may be sent.
func TestRevertOfVMThatIsOnlyObservedSinceIsFollowed(t *testing.T) {
	observed := func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }
	t.Run("it has an operation", func(t *testing.T) {
		h := newReverting(t, cloud.NewCapabilities(append([]cloud.Capability{cloud.Operations}, revertUnkeyed...)...))
		h.cloud.SetOperating(true)
		h.mustReconcile()
		h.wantCalls("revert snap1")
		h.edit(observed)
		h.reconcileFor(2)
		h.wantCondition(pcapi.ReadyCondition, "False Progressing", "is being reverted")
		h.cloud.SetOperating(false)
		h.cloud.FinishOperations()
		h.reconcileFor(30)
		h.wantRevert(pcapi.VMRevertSucceeded, 1)
	})
	t.Run("its answer was lost", func(t *testing.T) {
		h := newReverting(t, withReverts)
		h.cloud.Fail(cloudfake.RevertServer, errReset, false)
		h.mustReconcile()
		h.wantCalls("revert snap1")
		h.edit(observed)
		h.reconcileFor(30)
		h.wantCalls()
		equal(t, "open", false, h.vm().RevertOpen())
		h.edit(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
		h.reconcileFor(30)
		h.wantRevert(pcapi.VMRevertSucceeded, 1)
	})
}

func TestVMIsNotRevertedToVMSnapshotThatCannotBeUsed(t *testing.T) {
	now := metav1.NewTime(startTime)
	for name, tc := range map[string]struct {
		change  func(*pcapi.VMSnapshot)
		message string
	}{
		"it does not exist":     {func(s *pcapi.VMSnapshot) { s.Name = "other" }, "does not exist in this namespace"},
		"it is being deleted":   {func(s *pcapi.VMSnapshot) { s.DeletionTimestamp, s.Finalizers = &now, []string{"f"} }, "is being deleted"},
		"it is of another VM":   {func(s *pcapi.VMSnapshot) { s.Spec.VMName = "b" }, `is one of VM "b"`},
		"it is of an older one": {func(s *pcapi.VMSnapshot) { s.Status.VMID = "s0" }, "is one of the server s0"},
		"it has no snapshot":    {func(s *pcapi.VMSnapshot) { s.Status = pcapi.VMSnapshotStatus{} }, "has no snapshot yet"},
		"its snapshot is lost":  {func(s *pcapi.VMSnapshot) { s.Status.Conditions[0].Reason = pcapi.LostReason }, "has lost its snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withReverts, onRecord(revertTo("before")), snapshotOf(tc.change))
			h.cloud.AddServers(serverWith(withCores(1)))
			h.poll()
			h.reconcileFor(2)
			h.wantCalls("update s1") // the rest of the spec holds
			h.wantCondition(pcapi.ReadyCondition, "False SnapshotUnavailable", tc.message)
			h.wantRevert("", 0)
		})
	}
}

func TestRevertThatTheCloudRefusesLeavesNothing(t *testing.T) {
	h := newReverting(t, revertUnkeyed)
	h.cloud.SetSnapshots("s1")
	h.mustReconcile()
	h.wantRevert("", 0)
	h.wantCondition(pcapi.ReadyCondition, "False SnapshotUnavailable", "name another VMSnapshot")

	h = newReverting(t, revertUnkeyed)
	h.cloud.Fail(cloudfake.RevertServer, &cloud.Error{Kind: cloud.Busy, Op: "revert", Detail: "the server is busy"}, false)
	h.mustReconcile()
	h.wantRevert("", 0)
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "the server is busy")
	h.later(2 * time.Second)
	h.mustReconcile()
	h.wantRevert(pcapi.VMRevertSucceeded, 1)
}

func TestCloudThatCannotRevertIsUnsupported(t *testing.T) {
	h := newReverting(t, cloud.NewCapabilities(append([]cloud.Capability{cloud.Snapshots}, everything...)...))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "currentSnapshotName")
	h.wantRevert("", 0)
}

func TestVMThatIsOnlyObservedIsNotReverted(t *testing.T) {
	h := newReverting(t, withReverts)
	h.edit(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
	h.mustReconcile()
	h.wantCalls()
	h.wantRevert("", 0)
}
