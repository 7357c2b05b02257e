package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestServerLost(t *testing.T) { serverLosses.run(t) }

var serverLosses = cases{
	"the server is deleted in the cloud: the VM is Lost, keeps its id and is not created again": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())

		t.Eventually(latest(vm)).Should(SatisfyAll(
			HaveField("Status.State", pcapi.VMStateLost),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Lost", "it is not created again"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Lost"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Lost"),
			HaveField("Status.VMID", vm.Status.VMID),
		))
		requestReconcile(t, vm)
		f.waitForPolls(2)
		t.Expect(f.createCalls()).To(Equal(1))
		t.Expect(get(t, vm)).To(HaveField("Status.VMID", vm.Status.VMID))
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created", "Lost"}))
	},

	"the server comes back: the VM is Running again": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		server, _ := f.Server(vm.Status.VMID)
		t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))

		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.BeReady(),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.State", pcapi.VMStateRunning),
		))
	},

	"another server carries the VM's labels: the recorded id stays": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		server, _ := f.Server(vm.Status.VMID)
		t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())
		server.ID = ""
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())

		t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
		f.waitForPolls(2)
		t.Expect(get(t, vm)).To(HaveField("Status.VMID", vm.Status.VMID))
	},

	"status.vmId is changed: the API server refuses it": refusedVMID("another"),
	"status.vmId is removed: the API server refuses it": refusedVMID(""),
}

func refusedVMID(id string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		edited := f.readyVM("web")
		base := edited.DeepCopy()
		edited.Status.VMID = id
		err := env.Client.Status().Patch(t.Context(), edited, client.MergeFrom(base))
		t.Expect(err).To(MatchError(ContainSubstring("status.vmId cannot be changed once it is set")))
	}
}

func broughtBack(change func(*mockcloud.Server), back types.GomegaMatcher) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(2), pcapi.GiB(8) })

		server, _ := f.Server(vm.Status.VMID)
		change(&server)
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())

		t.Eventually(f.serverOf(vm)).Should(back)
		t.Eventually(latest(vm)).Should(testkit.BeReady())
		t.Expect(f.serversNamed("web")).To(Equal([]string{vm.Status.VMID}))
	}
}

func stalledBy(state mockcloud.State, reason, sentence string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")

		t.Expect(f.SetServerState(vm.Status.VMID, state)).To(Succeed())
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, reason, sentence),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.State", pcapi.VMStateFailed),
		))
		t.Expect(f.SetServerState(vm.Status.VMID, mockcloud.StateActive)).To(Succeed())
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.State", pcapi.VMStateRunning)))
		t.Expect(f.createCalls()).To(Equal(1))
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
	}
}

func TestServerDrift(t *testing.T) { serverDrift.run(t) }

var serverDrift = cases{
	"the number of cores differs: it is set back": broughtBack(func(s *mockcloud.Server) { s.CPU = 16 }, HaveField("CPU", 2)),
	"the memory differs: it is set back":          broughtBack(func(s *mockcloud.Server) { s.Memory = 1 }, HaveField("Memory", 8)),
	"the server is stopped: it is started": broughtBack(func(s *mockcloud.Server) {
		s.State, s.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
	}, HaveField("State", mockcloud.StateActive)),

	"the server is suspended: it is resumed": broughtBack(func(s *mockcloud.Server) {
		s.State, s.PowerState = mockcloud.StateSuspended, mockcloud.PowerSuspended
	}, HaveField("State", mockcloud.StateActive)),

	"the server is renamed: the VM stalls until the server has its name again": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")

		t.Expect(f.RenameServer(vm.Status.VMID, "renamed")).To(Succeed())
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", `named "renamed"`, "rename it in the cloud"))
		t.Expect(f.RenameServer(vm.Status.VMID, "web")).To(Succeed())
		t.Eventually(latest(vm)).Should(testkit.BeReady())
	},

	"the server is in error: the VM stalls until it recovers": stalledBy(mockcloud.StateError, "ServerError", "look there for the cause"),
	"the server is in an unknown state: the VM stalls until it recovers": stalledBy(
		mockcloud.State("HIBERNATED"), "UnknownState", `in a state that this operator does not know: "HIBERNATED"`),
}

func TestEditVM(t *testing.T) { editCases.run(t) }

var editCases = cases{
	"powerState, cpu and memory change: the size is set before the server is started": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"), HaveField("Status.State", pcapi.VMStateStopped)))
		t.Expect(f.serverOf(vm)()).To(HaveField("State", mockcloud.StateStopped))

		edit(t, vm, func(vm *pcapi.VM) {
			vm.Spec.PowerState, vm.Spec.CPU, vm.Spec.Memory = pcapi.PowerOn, pcapi.Cores(8), pcapi.GiB(32)
		})
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Running"))
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(HaveField("State", mockcloud.StateActive), HaveField("CPU", 8), HaveField("Memory", 32)))
		t.Expect(f.CountCalls("PATCH", "/servers/{id}")).To(Equal(3), "to stop it, to resize it and to start it")
	},

	"the cloud does not support a field: the VM stalls until the edit is undone": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Template = pcapi.Cores(4), "debian-13" })
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set cpu, template"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
		))
		t.Expect(f.createCalls()).To(BeZero())

		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Template = nil, "" })
		waitReady(t, vm)
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set powerState"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
		))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
		t.Eventually(latest(vm)).Should(testkit.BeReady())
	},
}
