package behaviour_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// on gives a VM an interface on a Network, with static addresses.
func on(network string, addresses ...pcapi.VMAddress) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		if vm.Spec.Network == nil {
			vm.Spec.Network = &pcapi.VMNetwork{}
		}
		vm.Spec.Network.Interfaces = append(vm.Spec.Network.Interfaces, pcapi.VMInterface{
			Name: "on-" + network, NetworkRef: pcapi.NetworkReference{Name: network}, Addresses: addresses,
		})
	}
}

func TestInterfaces(t *testing.T) {
	cases{
		"two interfaces: the VM waits for both Networks, is on both, and neither can be deleted before it": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			front := f.readyNetwork("front", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			vm := f.createVM("web", on("front"), on("back"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady",
				`Network "back" does not exist: create it, or name another in spec.network.interfaces[on-back].networkRef`))
			t.Expect(f.createCalls()).To(BeZero())

			back := f.readyNetwork("back", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.2.0.0/24", "10.2.0.1" })
			interfaces := waitReady(t, vm).Status.Network.Interfaces
			t.Expect(interfaces).To(HaveLen(2))
			for n, cidr := range []string{"10.1.0.0/24", "10.2.0.0/24"} {
				t.Expect(netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(interfaces[n].Addresses[0]))).To(BeTrue(), "address %s of interface %d, on %s", interfaces[n].Addresses[0], n, cidr)
			}
			for _, net := range []*pcapi.Network{front, back} {
				t.Eventually(latest(net)).Should(HaveField("Status.AttachedVMs", int32(1)))
				t.Expect(env.Client.Delete(t.Context(), net)).To(Succeed())
				t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "web"))
			}
			t.Expect(f.Networks()).To(HaveLen(2))
			t.Expect(env.Client.Delete(t.Context(), vm)).To(Succeed())
			t.Eventually(func() []mockcloud.Network { return f.Networks() }).Should(BeEmpty())
		},
		"a static address: the VM has it": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			t.Expect(waitReady(t, f.createVM("web", on("net", "10.1.0.77"))).Status.Network.PrimaryIP4).To(Equal("10.1.0.77"))
		},
		"an address outside the Network: the VM says so, nothing is sent, and it is created once the address is corrected": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			vm := f.createVM("web", on("net", "10.9.0.77"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "AddressInvalid",
				`spec.network.interfaces[on-net].addresses: 10.9.0.77 is not inside the range of Network "net", 10.1.0.0/24: choose another address inside 10.1.0.0/24`))
			t.Expect(f.createCalls()).To(BeZero())
			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.Network.Interfaces[0].Addresses[0] = "10.1.0.77" })
			t.Expect(waitReady(t, vm).Status.Network.PrimaryIP4).To(Equal("10.1.0.77"))
			_, err := tryEdit(t, vm, func(vm *pcapi.VM) { vm.Spec.Network.Interfaces[0].Addresses[0] = "10.1.0.78" })
			t.Expect(err).To(MatchError(ContainSubstring("network cannot be changed once the VM exists")))
		},
		"two VMs with one address: the second waits until the first is gone": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			first := waitReady(t, f.createVM("a", on("net", "10.1.0.77")))
			second := f.createVM("b", on("net", "10.1.0.77"))
			t.Eventually(latest(second)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "AddressInUse", `10.1.0.77 is that of VM "a" on Network "net"`))
			t.Expect(f.serversNamed("b")).To(BeEmpty())
			t.Expect(env.Client.Delete(t.Context(), first)).To(Succeed())
			t.Eventually(isGone(first)).Should(BeTrue())
			requestReconcile(t, second)
			t.Expect(waitReady(t, second).Status.Network.PrimaryIP4).To(Equal("10.1.0.77"))
		},
		"an address that something else in the cloud has: Rejected, with the cloud's reason": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			net := f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			_, err := f.PutServer(mockcloud.Server{Name: "printer", NetworkID: net.Status.NetworkID, Interfaces: []mockcloud.Interface{{Addresses: []string{"10.1.0.77"}}}})
			t.Expect(err).NotTo(HaveOccurred())
			vm := f.createVM("web", on("net", "10.1.0.77"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", "the address 10.1.0.77 of the network"))
			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.Network.Interfaces[0].Addresses[0] = "10.1.0.78" })
			t.Expect(waitReady(t, vm).Status.Network.PrimaryIP4).To(Equal("10.1.0.78"))
		},
		"the cloud has one interface and no static addresses: Unsupported, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Interfaces: false, mockcloud.StaticAddresses: false}})
			f.readyNetwork("net")
			two, addressed := f.createVM("two", on("net"), on("other")), f.createVM("addressed", on("net", "10.1.0.77"))
			t.Eventually(latest(two)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "a second interface in network.interfaces"))
			t.Eventually(latest(addressed)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "addresses in network.interfaces"))
			t.Expect(f.createCalls()).To(BeZero())
			waitReady(t, f.createVM("one", on("net")))
		},
		"the interfaces of a group: its members are on both Networks, and replaced when one changes": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			for name, cidr := range map[string]string{"front": "10.1.0.0/24", "back": "10.2.0.0/24", "new": "10.3.0.0/24"} {
				f.readyNetwork(name, func(n *pcapi.Network) {
					n.Spec.CIDR, n.Spec.Gateway = cidr, netip.MustParsePrefix(cidr).Addr().Next().String()
				})
			}
			attach := func(networks ...string) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) {
					g.Spec.Network = &pcapi.VmGroupNetwork{}
					for _, name := range networks {
						g.Spec.Network.Interfaces = append(g.Spec.Network.Interfaces, pcapi.VmGroupInterface{Name: "on-" + name, NetworkRef: pcapi.NetworkReference{Name: name}})
					}
				}
			}
			g, members := f.readyGroup("pool", 2, attach("front", "back"))
			t.Expect(members).To(HaveEach(HaveField("Status.Network.Interfaces", HaveLen(2))))
			edit(t, g, attach("front", "new"))
			t.Eventually(membersOf(g)).Should(And(HaveLen(2), HaveEach(WithTransform(pointer, And(
				testkit.BeReady(), HaveField("Status.Network.Interfaces", HaveExactElements(
					HaveField("Addresses", HaveEach(HavePrefix("10.1."))), HaveField("Addresses", HaveEach(HavePrefix("10.3."))))))))))
		},
	}.run(t)
}
