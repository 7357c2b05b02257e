package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func powerOff(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }

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

	"a restart is asked for: the server is stopped and started once, and the status has the time": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ShutdownTime: mockcloud.Duration(time.Second)}})
		vm := f.readyVM("web")
		edited := edit(t, vm, restartNow)
		t.Eventually(latest(vm)).Should(SatisfyAll(HaveField("Status.LastRestart", HaveValue(SatisfyAll(
			HaveField("Result", pcapi.VMRestarted), HaveField("RequestedTime.Unix()", edited.Spec.NextRestartTime.Unix())))), testkit.BeReady()))
		t.Expect(f.serverOf(vm)()).To(HaveField("State", mockcloud.StateActive))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate, mockcloud.OpUpdate}))
	},
}

func TestPower(t *testing.T) { powerCases.run(t) }
