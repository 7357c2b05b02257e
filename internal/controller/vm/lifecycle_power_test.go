package vm

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// withGuests are the capabilities of a cloud that can ask guests to shut down.
var withGuests = cloud.NewCapabilities(append([]cloud.Capability{cloud.SoftPowerOff}, everything...)...)

func mode(mode pcapi.PowerOffMode) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.PowerOffMode = mode }
}

// createdBefore has the VM created a day before the tests begin.
func createdBefore(vm *pcapi.VM) {
	vm.Status.CreatedTime = new(metav1.NewTime(startTime.Add(-24 * time.Hour)))
}

func (h *harness) serverState() cloud.State { return h.cloud.Server("s1").State }

func (h *harness) setServerState(state cloud.State) {
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State = state })
}

func TestPowerOffModeDecidesHowServerIsStopped(t *testing.T) {
	tests := map[string]struct {
		caps   cloud.Capabilities
		mode   pcapi.PowerOffMode
		guests cloudfake.Guests
		calls  []string
		want   cloud.State
		ready  string
	}{
		"TrySoft, the guest shuts down: one call":               {caps: withGuests, calls: []string{"update s1"}, want: cloud.StateStopped, ready: "True Stopped"},
		"TrySoft, the guest goes on: waiting":                   {caps: withGuests, guests: cloudfake.GuestsIgnore, calls: []string{"update s1"}, want: cloud.StateActive, ready: "False ShuttingDown"},
		"TrySoft, the guest cannot be asked: powered off":       {caps: withGuests, guests: cloudfake.GuestsUnavailable, calls: []string{"update s1", "update s1"}, want: cloud.StateStopped, ready: "True Stopped"},
		"TrySoft, the cloud cannot ask guests: powered off":     {caps: everything, guests: cloudfake.GuestsIgnore, calls: []string{"update s1"}, want: cloud.StateStopped, ready: "True Stopped"},
		"Hard: powered off":                                     {caps: withGuests, mode: pcapi.PowerOffModeHard, guests: cloudfake.GuestsIgnore, calls: []string{"update s1"}, want: cloud.StateStopped, ready: "True Stopped"},
		"Soft, the guest cannot be asked: stalled":              {caps: withGuests, mode: pcapi.PowerOffModeSoft, guests: cloudfake.GuestsUnavailable, calls: []string{"update s1"}, want: cloud.StateActive, ready: "False GuestUnavailable"},
		"Soft, the cloud cannot ask guests: refused, no calls":  {caps: everything, mode: pcapi.PowerOffModeSoft, want: cloud.StateActive, ready: "False Unsupported"},
		"Soft, the guest shuts down: one call, as with TrySoft": {caps: withGuests, mode: pcapi.PowerOffModeSoft, calls: []string{"update s1"}, want: cloud.StateStopped, ready: "True Stopped"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, tc.caps, onRecord(poweredOff, mode(tc.mode)), serverWith())
			h.cloud.SetGuests(tc.guests)
			h.mustReconcile()
			h.wantCalls(tc.calls...)
			equal(t, "state", tc.want, h.serverState())
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			equal(t, "a request to shut down is on record", tc.ready == "False ShuttingDown", h.vm().Status.ShutdownRequestedTime != nil)
		})
	}
}

func TestGuestThatDoesNotShutDownIsPoweredOffAfterTimeout(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff, func(vm *pcapi.VM) { vm.Spec.PowerOffTimeout = &metav1.Duration{Duration: time.Minute} }), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.wantRequeue(time.Minute-fraction, h.mustReconcile())
	h.wantCalls("update s1")
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown", "is powered off at")

	h.start() // a new process
	h.connect()
	h.later(50 * time.Second)
	h.mustReconcile()
	h.wantCalls("update s1") // it cannot know whether the request was accepted
	h.mustReconcile()
	h.wantCalls()
	equal(t, "before the timeout", cloud.StateActive, h.serverState())

	h.later(10 * time.Second)
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "after the timeout", cloud.StateStopped, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
	equal(t, "the request is forgotten", (*metav1.Time)(nil), h.vm().Status.ShutdownRequestedTime)
}

func TestSoftNeverPowersOff(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff, mode(pcapi.PowerOffModeSoft)), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.mustReconcile()
	h.wantCalls("update s1")
	writes := len(h.writes)
	for range 60 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantCalls()
	equal(t, "writes while waiting", writes, len(h.writes))
	h.later(10 * time.Minute)
	h.mustReconcile()
	h.wantCalls("update s1") // asked again
	equal(t, "state", cloud.StateActive, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown", "not powered off")

	h.edit(func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "the request is forgotten", (*metav1.Time)(nil), h.vm().Status.ShutdownRequestedTime)
}

func TestServerIsStoppedSoftlyForChangeOfItsSize(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(func(vm *pcapi.VM) { vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed }), serverWith(withCores(1)))
	h.cloud.SetNeedsStop(true)
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.mustReconcile()
	h.wantCalls("update s1", "update s1")
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	h.setServerState(cloud.StateStopped) // the guest has shut down
	for range 3 {
		h.later(time.Second)
		h.mustReconcile()
	}
	equal(t, "cores", 2, h.cloud.Server("s1").CPU)
	equal(t, "state", cloud.StateActive, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestVMIsNotReadyBetweenShutdownAndChangeOfItsSize(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff), serverWith(withCores(1)))
	h.mustReconcile()
	equal(t, "state", cloud.StateStopped, h.serverState())
	equal(t, "cores before the change", 1, h.cloud.Server("s1").CPU)
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "is changed further")
	h.mustReconcile()
	equal(t, "cores", 2, h.cloud.Server("s1").CPU)
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
}

func TestGuestThatWasAskedIsNotPoweredOffBecauseItCannotBeAskedAgain(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff), serverWith())
	h.cloud.Fail(cloudfake.UpdateServer, errReset, false) // the answer is lost
	h.mustReconcile()
	h.start() // the manager is killed
	h.connect()
	h.cloud.SetGuests(cloudfake.GuestsUnavailable) // its agent has ended
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	equal(t, "before the timeout", cloud.StateActive, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	h.later(2 * time.Minute)
	h.mustReconcile()
	equal(t, "after the timeout", cloud.StateStopped, h.serverState())
}

func TestServerIsPoweredOffAfterTimeoutIfEachRequestFails(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff), serverWith())
	for range 3 {
		h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Rejected, Op: "update", Detail: "unknown field"}, false)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "False Rejected")
		h.later(time.Minute)
	}
	h.later(3 * time.Minute)
	h.mustReconcile()
	equal(t, "state", cloud.StateStopped, h.serverState())
}

func TestOldRequestToShutDownCountsNoMore(t *testing.T) {
	t.Run("the VM is to be off: asked again", func(t *testing.T) {
		h := harnessWithServer(t, withGuests, onRecord(poweredOff, askedAt(startTime.Add(-time.Hour))), serverWith())
		h.cloud.SetGuests(cloudfake.GuestsIgnore)
		h.mustReconcile()
		h.wantCalls("update s1")
		equal(t, "state", cloud.StateActive, h.serverState())
		h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	})
	t.Run("a restart: missed, and not stopped", func(t *testing.T) {
		at := startTime.Add(-time.Hour)
		h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(at), askedAt(at)), serverWith())
		h.mustReconcile()
		h.wantCalls()
		equal(t, "result", pcapi.VMRestartMissed, h.vm().Status.LastRestart.Result)
		equal(t, "request", (*metav1.Time)(nil), h.vm().Status.ShutdownRequestedTime)
	})
}

func askedAt(at time.Time) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.ShutdownRequestedTime = new(metav1.NewTime(at)) }
}

func TestRequestOfCancelledStopIsForgotten(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(poweredOff), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.mustReconcile()
	h.cloud.SetNeedsStop(true)
	h.edit(func(vm *pcapi.VM) { vm.Spec.PowerState, vm.Spec.CPU = pcapi.PowerOn, pcapi.Cores(8) })
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False NeedsRestart")
	equal(t, "request", (*metav1.Time)(nil), h.vm().Status.ShutdownRequestedTime)
}

func TestStoppedServerIsStartedThoughItsSizeNeedsAStop(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(), serverWith(withCores(1), func(s *cloud.Server) { s.State = cloud.StateStopped }))
	h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.NeedsStop, Op: "update", Detail: "stop it first"}, false)
	for range 2 {
		h.mustReconcile()
		h.later(time.Second)
	}
	equal(t, "state", cloud.StateActive, h.serverState())
}

func TestStoppedServerIsStartedThoughTheCloudIgnoresItsSize(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(), serverWith(withCores(1), func(s *cloud.Server) { s.State = cloud.StateStopped }))
	h.cloud.SetKeepsSize(true)
	for range 3 {
		h.mustReconcile()
		h.later(pollInterval)
	}
	equal(t, "state", cloud.StateActive, h.serverState())
}
