package vsphere_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// imported returns a Network of the tenant's namespace that refers to a port group.
func imported(name, group string, change ...func(*pcapi.Network)) *pcapi.Network {
	return testkit.Network(tenantNamespace, name, append([]func(*pcapi.Network){func(net *pcapi.Network) {
		net.Spec = pcapi.NetworkSpec{Import: &pcapi.NetworkImport{Name: group}}
	}}, change...)...)
}

var _ = Describe("A Network of a vCenter", Serial, func() {
	AfterEach(func() {
		Expect(names()).To(BeEmpty(), "VMs left in the vCenter")
	})

	for _, group := range []string{"VM Network", "DC0_DVPG0"} {
		It("the port group "+group+" is imported: a VM is attached to it, and the deletion leaves it", func(ctx SpecContext) {
			before := vcenter.PortGroups()
			net := imported("net", group)
			Expect(env.Client.Create(ctx, net)).To(Succeed())
			ready := specs.Ready(ctx, net)
			Expect(ready.Status).To(And(
				HaveField("NetworkID", before[group]), HaveField("NameInCloud", group), HaveField("CIDR", BeEmpty()),
				HaveField("Cloud", pcapi.DefaultCloudName)))
			Expect(ready).To(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionTrue, pcapi.ImportedReason))

			vm := testkit.VM(tenantNamespace, "wired", func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} })
			Expect(env.Client.Create(ctx, vm)).To(Succeed())
			specs.Ready(ctx, vm)
			Expect(vcenter.AttachedTo(vcenter.VM("wired"))).To(Equal([]string{before[group]}), "the adapters of the VM")
			Eventually(ctx, specs.Stored(net)).Should(HaveField("Status.AttachedVMs", BeEquivalentTo(1)))

			Expect(env.Client.Delete(ctx, net)).To(Succeed())
			Eventually(ctx, specs.Stored(net)).Should(testkit.HaveCondition(pcapi.DeletingCondition, metav1.ConditionTrue, pcapi.BlockedReason, "wired"))
			specs.Remove(ctx, vm)
			specs.Gone(ctx, net)
			Expect(vcenter.PortGroups()).To(Equal(before))
		})
	}

	It("a port group that does not exist: the Network and its VM wait, and name no other", func(ctx SpecContext) {
		net := imported("net", "no such")
		Expect(env.Client.Create(ctx, net)).To(Succeed())
		Eventually(ctx, specs.Stored(net)).Should(And(
			testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.RejectedReason, `the cloud has no network named "no such"`),
			Not(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.RejectedReason, "VM Network"))))
		vm := testkit.VM(tenantNamespace, "waiting", func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.NetworkNotReadyReason))
		specs.Remove(ctx, vm)
		specs.Remove(ctx, net)
	})

	It("a Network without import: says that a port group must be imported", func(ctx SpecContext) {
		net := testkit.Network(tenantNamespace, "net")
		Expect(env.Client.Create(ctx, net)).To(Succeed())
		Eventually(ctx, specs.Stored(net)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.UnsupportedReason, "spec.import"))
		specs.Remove(ctx, net)
	})

	It("a namespace that may not import: is refused until the Cloud lists it", func(ctx SpecContext) {
		const team = "team-a"
		Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}})).To(Succeed())
		home := newCloud(ctx, "listed", func(c *pcapi.Cloud) {
			c.Spec.Imports, c.Spec.ImportableNetworks = pcapi.ImportPolicyListed, []pcapi.ImportableNetwork{{Name: "VM Network", Namespace: tenantNamespace}}
		})
		Expect(env.Client.Create(ctx, home)).To(Succeed())
		specs.Ready(ctx, home)
		onListed := func(net *pcapi.Network) { net.Spec.CloudRef = &pcapi.CloudReference{Name: "listed"} }
		allowed := imported("allowed", "VM Network", onListed)
		Expect(env.Client.Create(ctx, allowed)).To(Succeed())
		specs.Ready(ctx, allowed)
		refused := imported("refused", "VM Network", onListed, func(net *pcapi.Network) { net.Namespace = team })
		Expect(env.Client.Create(ctx, refused)).To(Succeed())
		Eventually(ctx, specs.Stored(refused)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.RejectedReason, "importableNetworks"))
		specs.Edit(ctx, home, func(c *pcapi.Cloud) {
			c.Spec.ImportableNetworks = append(c.Spec.ImportableNetworks, pcapi.ImportableNetwork{Name: "VM Network", Namespace: team})
		})
		specs.Ready(ctx, refused)
		specs.Remove(ctx, refused)
		specs.Remove(ctx, allowed)
		specs.Remove(ctx, home)
	})
})
