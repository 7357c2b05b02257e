package backend_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/testkit"
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
		vm := newVM("web", func(vm *pcapi.VM) { vm.Spec.CPU = new(int32(2)) })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, stored(vm)).Should(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionFalse, pcapi.CreatingReason))
		memory.SetSlow(false)
		memory.Finish()
		id := ready(ctx, vm).Status.VMID
		Expect(memory.Server(id)).To(And(HaveField("Name", "web"), HaveField("CPU", 2), HaveField("State", cloud.StateActive)))

		edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.CPU = new(int32(4)) })
		Eventually(func() int { return memory.Server(id).CPU }).Should(Equal(4))
		edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(func() cloud.State { return memory.Server(id).State }).Should(Equal(cloud.StateStopped))
		Eventually(ctx, stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		Expect(memory.ServerIDs()).To(ConsistOf(id))

		remove(ctx, vm)
	})

	It("a VM whose create's answer is lost: gets one server", func(ctx SpecContext) {
		memory.Fail(fake.CreateServer, errLost, true)
		vm := newVM("lost")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		id := ready(ctx, vm).Status.VMID
		Expect(memory.ServerIDs()).To(ConsistOf(id))
		remove(ctx, vm)
	})

	It("a Network with a VM: is created, changes its gateway and is deleted after the VM", func(ctx SpecContext) {
		network := testkit.Network(namespace, "net", func(n *pcapi.Network) {
			n.Spec.CloudRef = &pcapi.CloudReference{Name: "memory"}
		})
		Expect(env.Client.Create(ctx, network)).To(Succeed())
		id := ready(ctx, network).Status.NetworkID
		Expect(memory.Networks()).To(ConsistOf(And(HaveField("ID", id), HaveField("Gateway", "192.168.0.1"))))
		vm := newVM("wired", func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: network.Name} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Expect(memory.Server(ready(ctx, vm).Status.VMID).NetworkID).To(Equal(id))

		edit(ctx, network, func(n *pcapi.Network) { n.Spec.Gateway = "192.168.0.2" })
		Eventually(memory.Networks).Should(ConsistOf(HaveField("Gateway", "192.168.0.2")))

		Expect(env.Client.Delete(ctx, network)).To(Succeed())
		Eventually(ctx, stored(network)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, ""))
		remove(ctx, vm)
		gone(ctx, network)
	})
})

// newVM returns a VM on the Cloud "memory".
func newVM(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	return testkit.VM(namespace, name, append(change, func(vm *pcapi.VM) {
		vm.Spec.CloudRef = &pcapi.CloudReference{Name: "memory"}
	})...)
}

// ready waits until the object is ready, and returns it.
func ready[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	Eventually(ctx, stored(object)).Should(testkit.BeReady())
	current, err := stored(object)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return current
}

// remove deletes the object and waits until it is gone.
func remove(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(env.Client.Delete(ctx, object)).To(Succeed())
	gone(ctx, object)
}

func gone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) bool {
		_, err := stored(object)(ctx)
		return apierrors.IsNotFound(err)
	}).Should(BeTrue())
}
