package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestLostAnswerToRevertNeverRevertsTwice(t *testing.T) {
	tests := map[string]struct {
		caps    cloud.Capabilities
		arrive  bool
		reverts int
		ready   string
	}{
		"keys, the revert took effect":     {caps: withReverts, arrive: true, reverts: 1, ready: "True Running"},
		"keys, the revert did not arrive":  {caps: withReverts, reverts: 1, ready: "True Running"},
		"no keys, the revert took effect":  {caps: revertUnkeyed, arrive: true, reverts: 1, ready: "False OutcomeUnknown"},
		"no keys, the revert did not come": {caps: revertUnkeyed, reverts: 0, ready: "False OutcomeUnknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, tc.caps)
			h.cloud.Fail(cloudfake.RevertServer, errReset, tc.arrive)
			h.mustReconcile()
			h.wantCalls("revert snap1")
			h.start() // a new process
			h.connect()
			h.reconcileFor(5)
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			equal(t, "reverts", tc.reverts, h.cloud.Reverts())
			if tc.ready == "True Running" {
				h.wantRevert(pcapi.VMRevertSucceeded, tc.reverts)
				return
			}
			h.wantCalls() // nothing else is sent to the server
			h.wantCondition(pcapi.ReadyCondition, tc.ready, "clear spec.currentSnapshotName")
			h.edit(revertTo(""))
			h.wantInSync()
			h.wantRevert("", tc.reverts)
		})
	}
}

// The request is repeated with its key while the cloud, or something in front of it, refuses it for a reason that may pass.
func TestRevertWithALostAnswerIsRepeatedAfterARefusalThatPasses(t *testing.T) {
	for _, kind := range []cloud.Kind{
		cloud.NotFoundUnproven, cloud.Busy, cloud.Conflict, cloud.Forbidden, cloud.Throttled, cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Misconfigured,
	} {
		t.Run(string(kind), func(t *testing.T) {
			h := newReverting(t, withReverts)
			h.cloud.Fail(cloudfake.RevertServer, errReset, true)
			h.mustReconcile()
			h.cloud.Fail(cloudfake.RevertServer, &cloud.Error{Kind: kind, Op: "revert", Detail: "refused"}, false)
			h.later(time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "the VM may be reverted all the same")
			h.reconcileFor(5)
			h.wantRevert(pcapi.VMRevertSucceeded, 1)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

// A gateway may have passed on the revert that it answers with 404: it is repeated with its key.
func TestRevertThatAGatewayAnswersWith404IsMadeOnce(t *testing.T) {
	for name, passedOn := range map[string]bool{"it was passed on": true, "it was not passed on": false} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, withReverts)
			h.cloud.Fail(cloudfake.RevertServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "revert"}, passedOn)
			h.mustReconcile()
			h.wantRevert(pcapi.VMRevertRequested, h.cloud.Reverts())
			h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "the VM may be reverted all the same")
			h.reconcileFor(5)
			h.wantRevert(pcapi.VMRevertSucceeded, 1)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestRevertThatAGatewayAnswersWith404IsNotRepeatedWithoutKeys(t *testing.T) {
	for name, passedOn := range map[string]bool{"it was passed on": true, "it was not passed on": false} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, revertUnkeyed)
			h.cloud.FailAlways(cloudfake.RevertServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "revert"}, passedOn)
			h.mustReconcile()
			reverts := h.cloud.Reverts()
			h.cloud.Heal(cloudfake.RevertServer)
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU = 7 })
			h.poll()
			h.reconcileFor(5)
			h.later(time.Hour)
			h.mustReconcile()
			h.wantRevert(pcapi.VMRevertRequested, reverts)
			h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "clear spec.currentSnapshotName")
		})
	}
}

func TestProcessThatEndsBeforeTheRevertIsSentKeepsTheIntent(t *testing.T) {
	for name, tc := range map[string]struct {
		caps    cloud.Capabilities
		ready   string
		reverts int
	}{
		"keys: sent": {withReverts, "True Running", 1}, "no keys: never sent": {revertUnkeyed, "False OutcomeUnknown", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, tc.caps)
			h.loseAnswer("status")
			h.mustReconcile()
			h.wantCalls()
			h.start()
			h.connect()
			h.reconcileFor(5)
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			equal(t, "reverts", tc.reverts, h.cloud.Reverts())
		})
	}
}

// The server is gone, and the cloud has given its id, and that of the snapshot, to a server of somebody else.
func TestRevertWithALostAnswerIsNotSentToAnotherServerWithTheID(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{
		"labels": withReverts, "no labels": cloud.NewCapabilities(append(revertKeyed, without(cloud.Labels)...)...),
	} {
		t.Run(name, func(t *testing.T) {
			h := newReverting(t, caps)
			h.cloud.FailAlways(cloudfake.RevertServer, errReset, false)
			h.mustReconcile()
			h.wantRevert(pcapi.VMRevertRequested, 0)
			h.cloud.Heal(cloudfake.RevertServer)
			h.cloud.RemoveServers("s1")
			h.cloud.AddServers(serverWith(unlabelled, withName("of-others")))
			h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others"})
			for range 3 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			h.wantRevert(pcapi.VMRevertRequested, 0)
			h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "VM s1")
		})
	}
}
