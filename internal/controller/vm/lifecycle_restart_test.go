package vm

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func restartAt(at time.Time) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.NextRestartTime = new(metav1.NewTime(at)) }
}

func TestRestartStopsAndStartsServerOnce(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(startTime.Add(3*time.Hour))), serverWith())
	now := h.now
	h.wantRequeue(startTime.Add(3*time.Hour).Sub(now), h.mustReconcile())
	h.wantCalls()

	h.later(startTime.Add(3 * time.Hour).Sub(now))
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "at its time", cloud.StateStopped, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "restart")

	h.start() // a new process
	h.connect()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "then", cloud.StateActive, h.serverState())
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "result", pcapi.VMRestarted, h.vm().Status.LastRestart.Result)

	h.start()
	h.connect()
	for range 10 {
		h.later(10 * time.Minute)
		h.mustReconcile()
	}
	h.wantCalls()
}

// fractions are the parts of a second that programs print, with their time zones.
var fractions = map[string]func(time.Time) time.Time{
	"whole seconds":                   func(at time.Time) time.Time { return at },
	"milliseconds":                    func(at time.Time) time.Time { return at.Add(123 * time.Millisecond) },
	"microseconds":                    func(at time.Time) time.Time { return at.Add(123456 * time.Microsecond) },
	"nanoseconds":                     func(at time.Time) time.Time { return at.Add(123456789) },
	"nearly a second":                 func(at time.Time) time.Time { return at.Add(time.Second - 1) },
	"milliseconds, east of Greenwich": func(at time.Time) time.Time { return at.Add(time.Millisecond).In(time.FixedZone("", 19800)) },
	"nanoseconds, west of Greenwich":  func(at time.Time) time.Time { return at.Add(1).In(time.FixedZone("", -12600)) },
}

func TestRestartTimeWithFractionRestartsOnce(t *testing.T) {
	for name, precise := range fractions {
		t.Run(name, func(t *testing.T) {
			at := precise(startTime.Truncate(time.Second).Add(3 * time.Hour))
			h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(at)), serverWith())
			h.later(at.Sub(h.now))
			for range 5 {
				h.mustReconcile()
				h.later(time.Second)
			}
			h.wantCalls("update s1", "update s1")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "result", pcapi.VMRestarted, h.vm().Status.LastRestart.Result)

			next := precise(h.now.Truncate(time.Second)) // another value
			h.edit(restartAt(next))
			h.later(time.Second)
			for range 5 {
				h.mustReconcile()
				h.later(time.Second)
			}
			h.wantCalls("update s1", "update s1")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "time of the last restart", next.Unix(), h.vm().Status.LastRestart.RequestedTime.Unix())
		})
	}
}

func TestMissedRestartTimeWithFractionIsRecordedOnce(t *testing.T) {
	for name, precise := range fractions {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(precise(startTime.Truncate(time.Second).Add(-time.Hour)))), serverWith())
			h.mustReconcile()
			writes := len(h.writes)
			for range 5 {
				h.later(time.Second)
				h.mustReconcile()
			}
			h.wantCalls()
			equal(t, "result", pcapi.VMRestartMissed, h.vm().Status.LastRestart.Result)
			equal(t, "events", 1, strings.Count(strings.Join(h.events, ","), "RestartMissed"))
			equal(t, "writes after the first reconcile", writes, len(h.writes))
		})
	}
}

func TestGuestAskedInTheSecondOfTheRestartTimeIsPoweredOn(t *testing.T) {
	at := startTime.Truncate(time.Second).Add(time.Hour + 500*time.Millisecond)
	h := harnessWithServer(t, withGuests, onRecord(createdBefore, mode(pcapi.PowerOffModeSoft), restartAt(at)), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.later(at.Sub(h.now))
	h.mustReconcile()
	h.later(restartWindow + time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	h.setServerState(cloud.StateStopped)
	h.later(time.Second)
	h.mustReconcile()
	equal(t, "result", pcapi.VMRestarted, h.vm().Status.LastRestart.Result)
}

func TestStartAfterRestartIsSentOnceItIsOnRecord(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(startTime.Add(time.Hour))), serverWith(func(s *cloud.Server) { s.State = cloud.StateStopped }))
	h.refuse["status"] = []error{errAPIAway}
	_, err := h.reconcile()
	if err == nil {
		t.Error("the restart could not be stored, and there is no error")
	}
	h.wantCalls()
	equal(t, "state", cloud.StateStopped, h.serverState())
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "state", cloud.StateActive, h.serverState())
}

func TestRestartThatIsNotMade(t *testing.T) {
	tests := map[string]struct {
		change []func(*pcapi.VM)
		want   *pcapi.VMRestartResult
		events int
	}{
		"more than an hour ago: missed": {change: []func(*pcapi.VM){createdBefore, restartAt(startTime.Add(-time.Minute))}, want: new(pcapi.VMRestartMissed), events: 1},
		"the VM is to be off: missed":   {change: []func(*pcapi.VM){createdBefore, poweredOff, restartAt(startTime.Add(time.Hour))}, want: new(pcapi.VMRestartMissed), events: 1},
		"before the VM was created: it never had to be": {change: []func(*pcapi.VM){restartAt(startTime.Add(-time.Minute)), func(vm *pcapi.VM) {
			vm.Status.CreatedTime = new(metav1.NewTime(startTime))
		}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			vm, state := onRecord(tc.change...), cloud.StateActive
			if vm.Spec.PowerState == pcapi.PowerOff {
				state = cloud.StateStopped
			}
			h := harnessWithServer(t, withGuests, vm, serverWith(func(s *cloud.Server) { s.State = state }))
			h.mustReconcile()
			h.mustReconcile()
			h.wantCalls()
			missed := 0
			for _, event := range h.events {
				if event == "Warning RestartMissed" {
					missed++
				}
			}
			equal(t, "events", tc.events, missed)
			switch last := h.vm().Status.LastRestart; {
			case last == nil && tc.want == nil:
			case last == nil || tc.want == nil || last.Result != *tc.want:
				t.Errorf("status.lastRestart: got %+v, want %v", last, tc.want)
			}
		})
	}
}

func TestRestartWhoseGuestIsShuttingDownIsNotMissed(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(createdBefore, mode(pcapi.PowerOffModeSoft), restartAt(startTime.Add(time.Hour))), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.later(restartWindow + time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	h.setServerState(cloud.StateStopped)
	h.later(time.Second)
	h.mustReconcile()
	equal(t, "state", cloud.StateActive, h.serverState())
	equal(t, "result", pcapi.VMRestarted, h.vm().Status.LastRestart.Result)
}

func TestRestartOnCloudWithoutPowerIsUnsupported(t *testing.T) {
	h := harnessWithServer(t, without(cloud.Power, cloud.PowerAtCreate), onRecord(createdBefore, restartAt(startTime.Add(time.Hour))), serverWith())
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "nextRestartTime")
}

func TestRestartStartsServerWhoseNewSizeIsRefused(t *testing.T) {
	h := harnessWithServer(t, withGuests, onRecord(createdBefore, restartAt(startTime.Add(time.Hour))), serverWith(withCores(1)))
	h.mustReconcile()
	equal(t, "at its time", cloud.StateStopped, h.serverState())
	h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Quota, Op: "update", Detail: "no room"}, false)
	for range 2 {
		h.later(time.Second)
		h.mustReconcile()
	}
	equal(t, "state", cloud.StateActive, h.serverState())
	equal(t, "result", pcapi.VMRestarted, h.vm().Status.LastRestart.Result)
}

func TestServerWithUnsupportedSizeIsNotStoppedForRestart(t *testing.T) {
	h := harnessWithServer(t, without(cloud.Resize), onRecord(createdBefore, restartAt(startTime.Add(time.Hour))), serverWith(withCores(1)))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "cpu")
}

func TestRestartThatMustAskAGuestOfACloudThatCannotIsUnsupported(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(createdBefore, mode(pcapi.PowerOffModeSoft), restartAt(startTime.Add(time.Hour))), serverWith())
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "powerOffMode")
}
