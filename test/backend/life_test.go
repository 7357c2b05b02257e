package backend_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

var errLost = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}

var _ = Describe("A cloud in memory", Serial, func() {
	AfterEach(func() {
		memory.SetSlow(false)
		memory.Heal()
		Expect(memory.Misuse()).NotTo(HaveOccurred(), "the operator makes only calls that the cloud can serve")
		Expect(memory.Servers()).To(BeEmpty())
		Expect(memory.Networks()).To(BeEmpty())
	})

	It("a VM: is created, resized, powered off and deleted", func(ctx SpecContext) {
		memory.SetSlow(true)
		vm := newVM("web", func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(2) })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionFalse, pcapi.CreatingReason))
		memory.SetSlow(false)
		memory.Finish()
		id := specs.Ready(ctx, vm).Status.VMID
		Expect(memory.Server(id)).To(And(HaveField("Name", "web"), HaveField("CPU", 2), HaveField("State", cloud.StateActive)))

		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		Eventually(func() int { return memory.Server(id).CPU }).Should(Equal(4))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(func() cloud.State { return memory.Server(id).State }).Should(Equal(cloud.StateStopped))
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		Expect(memory.ServerIDs()).To(ConsistOf(id))

		specs.Remove(ctx, vm)
	})

	It("a VM whose create's answer is lost: gets one server", func(ctx SpecContext) {
		memory.Fail(fake.CreateServer, errLost, true)
		vm := newVM("lost")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		id := specs.Ready(ctx, vm).Status.VMID
		Expect(memory.ServerIDs()).To(ConsistOf(id))
		specs.Remove(ctx, vm)
	})

	It("a Network with a VM: is created, changes its gateway and is deleted after the VM", func(ctx SpecContext) {
		network := testkit.Network(namespace, "net", func(n *pcapi.Network) {
			n.Spec.CloudRef = &pcapi.CloudReference{Name: "memory"}
		})
		Expect(env.Client.Create(ctx, network)).To(Succeed())
		id := specs.Ready(ctx, network).Status.NetworkID
		Expect(memory.Networks()).To(ConsistOf(And(HaveField("ID", id), HaveField("Gateway", "192.168.0.1"))))
		vm := newVM("wired", func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: network.Name} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Expect(memory.Server(specs.Ready(ctx, vm).Status.VMID).NetworkID).To(Equal(id))

		specs.Edit(ctx, network, func(n *pcapi.Network) { n.Spec.Gateway = "192.168.0.2" })
		Eventually(memory.Networks).Should(ConsistOf(HaveField("Gateway", "192.168.0.2")))

		Expect(env.Client.Delete(ctx, network)).To(Succeed())
		Eventually(ctx, specs.Stored(network)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, ""))
		specs.Remove(ctx, vm)
		specs.Gone(ctx, network)
	})
})

// newVM returns a VM on the Cloud "memory".
func newVM(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	return testkit.VM(namespace, name, append(change, func(vm *pcapi.VM) {
		vm.Spec.CloudRef = &pcapi.CloudReference{Name: "memory"}
	})...)
}
