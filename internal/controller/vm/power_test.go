package vm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// withSuspend are the capabilities of a cloud that can suspend servers and ask guests to shut down.
var withSuspend = cloud.NewCapabilities(append([]cloud.Capability{cloud.Suspend}, withGuests...)...)

func suspended(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerSuspended }

// complete reconciles until nothing is left to do for now, and returns the states that the server
// went through. Each reconcile makes one step at most.
func (h *harness) complete() []cloud.State {
	states := []cloud.State{h.serverState()}
	for range 8 {
		h.mustReconcile()
		if now := h.serverState(); now != states[len(states)-1] {
			states = append(states, now)
		}
		h.later(pollInterval)
	}
	return states
}

func TestPowerStateIsReachedInSteps(t *testing.T) {
	const active, stopped, asleep = cloud.StateActive, cloud.StateStopped, cloud.StateSuspended
	lacking := cloud.NewCapabilities(withGuests...)
	tests := map[string]struct {
		caps  cloud.Capabilities
		spec  []func(*pcapi.VM)
		has   cloud.State
		want  []cloud.State
		ready string
	}{
		"Suspended, it runs: suspended":                                     {withSuspend, mods(suspended), active, []cloud.State{active, asleep}, "True Suspended"},
		"Suspended, it is suspended: nothing":                               {withSuspend, mods(suspended), asleep, []cloud.State{asleep}, "True Suspended"},
		"Suspended, it is off: started and suspended":                       {withSuspend, mods(suspended), stopped, []cloud.State{stopped, active, asleep}, "True Suspended"},
		"On, it is suspended: resumed":                                      {withSuspend, nil, asleep, []cloud.State{asleep, active}, "True Running"},
		"Off, it is suspended: resumed, and its guest shuts down":           {withSuspend, mods(poweredOff), asleep, []cloud.State{asleep, active, stopped}, "True Stopped"},
		"Off with Hard, it is suspended: resumed, and powered off":          {withSuspend, mods(poweredOff, mode(pcapi.PowerOffModeHard)), asleep, []cloud.State{asleep, active, stopped}, "True Stopped"},
		"Off with Soft, no cloud for it: not even resumed":                  {everything, mods(poweredOff, mode(pcapi.PowerOffModeSoft)), asleep, []cloud.State{asleep}, "False Unsupported"},
		"Suspended, the cloud cannot and it runs: refused":                  {lacking, mods(suspended), active, []cloud.State{active}, "False Unsupported"},
		"Suspended, the cloud cannot and it is off: not even started":       {lacking, mods(suspended), stopped, []cloud.State{stopped}, "False Unsupported"},
		"On, the cloud cannot suspend and it is suspended: resumed":         {lacking, nil, asleep, []cloud.State{asleep, active}, "True Running"},
		"On, no power and it is suspended: refused":                         {without(cloud.Power), nil, asleep, []cloud.State{asleep}, "False Unsupported"},
		"Suspended and restarted: missed, not restarted":                    {withSuspend, mods(suspended, createdBefore, restartAt(startTime.Add(time.Hour))), asleep, []cloud.State{asleep}, "True Suspended"},
		"On, suspended by hand, and a restart is due: resumed first":        {withSuspend, mods(createdBefore, restartAt(startTime.Add(time.Hour))), asleep, []cloud.State{asleep, active, stopped, active}, "True Running"},
		"Suspended by hand, and the restart is a long time ago: resumed":    {withSuspend, mods(createdBefore, restartAt(startTime.Add(-time.Hour))), asleep, []cloud.State{asleep, active}, "True Running"},
		"Suspended, ObserveOnly: not touched, whatever the server does":     {withSuspend, mods(suspended, observing), active, []cloud.State{active}, "True Running"},
		"On, ObserveOnly and it is suspended: not touched, and shown as it": {withSuspend, mods(observing), asleep, []cloud.State{asleep}, "True Suspended"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, tc.caps, onRecord(tc.spec...), serverWith(inState(tc.has)))
			equal(t, "states", tc.want, h.complete())
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			for _, call := range h.cloud.TakeCalls(cloudfake.ListServers) {
				if len(tc.want) == 1 {
					t.Errorf("%s was sent", call)
				}
			}
		})
	}
}

func mods(change ...func(*pcapi.VM)) []func(*pcapi.VM) { return change }

func TestSuspendedVMIsCreatedRunning(t *testing.T) {
	t.Run("the cloud can suspend: created On, then suspended", func(t *testing.T) {
		h := newHarness(t, withSuspend, vmWith(suspended))
		h.mustReconcile()
		equal(t, "power state of the create", cloud.PowerState(""), h.cloud.Request("uid-a").PowerState)
		h.wantCondition(pcapi.ReadyCondition, "False Progressing", "created running and is being suspended")
		equal(t, "states", []cloud.State{cloud.StateActive, cloud.StateSuspended}, h.complete())
		h.wantCondition(pcapi.ReadyCondition, "True Suspended")
		equal(t, "state", pcapi.VMStateSuspended, h.vm().Status.State)
		h.wantCalls("check web", "create web", "update s1")
	})
	t.Run("it cannot: nothing is sent", func(t *testing.T) {
		h := newHarness(t, withGuests, vmWith(suspended))
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "cannot set powerState Suspended: remove it from the spec")
		h.wantCalls()
	})
}

func TestSuspendedWithANewSizeInOneEditGetsBoth(t *testing.T) {
	const active, stopped, asleep = cloud.StateActive, cloud.StateStopped, cloud.StateSuspended
	bigger := func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) }
	for name, tc := range map[string]struct {
		has       cloud.State
		policy    pcapi.UpdatePolicy
		needsStop bool
		want      []cloud.State
		ready     string
		cpu       int
	}{
		"it runs, hot: resized, then suspended":                     {active, pcapi.UpdatePolicyNoRestart, false, []cloud.State{active, asleep}, "True Suspended", 8},
		"it runs, a stop is needed and allowed: both":               {active, pcapi.UpdatePolicyRestartAllowed, true, []cloud.State{active, stopped, active, asleep}, "True Suspended", 8},
		"it runs, a stop is needed, not allowed: suspended, stalls": {active, pcapi.UpdatePolicyNoRestart, true, []cloud.State{active, asleep}, "False NeedsRestart", 2},
		"it is off: resized, started, suspended":                    {stopped, pcapi.UpdatePolicyNoRestart, true, []cloud.State{stopped, active, asleep}, "True Suspended", 8},
		"it is suspended, a restart is allowed: resumed for it":     {asleep, pcapi.UpdatePolicyRestartAllowed, true, []cloud.State{asleep, active, stopped, active, asleep}, "True Suspended", 8},
		"it is suspended, hot, a restart is allowed: resumed":       {asleep, pcapi.UpdatePolicyRestartAllowed, false, []cloud.State{asleep, active, asleep}, "True Suspended", 8},
		"it is suspended, no restart: stays, and says why":          {asleep, pcapi.UpdatePolicyNoRestart, false, []cloud.State{asleep}, "False NeedsRestart", 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withSuspend, onRecord(suspended, bigger, func(vm *pcapi.VM) { vm.Spec.UpdatePolicy = tc.policy }), serverWith(inState(tc.has)))
			h.cloud.SetNeedsStop(tc.needsStop)
			equal(t, "states", tc.want, h.complete())
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			equal(t, "cpu", tc.cpu, h.cloud.Server("s1").CPU)
		})
	}
}

func unmanaged(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerUnmanaged }

func TestUnmanagedPowerStateIsLeftToTheOwnerOfTheGuest(t *testing.T) {
	const active, stopped, asleep = cloud.StateActive, cloud.StateStopped, cloud.StateSuspended
	bigger := func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) }
	due := restartAt(startTime.Add(time.Hour))
	for name, tc := range map[string]struct {
		spec      []func(*pcapi.VM)
		has       cloud.State
		needsStop bool
		want      []cloud.State
		ready     string
		cpu       int
		restart   pcapi.VMRestartResult
	}{
		"it runs: nothing":                                   {nil, active, false, []cloud.State{active}, "True Running", 2, ""},
		"it is off: nothing, and Ready":                      {nil, stopped, false, []cloud.State{stopped}, "True Stopped", 2, ""},
		"it is suspended: nothing, and Ready":                {nil, asleep, false, []cloud.State{asleep}, "True Suspended", 2, ""},
		"a size, it runs, hot: resized":                      {mods(bigger), active, false, []cloud.State{active}, "True Running", 8, ""},
		"a size, it is off: resized, stays off":              {mods(bigger), stopped, true, []cloud.State{stopped}, "True Stopped", 8, ""},
		"a size, it is suspended: waits":                     {mods(bigger, restartAllowed), asleep, false, []cloud.State{asleep}, "False NeedsRestart", 2, ""},
		"a size that needs a stop, not allowed: waits":       {mods(bigger), active, true, []cloud.State{active}, "False NeedsRestart", 2, ""},
		"a size that needs a stop, allowed: runs afterwards": {mods(bigger, restartAllowed), active, true, []cloud.State{active, stopped, active}, "True Running", 8, ""},
		"a restart, it runs: restarted":                      {mods(createdBefore, due), active, false, []cloud.State{active, stopped, active}, "True Running", 2, pcapi.VMRestarted},
		"a restart, it is off: missed, stays off":            {mods(createdBefore, due), stopped, false, []cloud.State{stopped}, "True Stopped", 2, pcapi.VMRestartMissed},
		"a restart, it is suspended: missed, stays so":       {mods(createdBefore, due), asleep, false, []cloud.State{asleep}, "True Suspended", 2, pcapi.VMRestartMissed},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withSuspend, onRecord(append([]func(*pcapi.VM){unmanaged}, tc.spec...)...), serverWith(inState(tc.has)))
			h.cloud.SetNeedsStop(tc.needsStop)
			equal(t, "states", tc.want, h.complete())
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			equal(t, "cpu", tc.cpu, h.cloud.Server("s1").CPU)
			equal(t, "a stop is on record", false, h.vm().Status.StoppedTime != nil)
			result := pcapi.VMRestartResult("")
			if last := h.vm().Status.LastRestart; last != nil {
				result = last.Result
			}
			equal(t, "restart", tc.restart, result)
		})
	}
	t.Run("it is created: it runs", func(t *testing.T) {
		h := newHarness(t, withSuspend, vmWith(unmanaged))
		h.mustReconcile()
		equal(t, "power state of the create", cloud.PowerState(""), h.cloud.Request("uid-a").PowerState)
		equal(t, "states", []cloud.State{active}, h.complete())
	})
	t.Run("the cloud refuses the size while the VM is stopped for it: it is started, and left alone after that", func(t *testing.T) {
		h := harnessWithServer(t, withSuspend, onRecord(unmanaged, bigger, restartAllowed), serverWith())
		h.cloud.SetNeedsStop(true)
		h.mustReconcile()
		h.later(pollInterval)
		h.cloud.SetKeepsSize(true)
		states := h.complete()
		equal(t, "state", active, states[len(states)-1])
		h.setServerState(stopped)
		equal(t, "states", []cloud.State{stopped}, h.complete())
	})
	t.Run("the manager ends while the VM is stopped for a size: another one starts it", func(t *testing.T) {
		h := harnessWithServer(t, withSuspend, onRecord(unmanaged, bigger, func(vm *pcapi.VM) {
			vm.Status.StoppedTime = &metav1.Time{Time: startTime}
		}), serverWith(inState(stopped)))
		equal(t, "states", []cloud.State{stopped, active}, h.complete())
		equal(t, "cpu", 8, h.cloud.Server("s1").CPU)
		h.setServerState(stopped) // by its owner
		equal(t, "states", []cloud.State{stopped}, h.complete())
	})
	t.Run("the cloud has no power: Ready as it is", func(t *testing.T) {
		h := harnessWithServer(t, without(cloud.Power), onRecord(unmanaged), serverWith(inState(stopped)))
		h.complete()
		h.wantCondition(pcapi.ReadyCondition, "True Stopped")
	})
}

func TestSuspendedVMKeepsItsMemory(t *testing.T) {
	bigger := func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) }
	moreDisks := func(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}} }
	for name, change := range map[string]func(*pcapi.VM){"another size": bigger, "another disk": moreDisks} {
		for _, has := range []cloud.State{cloud.StateActive, cloud.StateSuspended} {
			t.Run(fmt.Sprintf("%s, the server is %s: waits until the VM is On", name, has), func(t *testing.T) {
				h := harnessWithServer(t, withSuspend, onRecord(suspended, change), serverWith(inState(has)))
				h.cloud.SetNeedsStop(true)
				h.complete()
				equal(t, "state", cloud.StateSuspended, h.serverState())
				h.wantCondition(pcapi.ReadyCondition, "False NeedsRestart", "set spec.powerState to On or Off")
				equal(t, "size", []any{2, cloud.Disks("")}, []any{h.cloud.Server("s1").CPU, h.cloud.Server("s1").Disks})

				h.edit(func(vm *pcapi.VM) {
					vm.Spec.PowerState, vm.Spec.UpdatePolicy = pcapi.PowerOn, pcapi.UpdatePolicyRestartAllowed
				})
				equal(t, "states", []cloud.State{cloud.StateSuspended, cloud.StateActive, cloud.StateStopped, cloud.StateActive}, h.complete())
				h.wantCondition(pcapi.ReadyCondition, "True Running")
			})
		}
	}
	t.Run("a size that the cloud lacks resize for: refused", func(t *testing.T) {
		h := harnessWithServer(t, cloud.NewCapabilities(append([]cloud.Capability{cloud.Suspend}, without(cloud.Resize)...)...), onRecord(suspended, bigger), serverWith(inState(cloud.StateSuspended)))
		h.complete()
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "cpu")
	})
}

func TestGuestThatShutsDownWhileTheVMIsToBeSuspended(t *testing.T) {
	h := harnessWithServer(t, withSuspend, onRecord(poweredOff), serverWith())
	h.cloud.SetGuests(cloudfake.GuestsIgnore)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False ShuttingDown")
	h.setServerState(cloud.StateStopped) // the guest has shut down
	h.edit(suspended)
	equal(t, "states", []cloud.State{cloud.StateStopped, cloud.StateActive, cloud.StateSuspended}, h.complete())
	equal(t, "a request to shut down is on record", false, h.vm().Status.ShutdownRequestedTime != nil)
}

func TestSuspendedVMIsDeletedAsItIs(t *testing.T) {
	h := harnessWithServer(t, withSuspend, onRecord(suspended), serverWith(inState(cloud.StateSuspended)))
	h.remove()
	h.complete()
	h.wantGone()
	h.wantServers()
}

func TestSuspendThatTheCloudIgnoresIsSentAgainWithBackOff(t *testing.T) {
	h := harnessWithServer(t, withSuspend, onRecord(suspended), serverWith())
	h.cloud.Ignore(cloudfake.UpdateServer)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "does not show it: it is sent again")
	h.wantCalls("update s1")
}

// Whatever the server does, whatever the cloud can do and whatever else is to change, a VM comes
// to rest, and the memory of a server that is suspended is only lost to a guest that was resumed.
func TestPowerStateNeverLoops(t *testing.T) {
	t.Parallel()
	const rest = 12
	n := exhaust(func(p pick) {
		caps := one(p, withSuspend, withGuests)
		vm := onRecord(createdBefore)
		vm.Spec.PowerState = one(p, pcapi.PowerOn, pcapi.PowerOff, pcapi.PowerSuspended, pcapi.PowerUnmanaged)
		vm.Spec.UpdatePolicy = one(p, pcapi.UpdatePolicyNoRestart, pcapi.UpdatePolicyRestartAllowed)
		server := serverWith(inState(one(p, cloud.StateActive, cloud.StateStopped, cloud.StateSuspended)), withCores(one(p, 2, 1)))
		needsStop, keepsSize := p.bool(), false
		switch one(p, "a size that is ignored", "a restart", "tags", "disks", "") {
		case "a size that is ignored":
			keepsSize = true
		case "a restart":
			restartAt(startTime.Add(time.Hour))(vm)
		case "tags":
			withTags("env", "prod")(vm)
		case "disks":
			vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}}
		}
		reverts, frozen := caps.Has(cloud.Suspend) && p.bool(), serverWith(withCores(1)) // the snapshot has another size
		if reverts {
			caps = cloud.NewCapabilities(append(revertKeyed, caps...)...)
			revertTo("before")(vm)
		}
		h := newHarness(t, caps, vm, snapshotOf())
		h.cloud.AddServers(frozen)
		if reverts {
			if _, err := h.cloud.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: "s1", Name: "before"}); err != nil {
				t.Fatal(err)
			}
		}
		h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU, s.State = server.CPU, server.State })
		h.poll()
		h.cloud.SetNeedsStop(needsStop)
		h.cloud.SetKeepsSize(keepsSize)
		var states []cloud.State
		last := server.State
		for range rest {
			h.mustReconcile()
			now := h.serverState()
			if last == cloud.StateSuspended && now != last && now != cloud.StateActive {
				t.Fatalf("%s became %s: %s", last, now, describeVM(vm))
			}
			last, states = now, append(states, now)
			h.later(pollInterval)
		}
		h.cloud.TakeCalls()
		h.mustReconcile()
		// A size that the cloud ignores, or makes only while the server is stopped, is sent again.
		resized := last != cloud.StateSuspended && h.cloud.Server("s1").CPU != 2
		done := h.cloud.Server("s1")
		asDisks := len(vm.Spec.Disks) == 0 || done.Disks != ""
		if ready, message := h.condition(pcapi.ReadyCondition); !strings.HasPrefix(ready, "True") && (done.CPU == 2 && asDisks && ready != "False Unsupported" || message == "" || ready == "False Progressing" && !keepsSize) {
			t.Fatalf("Ready is %s (%s) although nothing is left to change, or it does not say what is: %s", ready, message, describeVM(vm))
		}
		if calls := h.cloud.TakeCalls(cloudfake.ListServers); len(calls) > 0 && !resized && asDisks {
			t.Fatalf("%v is sent after %d reconciles, states %v: %s", calls, rest, states, describeVM(vm))
		}
		left := server.State // in which the server is left if nothing else is said
		if reverts {
			left = cloud.StateStopped
			equal(t, "reverts", 1, h.cloud.Reverts())
		}
		want := map[pcapi.PowerState]cloud.State{pcapi.PowerOn: cloud.StateActive, pcapi.PowerOff: cloud.StateStopped, pcapi.PowerSuspended: cloud.StateSuspended, pcapi.PowerUnmanaged: left}[vm.Spec.PowerState]
		if ready, message := h.condition(pcapi.ReadyCondition); last != want && ready != "False Unsupported" || ready == "False Unsupported" && !reverts && slices.ContainsFunc(states, func(s cloud.State) bool { return s != server.State }) {
			t.Fatalf("the server is %s, want %s, after %v, and Ready is %s (%s): %s", last, want, states, ready, message, describeVM(vm))
		}
	})
	if n < 1350 {
		t.Errorf("%d situations were tried, want at least 1350", n)
	}
}

func describeVM(vm *pcapi.VM) string {
	return fmt.Sprintf("powerState %s, updatePolicy %s, nextRestartTime %v, tags %v, disks %v, revert to %q",
		vm.Spec.PowerState, vm.Spec.UpdatePolicy, vm.Spec.NextRestartTime, vm.Spec.Tags, vm.Spec.Disks, vm.Spec.CurrentSnapshotName)
}
