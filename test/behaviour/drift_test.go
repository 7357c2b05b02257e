package behaviour_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

var losses = theme{"a server that is gone behind the operator's back", cases{
	"leaves its VM Lost, with its id, and is not made again": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		Expect(s.DeleteServer(vm.Status.VMID)).To(Succeed())

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			HaveField("Status.State", v1alpha1.VMStateLost),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Lost", "it is not made again"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Lost"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Lost"),
			HaveField("Status.VMID", vm.Status.VMID),
		))
		poke(ctx, vm)
		s.polls(ctx, 2)
		Expect(s.posts()).To(Equal(1))
		Expect(read(ctx, vm)).To(HaveField("Status.VMID", vm.Status.VMID))
		Expect(story(vm)(ctx)).To(Equal([]string{"Created", "Lost"}))
	},

	"is taken for itself again when it comes back": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		server, _ := s.Server(vm.Status.VMID)
		Expect(s.DeleteServer(vm.Status.VMID)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.State", v1alpha1.VMStateLost))

		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.BeReady(),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.State", v1alpha1.VMStateRunning),
		))
	},

	"is not replaced on record by a server that carries the VM's labels": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		server, _ := s.Server(vm.Status.VMID)
		Expect(s.DeleteServer(vm.Status.VMID)).To(Succeed())
		server.ID = ""
		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())

		Eventually(ctx, now(vm)).Should(HaveField("Status.State", v1alpha1.VMStateLost))
		s.polls(ctx, 2)
		Expect(read(ctx, vm)).To(HaveField("Status.VMID", vm.Status.VMID))
	},

	"cannot be replaced on record by hand either": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		fresh := read(ctx, vm)
		base := fresh.DeepCopy()
		for _, id := range []string{"another", ""} {
			fresh.Status.VMID = id
			err := env.Client.Status().Patch(ctx, fresh.DeepCopy(), client.MergeFrom(base))
			Expect(err).To(MatchError(ContainSubstring("status.vmId cannot be changed once it is set")))
		}
	},
}}

func broughtBack(change func(*mockcloud.Server), back types.GomegaMatcher) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		cpu, memory := int32(2), int32(8)
		vm := s.ready(ctx, "web", func(vm *v1alpha1.VM) { vm.Spec.CPU, vm.Spec.Memory = &cpu, &memory })

		server, _ := s.Server(vm.Status.VMID)
		change(&server)
		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())

		Eventually(ctx, s.serverOf(vm)).Should(back)
		Eventually(ctx, now(vm)).Should(testkit.BeReady())
		Expect(s.named("web")).To(Equal([]string{vm.Status.VMID}))
	}
}

func stalledBy(state mockcloud.State, reason, sentence string) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")

		Expect(s.SetServerState(vm.Status.VMID, state)).To(Succeed())
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, reason, sentence),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.State", v1alpha1.VMStateFailed),
		))
		Expect(s.SetServerState(vm.Status.VMID, mockcloud.StateActive)).To(Succeed())
		Eventually(ctx, now(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.State", v1alpha1.VMStateRunning)))
		Expect(s.posts()).To(Equal(1))
		Expect(s.CountCalls("PATCH", "")).To(BeZero())
	}
}

var drift = theme{"a server that differs from its VM", cases{
	"is brought back to its cores":  broughtBack(func(s *mockcloud.Server) { s.CPU = 16 }, HaveField("CPU", 2)),
	"is brought back to its memory": broughtBack(func(s *mockcloud.Server) { s.Memory = 1 }, HaveField("Memory", 8)),
	"is brought back to running": broughtBack(func(s *mockcloud.Server) {
		s.State, s.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
	}, HaveField("State", mockcloud.StateActive)),

	"stalls the VM by its name, which cannot be set from here, until it is renamed in the cloud": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")

		Expect(s.RenameServer(vm.Status.VMID, "renamed")).To(Succeed())
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", `named "renamed"`, "rename it in the cloud"))
		Expect(s.RenameServer(vm.Status.VMID, "web")).To(Succeed())
		Eventually(ctx, now(vm)).Should(testkit.BeReady())
	},

	"stalls the VM by an error, and lets go when it recovers": stalledBy(mockcloud.StateError, "ServerError", "look there for the cause"),
	"stalls the VM by a state that nobody knows, and lets go when it recovers": stalledBy(
		mockcloud.State("HIBERNATED"), "UnknownState", "in a state that this operator does not know"),
}}

var edits = theme{"a spec that changes", cases{
	"switches the server off and on, and resizes it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.PowerState = v1alpha1.PowerOff })
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"), HaveField("Status.State", v1alpha1.VMStateStopped)))
		Expect(s.serverOf(vm)()).To(HaveField("State", mockcloud.StateStopped))

		cpu, memory := int32(8), int32(32)
		edit(ctx, vm, func(vm *v1alpha1.VM) {
			vm.Spec.PowerState, vm.Spec.CPU, vm.Spec.Memory = v1alpha1.PowerOn, &cpu, &memory
		})
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Running"))
		Expect(s.serverOf(vm)()).To(SatisfyAll(HaveField("State", mockcloud.StateActive), HaveField("CPU", 8), HaveField("Memory", 32)))
		Expect(s.CountCalls("PATCH", "/servers/{id}")).To(Equal(2), "one call for each edit")
	},

	"stalls on what the cloud cannot do, names it, and goes on once it is taken back": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		four := int32(4)
		vm := s.create(ctx, "web", func(vm *v1alpha1.VM) { vm.Spec.CPU, vm.Spec.Template = &four, "debian-13" })
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set cpu, template"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
		))
		Expect(s.posts()).To(BeZero())

		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.CPU, vm.Spec.Template = nil, "" })
		untilReady(ctx, vm)
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.PowerState = v1alpha1.PowerOff })
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set powerState"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
		))
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.PowerState = v1alpha1.PowerOn })
		Eventually(ctx, now(vm)).Should(testkit.BeReady())
	},
}}
