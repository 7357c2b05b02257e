package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func powerOff(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }

func suspend(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerSuspended }

func restartNow(vm *pcapi.VM) {
	vm.Spec.NextRestartTime = new(metav1.NewTime(time.Now().Truncate(time.Second)))
}

var powerCases = cases{
	"a VM is to be off, and its guest takes a while: the server is not powered off meanwhile": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ShutdownTime: mockcloud.Duration(3 * time.Second)}})
		vm := f.readyVM("web")
		edit(t, vm, powerOff)
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ShuttingDown"),
			HaveField("Status.ShutdownRequestedTime", Not(BeNil())), HaveField("Status.State", pcapi.VMStateRunning)))
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"), HaveField("Status.ShutdownRequestedTime", BeNil())))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate}))
	},

	"a guest ignores the request to shut down: the server is powered off after powerOffTimeout": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{IgnoreShutdown: "*"}})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.PowerOffTimeout = &metav1.Duration{Duration: 2 * time.Second} })
		edit(t, vm, powerOff)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ShuttingDown"))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"))
	},

	"a VM is to be suspended, resumed, and off: the server follows, and keeps its memory until its guest shuts down": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ResizeStopped: true}})
		vm := f.readyVM("web", func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.ReadinessProbe = pcapi.Cores(2), &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
		})
		edit(t, vm, suspend)
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"), HaveField("Status.State", pcapi.VMStateSuspended),
			HaveField("Status.CPUUtilization", BeNil()), testkit.HaveCondition("GuestReady", metav1.ConditionFalse, "NotRunning", "its state is Suspended")))
		t.Expect(f.serverOf(vm)()).To(HaveField("State", mockcloud.StateSuspended))

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "NeedsRestart", "is suspended", "set spec.powerState to On or Off, or spec.updatePolicy to RestartAllowed"))
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(HaveField("State", mockcloud.StateSuspended), HaveField("CPU", 2)))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(2) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"))

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Running"))
		edit(t, vm, suspend)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"))
		edit(t, vm, powerOff)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"))
		var powers []string
		for _, e := range f.Ledger() {
			powers = append(powers, e.Fields...)
		}
		t.Expect(powers).To(Equal([]string{"powerState", "powerState", "powerState", "powerState", "powerOffMode"}), "suspended, resumed, suspended, resumed, and its guest shut down")
	},

	"a VM that is suspended waits with another size, and updatePolicy then allows a restart: its server is resumed, resized and suspended again": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ResizeStopped: true}})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(2) })
		edit(t, vm, suspend)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "NeedsRestart"))
		edit(t, vm, restartAllowed)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"))
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(HaveField("State", mockcloud.StateSuspended), HaveField("CPU", 4)))
		var changed []string
		for _, e := range f.Ledger() {
			changed = append(changed, e.Fields...)
		}
		t.Expect(changed).To(Equal([]string{"powerState", "powerState", "powerOffMode", "cpu", "powerState", "powerState"}), "suspended, resumed, its guest shut down, resized, started, suspended")
	},

	"a VM is created Suspended: its server is created running, suspended, and deleted as it is": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", suspend)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Suspended"))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate}))
		t.Expect(env.Client.Delete(t.Context(), vm)).To(Succeed())
		t.Eventually(f.Servers).Should(BeEmpty())
	},

	"the cloud cannot suspend: the VM is Unsupported, and nothing is sent": func(t *T) {
		f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Suspend: false}})
		vm := f.createVM("web", suspend)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set powerState Suspended: remove it from the spec"))
		t.Expect(f.createCalls()).To(BeZero())
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
		waitReady(t, vm)
		edit(t, vm, suspend)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set powerState Suspended"))
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
	},

	"the power state is Unmanaged, and the guest shuts down and starts again: the VM is Ready, nothing is sent, and the size is still managed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.PowerState, vm.Spec.CPU = pcapi.PowerUnmanaged, pcapi.Cores(2) })
		for _, state := range []mockcloud.State{mockcloud.StateStopped, mockcloud.StateActive} {
			t.Expect(f.SetServerState(vm.Status.VMID, state)).To(Succeed())
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, map[mockcloud.State]string{mockcloud.StateStopped: "Stopped", mockcloud.StateActive: "Running"}[state]))
			f.waitForPolls(3)
			t.Expect(f.serverOf(vm)()).To(HaveField("State", state))
		}
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
		t.Expect(f.SetServerState(vm.Status.VMID, mockcloud.StateStopped)).To(Succeed())
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(f.serverOf(vm)).Should(SatisfyAll(HaveField("CPU", 4), HaveField("State", mockcloud.StateStopped)))
	},

	"a restart is asked for: the server is stopped and started once, and the status has the time": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ShutdownTime: mockcloud.Duration(time.Second)}})
		vm := f.readyVM("web")
		edited := edit(t, vm, restartNow)
		t.Eventually(latest(vm)).Should(SatisfyAll(HaveField("Status.LastRestart", HaveValue(SatisfyAll(
			HaveField("Result", pcapi.VMRestarted), HaveField("RequestedTime.Unix()", edited.Spec.NextRestartTime.Unix())))), testkit.BeReady()))
		t.Expect(f.serverOf(vm)()).To(HaveField("State", mockcloud.StateActive))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate, mockcloud.OpUpdate}))
	},

	"a restart is asked for with nanoseconds and an offset: the server is stopped and started once": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		at := time.Now().In(time.FixedZone("", 19800)).Format("2006-01-02T15:04:05.000000000Z07:00")
		patch := func(spec string) {
			t.Expect(env.Client.Patch(t.Context(), vm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))).To(Succeed())
		}
		patch(`{"nextRestartTime":"` + at + `"}`)
		t.Eventually(latest(vm)).Should(SatisfyAll(HaveField("Status.LastRestart", HaveValue(HaveField("Result", pcapi.VMRestarted))), testkit.BeReady()))
		patch(`{"powerOffMode":"Hard"}`) // one more reconcile
		waitReady(t, vm)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate, mockcloud.OpUpdate}))
	},
}

func TestPower(t *testing.T) { powerCases.run(t) }
