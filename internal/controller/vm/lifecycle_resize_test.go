package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func restartAllowed(vm *pcapi.VM) { vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed }

func TestResizeThatNeedsStop(t *testing.T) {
	t.Run("restarts are not allowed: stalled, and the server runs on", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
		h.cloud.SetNeedsStop(true)
		h.wantRequeue(10*time.Minute, h.mustReconcile())
		h.wantCalls("update s1")
		h.wantCondition(pcapi.StalledCondition, "True NeedsRestart", "spec.updatePolicy")
		equal(t, "state", cloud.StateActive, h.cloud.Server("s1").State)
	})
	for name, caps := range map[string]cloud.Capabilities{"at once": everything, "by operations": operating} {
		t.Run("restarts are allowed, "+name+": stopped, changed, started", func(t *testing.T) {
			h := harnessWithServer(t, caps, onRecord(restartAllowed), serverWith(withCores(1)))
			h.cloud.SetNeedsStop(true)
			h.cloud.SetOperating(caps.Has(cloud.Operations))
			var states []string
			for range 3 {
				h.mustReconcile()
				h.cloud.FinishOperations()
				s := h.cloud.Server("s1")
				states = append(states, string(s.State))
				if _, message := h.condition(pcapi.ReadyCondition); caps.Has(cloud.Operations) == (message != "") {
					t.Errorf("after %v the status says %q", states, message)
				}
				h.advance(time.Second)
			}
			equal(t, "states", []string{"STOPPED", "STOPPED", "ACTIVE"}, states)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "cores", 2, h.cloud.Server("s1").CPU)
		})
	}
	for name, tc := range map[string]struct {
		vm      *pcapi.VM
		state   cloud.State
		calls   []string
		stalled string
	}{
		"not allowed: stalled":     {onRecord(), cloud.StateActive, []string{"operation op1", "get s1"}, "True NeedsRestart"},
		"allowed: it is stopped":   {onRecord(restartAllowed), cloud.StateStopped, []string{"operation op1", "get s1", "update s1"}, ""},
		"asked for: it is stopped": {onRecord(poweredOff), cloud.StateStopped, []string{"operation op1", "get s1", "update s1"}, ""},
	} {
		t.Run("the operation fails for it and a stop is "+name, func(t *testing.T) {
			h := harnessWithServer(t, operating, tc.vm, serverWith(withCores(1)))
			h.cloud.SetOperating(true)
			h.mustReconcile()
			h.cloud.FailOperations(&cloud.Error{Kind: cloud.NeedsStop, Op: "operation", Detail: "no hot-add"})
			h.cloud.TakeCalls()
			h.advance(time.Second)
			h.mustReconcile()
			h.wantCalls(tc.calls...)
			h.cloud.FinishOperations()
			equal(t, "state", tc.state, h.cloud.Server("s1").State)
			if tc.stalled != "" {
				h.wantCondition(pcapi.StalledCondition, tc.stalled, "no hot-add", "spec.updatePolicy")
			}
		})
	}
	t.Run("the size is refused while it is stopped: started again, and not tried again", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(restartAllowed), serverWith(withCores(1)))
		h.cloud.SetNeedsStop(true)
		h.mustReconcile()
		h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Quota, Op: "update", Detail: "too many cores"}, false)
		for range 4 {
			h.advance(time.Second)
			h.mustReconcile()
		}
		equal(t, "state", cloud.StateActive, h.cloud.Server("s1").State)
		h.wantCondition(pcapi.StalledCondition, "True NeedsRestart", "no capacity left")
		h.advance(time.Hour)
		h.mustReconcile()
		equal(t, "state after an hour", cloud.StateActive, h.cloud.Server("s1").State)
	})
	t.Run("powerState is set to Off as well: stopped, then changed", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(poweredOff), serverWith(withCores(1)))
		h.cloud.SetNeedsStop(true)
		h.mustReconcile()
		h.advance(time.Second)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Stopped")
		equal(t, "cores", 2, h.cloud.Server("s1").CPU)
	})
}

func TestCloudThatCannotCreateStoppedServers(t *testing.T) {
	h := newHarness(t, without(cloud.PowerAtCreate), vmWith(poweredOff))
	h.wantRequeue(time.Second, h.mustReconcile())
	equal(t, "state", cloud.StateActive, h.cloud.Server("s1").State)
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "is being stopped")
	h.advance(time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web", "update s1")
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
}

func TestServerWithPartOfGiBIsNotInSync(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(1) }), serverWith(func(s *cloud.Server) { s.MemoryMiB = 1536 }))
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "memory in MiB", 1024, h.cloud.Server("s1").MemoryMiB)
}
