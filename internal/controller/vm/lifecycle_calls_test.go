package vm

import (
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestOperationThatSaysWhatItMadeNeedsNoRead(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.cloud.SetProving(true)
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web", "operation op1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "vmId", "s1", h.vm().Status.VMID)

	h.remove()
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantCalls("delete s1", "operation op2")
	h.wantGone()
}

// A deletion that is proved to have taken effect needs no read, whether or not a listing
// shows the server.
func TestDeletionThatIsProvedNeedsNoRead(t *testing.T) {
	for name, change := range map[string]func(*harness){
		"a listing shows the server": func(*harness) {},
		"a listing lacks it":         func(h *harness) { h.cloud.Hide("s1"); h.later(pollInterval) },
		"reads fail":                 func(h *harness) { h.cloud.Fail(cloudfake.GetServer, errRefused, false) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, operating, onRecord(), serverWith())
			h.cloud.SetProving(true)
			h.remove()
			h.mustReconcile()
			h.cloud.FinishOperations()
			h.advance(2 * time.Second)
			h.cloud.TakeCalls()
			change(h)
			h.cloud.TakeCalls()
			h.mustReconcile()
			h.wantCalls("operation op1")
			h.wantGone()
		})
	}
}

func TestOperationThatSaysItMadeAnotherServerIsNotUsed(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.cloud.SetProving(true)
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = nil })
	h.advance(2 * time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "owner labels")
	equal(t, "vmId", "", h.vm().Status.VMID)
}

func TestCreateIsTheFirstOnlyAfterItsOwnClaim(t *testing.T) {
	tests := map[string]struct {
		before func(*harness)
		first  []string
	}{
		"a new VM: first":                    {func(*harness) {}, []string{"web"}},
		"another manager may act: not first": {func(h *harness) { h.alone = false }, nil},
		"the claim is stored: not first": {func(h *harness) {
			h.cloud.Fail(cloudfake.CreateServer, errReset, true)
			h.mustReconcile()
		}, []string{"web"}},
		"the answer to the claim was lost: not first": {func(h *harness) {
			h.loseAnswer("object")
			_, _ = h.reconcile()
		}, nil},
		"the process restarts after the claim: not first": {func(h *harness) {
			h.cloud.Fail(cloudfake.CreateServer, errReset, false) // it does not reach the cloud
			h.mustReconcile()
			h.start()
			h.connect()
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith())
			tc.before(h)
			for range 4 {
				h.later(settleTime)
				_, _ = h.reconcile()
			}
			h.wantServers("s1")
			first, _ := h.cloud.FirstCreates()
			equal(t, "first creates", tc.first, first)
		})
	}
}
