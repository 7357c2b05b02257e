package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestDeletionWaitsForOpenCreate(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"everything": operating, "without labels": operatingWithout(cloud.Idempotency, cloud.Labels)} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, caps, vmWith())
			h.mustReconcile()
			h.advance(3 * time.Second)
			h.mustReconcile()
			h.remove()
			h.mustReconcile()
			h.wantCalls("check web", "create web", "operation op1", "operation op1")
			h.wantCondition(pcapi.DeletingCondition, "True Requested", "is creating")

			h.cloud.FinishOperations()
			h.later(3 * time.Second)
			h.mustReconcile()
			h.wantCalls("operation op1", "get s1", "delete s1")
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.wantOperation(pcapi.VMOperationDelete, 2*time.Second)
			h.cloud.FinishOperations()
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.wantGone()
			h.wantServers()
		})
	}
}

func TestDeletionAfterFailedCreateReleasesVM(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	h.remove()
	h.cloud.FailOperations(errFull)
	h.later(3 * time.Second)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}

func TestFailedDeletionIsTriedAgain(t *testing.T) {
	h := newOperating(t, operating, onRecord(), serverWith())
	h.remove()
	h.wantRequeue(2*time.Second, h.mustReconcile())
	h.cloud.FailOperations(&cloud.Error{Kind: cloud.Failed, Op: "operation", Detail: "a disk is locked"})
	h.advance(2 * time.Second)
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCondition(pcapi.ReadyCondition, "False OperationFailed", "a disk is locked")
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("delete s1", "operation op1", "get s1", "delete s1")
	h.cloud.FinishOperations()
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantGone()
}

func TestFailedDeletionOfHiddenServerProvesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		answer *cloud.Error
		lost   bool
	}{
		"the cloud's own 404":                     {errNotFound, false},
		"the 404 of a gateway":                    {errUnproven, false},
		"the VM was lost, and its server is back": {errNotFound, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, operating, onRecord())
			if tc.lost {
				h.later(settleTime + time.Minute)
				h.mustReconcile()
				equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
			}
			h.cloud.AddServers(serverWith())
			h.later(settleTime + time.Minute)
			h.remove()
			h.mustReconcile()
			h.hideReads(tc.answer)
			h.later(2 * time.Second)
			h.mustReconcile()
			h.cloud.FailOperations(errFull)
			for range 5 {
				h.later(2 * time.Second)
				h.mustReconcile()
				if _, ok := h.find(); !ok {
					t.Fatal("the object was released because reads hid a server whose deletion failed")
				}
			}
			h.showReads()
			h.cloud.SetOperating(false)
			h.later(settleTime)
			h.mustReconcile()
			h.later(settleTime)
			h.mustReconcile()
			h.wantGone()
			h.wantServers()
		})
	}
}

func TestServerThatIsGoneAfterItsDeletionFailedEndsTheDeletion(t *testing.T) {
	h := newOperating(t, operating, onRecord(), serverWith())
	h.later(settleTime + time.Minute)
	h.remove()
	h.mustReconcile()
	h.cloud.FailOperations(errFull)
	h.cloud.RemoveServers("s1")
	h.later(2 * time.Second)
	again := h.mustReconcile().RequeueAfter
	if again > 2*time.Minute {
		t.Errorf("requeued after %v, want 2 minutes at most", again)
	}
	h.later(again)
	h.mustReconcile()
	h.later(settleTime)
	if _, ok := h.find(); ok {
		h.mustReconcile()
	}
	h.wantGone()
}

func TestDeletionAfterImportThatIsRefusedLeavesNoServer(t *testing.T) {
	h := newOperating(t, operatingWithout(cloud.Idempotency), vmWith())
	h.mustReconcile()
	h.edit(importing)
	h.edit(func(vm *pcapi.VM) { vm.Spec.Import.VMID = "old" })
	h.cloud.AddServers(serverWith(withID("old"), unlabelled, withName("of-others")))
	h.cloud.FinishOperations()
	h.cloud.SetOperating(false)
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Rejected", `VM old is named "of-others"`)
	h.remove()
	for range 2 {
		h.later(time.Second)
		h.mustReconcile()
	}
	h.wantGone()
	h.wantServers("old")
}

// The cloud accepts the deletion of a new server, and reads lag behind the create: they
// do not show the server yet.
func TestNewServerIsGoneOnceTheOperationOfItsDeletionIsDone(t *testing.T) {
	tests := map[string]struct {
		end  func(*harness)
		gone bool
	}{
		"it is done: gone":               {func(h *harness) { h.cloud.FinishOperations() }, true},
		"it is forgotten: kept":          {func(h *harness) { h.cloud.ForgetOperations() }, false},
		"it failed: kept, sent again":    {func(h *harness) { h.cloud.FailOperations(errFull) }, false},
		"it still runs: nothing is sent": {func(*harness) {}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, operating, vmWith())
			h.mustReconcile()
			h.cloud.SetOperating(true)
			h.hideReads(errNotFound)
			h.advance(time.Second)
			h.remove()
			h.mustReconcile()
			tc.end(h)
			for range 3 {
				h.later(2 * time.Second)
				if _, ok := h.find(); ok {
					h.mustReconcile()
				}
			}
			if _, kept := h.find(); kept == tc.gone {
				t.Fatalf("the object is released: %t, want %t", !kept, tc.gone)
			}
			h.cloud.FinishOperations()
			h.showReads()
			for range 4 {
				h.later(settleTime)
				if _, ok := h.find(); ok {
					h.mustReconcile()
					h.cloud.FinishOperations()
				}
			}
			h.wantGone()
			h.wantServers()
		})
	}
}

// The status still shows the operation of the create, which an earlier process wrote.
func TestOperationOfACreateThatEndedDoesNotPostponeTheReleaseOfItsVM(t *testing.T) {
	ends := map[string]func(*harness){
		"its server is gone": func(h *harness) { h.cloud.RemoveServers("s1") },
		"its server is that of another VM": func(h *harness) {
			h.cloud.ModifyServer("s1", func(s *cloud.Server) {
				s.Labels = map[string]string{inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "cluster"}
			})
		},
		"the cloud has forgotten it": func(h *harness) { h.cloud.RemoveServers("s1"); h.cloud.ForgetOperations() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			h := harnessWithOperationOnRecord(t)
			end(h)
			h.remove()
			h.start()
			h.connect()
			before := h.cloud.Sent(cloudfake.GetOperation)
			for range 2 * settleTime / pollInterval {
				h.later(pollInterval)
				h.mustReconcileIfExists()
			}
			h.wantGone()
			equal(t, "reads of the operation", 1, h.cloud.Sent(cloudfake.GetOperation)-before)
		})
	}
}
