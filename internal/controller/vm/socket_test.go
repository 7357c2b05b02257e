package vm

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/probe"
)

// guest is what answers at the addresses of VMs: it accepts connections, unless err is set.
type guest struct {
	mu      sync.Mutex
	err     error
	dialled []string
	// stop ends the Prober of the process.
	stop func()
	// excluded is what probers do not dial; nil for nothing.
	excluded *probe.Exclusion
}

func (g *guest) dial(_ context.Context, address netip.AddrPort) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dialled = append(g.dialled, address.String())
	return g.err
}

func (g *guest) answer(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

// prober returns the Prober of a new process. It does not run.
func (h *harness) prober() *probe.Prober {
	networks, err := probe.ParseNetworks("10.0.0.0/8,fd00::/8")
	if err != nil {
		h.t.Fatal(err)
	}
	p := probe.New(probe.Options{Networks: networks.Except(h.guest.excluded), Dial: h.guest.dial})
	p.Subscribe(func(of probe.Key) {
		h.guest.mu.Lock()
		defer h.guest.mu.Unlock()
		h.enqueued = append(h.enqueued, requestOf(of).String())
	})
	return p
}

// runProbes runs the Prober of the process instead of the one before. The test is in a bubble.
func (h *harness) runProbes() {
	if h.guest.stop != nil {
		h.guest.stop()
	}
	ctx, stop := context.WithCancel(h.t.Context())
	h.guest.stop = stop
	probes := h.kind.probes
	go func() {
		if err := probes.Start(ctx); err != nil {
			h.t.Errorf("Start: %v", err)
		}
	}()
}

// pass lets time pass for probes.
func (h *harness) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (h *harness) wantDialled(want ...string) {
	h.t.Helper()
	h.guest.mu.Lock()
	defer h.guest.mu.Unlock()
	equal(h.t, "dialled addresses", want, slices.Compact(h.guest.dialled))
	h.guest.dialled = nil
}

const socketPeriod = 20 * time.Second

func socketProbed(vm *pcapi.VM) {
	vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{TCPSocket: &pcapi.VMTCPSocketProbe{Port: 22}, PeriodSeconds: int32(socketPeriod / time.Second), FailureThreshold: 2}
}

// withGuest runs a test of a VM on record whose server has addresses, in a bubble. The guest
// accepts connections.
func withGuest(t *testing.T, server func(*cloud.Server), test func(h *harness)) {
	t.Helper()
	withGuestThat(t, nil, server, test)
}

// withGuestThat does so with a guest that answers with an error.
func withGuestThat(t *testing.T, answers error, server func(*cloud.Server), test func(h *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := harnessWithServer(t, withAddresses, onRecord(socketProbed), serverWith(server))
		h.guest.answer(answers)
		h.enqueued = nil
		h.runProbes()
		h.mustReconcile()
		test(h)
		h.wantCalls()
	})
}

// withOpenPort does so with a guest at 10.0.0.5 that was dialled, and is ready.
func withOpenPort(t *testing.T, test func(h *harness)) {
	t.Helper()
	withGuest(t, addressed("10.0.0.5"), func(h *harness) {
		h.pass(0)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.wantDialled("10.0.0.5:22")
		h.enqueued = nil
		test(h)
	})
}

func TestGuestReadyFollowsPort(t *testing.T) {
	withGuestThat(t, context.DeadlineExceeded, addressed("10.0.0.5"), func(h *harness) {
		h.wantCondition(pcapi.ReadyCondition, "True Running")
		h.wantCondition(pcapi.GuestReadyCondition, "False ProbePending")
		h.pass(0)
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionTimeout")

		h.guest.answer(nil)
		h.pass(socketPeriod * 11 / 10)
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		if !slices.Contains(h.events, "Normal PortOpen") {
			t.Errorf("events %v, want one of the guest", h.events)
		}

		h.guest.answer(syscall.ECONNREFUSED)
		h.pass(socketPeriod * 11 / 10)
		h.wantEnqueued()
		h.pass(socketPeriod * 11 / 10)
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
		h.wantCondition(pcapi.ReadyCondition, "True Running")

		h.writes = nil
		h.pass(10 * socketPeriod)
		h.wantEnqueued()
		h.mustReconcile()
		equal(t, "writes", []string(nil), h.writes)
		h.wantDialled("10.0.0.5:22")
	})
}

func TestRestartKeepsGuestReadyUntilTheFirstResult(t *testing.T) {
	restarted := func(t *testing.T, guest error, test func(h *harness)) {
		withOpenPort(t, func(h *harness) {
			h.guest.answer(guest)
			h.start()
			h.runProbes()
			h.mustReconcile() // the Cloud was not listed yet
			h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
			h.connect()
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
			h.enqueued = nil
			test(h)
		})
	}
	t.Run("the guest is as it was: nothing is written", func(t *testing.T) {
		restarted(t, nil, func(h *harness) {
			h.writes = nil
			h.pass(socketPeriod)
			h.wantEnqueued()
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
			equal(t, "writes", []string(nil), h.writes)
		})
	})
	t.Run("the guest fails: as before the restart, after the threshold", func(t *testing.T) {
		restarted(t, syscall.ECONNREFUSED, func(h *harness) {
			h.pass(socketPeriod)
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
			h.pass(socketPeriod * 11 / 10)
			h.wantEnqueued("ns/a")
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
		})
	})
	t.Run("another port was set meanwhile: not ready until it is open", func(t *testing.T) {
		restarted(t, syscall.ECONNREFUSED, func(h *harness) {
			h.edit(func(vm *pcapi.VM) { vm.Spec.ReadinessProbe.TCPSocket.Port = 80 })
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "False ProbePending")
			h.pass(0)
			h.wantEnqueued("ns/a")
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
		})
	})
}

func TestPortIsDialledOnlyWhile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(h *harness)
		want   string
	}{
		"the probe is removed": {func(h *harness) { h.edit(func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = nil }) }, ""},
		"it is another probe":  {func(h *harness) { h.edit(probed) }, "True AddressKnown"},
		"the VM is off": {func(h *harness) {
			h.setServerState(cloud.StateStopped)
			h.poll()
			h.edit(func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		}, "False NotRunning"},
		"it has no address": {func(h *harness) { h.cloud.ModifyServer("s1", addressed()); h.poll() }, "False NoAddress"},
		"its address is in no network that may be dialled": {func(h *harness) { h.cloud.ModifyServer("s1", addressed("11.0.0.5")); h.poll() }, "Unknown ProbeNotAllowed"},
		"another object owns its server": {func(h *harness) {
			h.cloud.ModifyServer("s1", func(s *cloud.Server) {
				s.Labels = map[string]string{inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "cluster"}
			})
			h.poll()
		}, "False NoAddress"},
		"its server is gone":                    {func(h *harness) { h.cloud.RemoveServers("s1"); h.later(settleTime); h.later(settleTime) }, "False NotRunning"},
		"it is paused":                          {func(h *harness) { h.edit(paused) }, "True PortOpen"},
		"its namespace may not use the Cloud":   {func(h *harness) { h.denyCloud() }, "Unknown CloudUnavailable"},
		"the cloud shows no addresses any more": {func(h *harness) { h.inv.Connect(h.cloud, everything); h.poll() }, "Unknown Unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			withOpenPort(t, func(h *harness) {
				test.change(h)
				h.mustReconcile()
				h.wantCondition(pcapi.GuestReadyCondition, test.want)
				h.pass(10 * socketPeriod)
				h.wantDialled()
				h.cloud.TakeCalls()
			})
		})
	}
}

func TestPortIsDialledAgainAfterAPause(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.edit(func(vm *pcapi.VM) { paused(vm); vm.Generation-- }) // that of annotations does not change
		h.mustReconcile()
		h.guest.answer(syscall.ECONNREFUSED)
		h.edit(func(vm *pcapi.VM) { vm.Annotations, vm.Generation = nil, vm.Generation-1 })
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.pass(3 * socketPeriod)
		h.mustReconcile()
		h.wantDialled("10.0.0.5:22")
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
	})
}

func TestPortThatFlapsIsWrittenSeldom(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.edit(func(vm *pcapi.VM) { vm.Spec.ReadinessProbe.FailureThreshold = 1 })
		h.mustReconcile()
		h.writes = nil
		for i := range 100 {
			for _, err := range []error{nil, syscall.ECONNREFUSED} {
				h.guest.answer(err)
				h.pass(socketPeriod * 11 / 10)
				h.mustReconcile()
			}
			if i == 5 { // before the first interval ends
				h.wantCondition(pcapi.GuestReadyCondition, "False PortUnsteady", "ready again some minutes after the port stays open")
			}
		}
		if n := len(h.writes); n < 10 || n > 50 {
			t.Errorf("%d writes in 73 minutes in which the port changed 200 times, want some", n)
		}
		h.guest.answer(nil)
		h.pass(6 * time.Minute)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
	})
}

func TestPortThatFlappedAndStaysClosedIsReported(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.edit(func(vm *pcapi.VM) { vm.Spec.ReadinessProbe.FailureThreshold = 1 })
		h.mustReconcile()
		for range 6 {
			for _, err := range []error{nil, syscall.ECONNREFUSED} {
				h.guest.answer(err)
				h.pass(socketPeriod * 11 / 10)
				h.mustReconcile()
			}
		}
		h.wantCondition(pcapi.GuestReadyCondition, "False PortUnsteady")
		h.pass(6 * time.Minute)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
	})
}

func TestDeletedVMIsNotDialled(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.kind.ForgetDeleted(h.vm())
		h.pass(10 * socketPeriod)
		h.wantDialled()
	})
}

func TestOutageKeepsGuestReady(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.inv.MarkUnavailable("connection refused")
		h.mustReconcile()
		h.guest.answer(syscall.ECONNREFUSED)
		h.pass(3 * socketPeriod)
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.connect()
		h.wantEnqueued("a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
	})
}

func TestAllProbesMustHold(t *testing.T) {
	all := func(vm *pcapi.VM) {
		vm.Spec.ReadinessProbe.Address, vm.Spec.ReadinessProbe.GuestHeartbeat = &pcapi.VMAddressProbe{}, &pcapi.VMGuestHeartbeatProbe{}
	}
	synctest.Test(t, func(t *testing.T) {
		caps := cloud.NewCapabilities(append([]cloud.Capability{cloud.Addresses, cloud.GuestHeartbeat}, everything...)...)
		h := harnessWithServer(t, caps, onRecord(socketProbed, all), serverWith(beating(cloud.HeartbeatOK)))
		h.runProbes()
		becomes := func(want string, change func(*cloud.Server), guest error) {
			t.Helper()
			h.cloud.ModifyServer("s1", change)
			h.poll()
			h.guest.answer(guest)
			h.mustReconcile()
			h.pass(3 * socketPeriod)
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, want)
		}
		becomes("False NoAddress", addressed(), nil)
		becomes("True PortOpen", addressed("10.0.0.5"), nil)
		becomes("False HeartbeatLost", beating(cloud.HeartbeatLost), nil)
		becomes("False ConnectionRefused", beating(cloud.HeartbeatOK), syscall.ECONNREFUSED)
		becomes("True PortOpen", func(*cloud.Server) {}, nil)
	})
}

func TestPortOfNewVMIsProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, withAddresses, vmWith(socketProbed))
		h.runProbes()
		for range 3 {
			h.mustReconcile()
			for _, id := range h.cloud.ServerIDs() {
				h.cloud.ModifyServer(id, addressed("10.0.0.5"))
			}
			h.later(time.Second)
		}
		h.pass(0)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
	})
}

func TestPortProbeOnCloudWithoutAddressesKeepsNewVMFromBeingCreated(t *testing.T) {
	h := newHarness(t, everything, vmWith(socketProbed))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "readinessProbe.tcpSocket")
}
