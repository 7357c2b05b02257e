package vm

import (
	"context"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var errInProgress = &cloud.Error{Kind: cloud.Busy, Op: "create server", Detail: "another request with this Idempotency-Key is in progress", Uncertain: true}

// inProgress are clouds with keys, and how each refuses a create whose key is in progress.
var inProgress = map[string]struct {
	caps cloud.Capabilities
	err  error
}{
	"all capabilities": {everything, errInProgress}, "a key and labels": {without(cloud.UniqueNames), errInProgress},
	"a key alone": {without(cloud.Labels, cloud.UniqueNames), errInProgress}, "a key and names": {without(cloud.Labels), errInProgress},
	"all capabilities, the name is in use": {everything, errTaken}, "a key and names, the name is in use": {without(cloud.Labels), errTaken},
}

// harnessWithCreateInProgress returns a harness with a VM whose first create timed out, and whose
// further ones are refused because the first one is in progress.
func harnessWithCreateInProgress(t *testing.T, caps cloud.Capabilities, err error) *harness {
	t.Helper()
	h := newHarness(t, caps, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, false)
	h.mustReconcile()
	h.cloud.FailAlways(cloudfake.CreateServer, err, false)
	for range 4 {
		h.later(pollInterval)
		h.mustReconcile()
		h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
		h.wantClaim("web")
	}
	return h
}

func TestCreateInProgressIsRepeatedUntilItsServerIsKnown(t *testing.T) {
	for name, tc := range inProgress {
		t.Run(name, func(t *testing.T) {
			h := harnessWithCreateInProgress(t, tc.caps, tc.err)
			h.cloud.Heal(cloudfake.CreateServer)
			for range 2 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantServers("s1")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

// Somebody deletes the server before its id is on record. The key of the create leads to nothing else: another
// create would be answered with the same server.
func TestServerThatIsGoneBeforeItIsRecordedIsLost(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{
		"all capabilities": operating, "a key and labels": operatingWithout(cloud.UniqueNames), "a key alone": operatingWithout(cloud.Labels, cloud.UniqueNames),
	} {
		t.Run(name, func(t *testing.T) {
			h := newOperating(t, caps, vmWith())
			h.mustReconcile()
			h.cloud.FinishOperations()
			h.cloud.RemoveServers("s1")
			for range 2 {
				h.later(pollInterval)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "does not find it")
			creates := h.cloud.Sent(cloudfake.CreateServer)
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			equal(t, "creates after the answer", creates, h.cloud.Sent(cloudfake.CreateServer))
			h.wantCondition(pcapi.ReadyCondition, "False Lost", "VM s1 is gone from the cloud")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
			h.remove()
			h.mustReconcile()
			h.wantGone()
		})
	}
}

// Something in front of the cloud answers reads with 404, and the listing is known to lack servers.
func TestServerOfAnAnswerIsNotLostWhileListingsAreIncomplete(t *testing.T) {
	h := newOperating(t, operating, vmWith())
	h.mustReconcile()
	h.cloud.FinishOperations()
	h.cloud.Hide("s1")
	h.cloud.FailAlways(cloudfake.GetServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get server"}, false)
	creates := h.cloud.Sent(cloudfake.CreateServer)
	for range 4 {
		h.advance(settleTime)
		h.pollIncomplete()
		h.mustReconcile()
		h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "does not find it")
	}
	equal(t, "creates after the answer", creates, h.cloud.Sent(cloudfake.CreateServer))
	h.cloud.Show("s1")
	h.cloud.Heal(cloudfake.GetServer)
	h.later(settleTime)
	h.mustReconcile()
	equal(t, "vmId", "s1", h.vm().Status.VMID)
}

func TestDeletionWhileCreateIsInProgressDeletesItsServer(t *testing.T) {
	for name, tc := range inProgress {
		t.Run(name, func(t *testing.T) {
			h := harnessWithCreateInProgress(t, tc.caps, tc.err)
			h.remove()
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.AddServers(serverWith(withID("late"), owned, func(s *cloud.Server) { s.CreatedAt = h.now }))
			if !tc.caps.Has(cloud.Labels) {
				h.cloud.ModifyServer("late", unlabelled)
			}
			for range 3 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			if !tc.caps.Has(cloud.Labels) && !nameProves(tc.caps) {
				h.wantCondition(pcapi.DeletingCondition, "True Blocked", "nothing on this cloud proves which")
				return
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestDeletionWhileCreateIsInProgressEndsIfItMakesNothing(t *testing.T) {
	for name, tc := range inProgress {
		t.Run(name, func(t *testing.T) {
			h := harnessWithCreateInProgress(t, tc.caps, tc.err)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestRefusedNameIsCheckedBeforeAnotherCreateOfAClaimedVM(t *testing.T) {
	for name, caps := range withLabels {
		if !caps.Has(cloud.UniqueNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb == cloudfake.CreateServer && !h.cloud.HasServer("others") {
					h.cloud.AddServers(cloud.Server{ID: "others", Name: "web", CreatedAt: startTime.Add(-time.Hour)})
				}
			})
			for range 4 {
				h.mustReconcile()
				h.later(settleTime)
			}
			h.wantCondition(pcapi.ReadyCondition, "False Taken")
			h.wantClaim("web")
			h.cloud.TakeCalls()
			for range 3 {
				h.mustReconcile()
				h.later(2 * time.Minute)
			}
			h.wantCalls("check web", "check web", "check web")
			h.cloud.OnCall(nil)
			h.cloud.RemoveServers("others")
			h.later(2 * time.Minute)
			h.mustReconcile()
			h.wantCalls("check web", "create web")
			h.wantServers("s1")
		})
	}
}
