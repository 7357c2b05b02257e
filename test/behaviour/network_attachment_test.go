package behaviour_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// onNetwork makes a VM refer to a Network.
func onNetwork(network string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: network} }
}

// networkOf returns a function that reads the network of a Network from the cloud's state.
func (f *fixture) networkOf(net *pcapi.Network) func() (mockcloud.Network, error) {
	return func() (mockcloud.Network, error) {
		for _, n := range f.Networks() {
			if n.ID == net.Status.NetworkID {
				return n, nil
			}
		}
		return mockcloud.Network{}, fmt.Errorf("the cloud has no network %s", net.Status.NetworkID)
	}
}

func TestVMOnNetwork(t *testing.T) { attachmentCases.run(t) }

var attachmentCases = cases{
	"the Network does not exist yet: the VM waits and is created on it once it is ready": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", onNetwork("net"))
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", `Network "net" does not exist`),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "NetworkNotReady"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
			HaveField("Finalizers", BeEmpty()),
		))
		t.Expect(f.CountCalls("", "/check/{name}")).To(BeZero())

		paused := f.createNetwork("net", func(net *pcapi.Network) { net.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", "is not made yet"))
		annotate(t, paused, pcapi.PausedAnnotation, "")
		net := waitNetworkReady(t, paused)
		vm = waitReady(t, vm)
		t.Expect(f.serverOf(vm)()).To(HaveField("NetworkID", net.Status.NetworkID))
		t.Eventually(latest(net)).Should(HaveField("Status.AttachedVMs", BeEquivalentTo(1)))
	},

	"the Network is on another Cloud: the VM stalls until it names one on its own Cloud": func(t *T) {
		f, other := newFixture(t, mockcloud.Options{}), newFixture(t, mockcloud.Options{})
		f.readyNetwork("far", func(net *pcapi.Network) { net.Spec.CloudRef = &pcapi.CloudReference{Name: other.object.Name} })
		f.readyNetwork("near")
		vm := f.createVM("web", onNetwork("far"))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "NetworkNotReady",
			fmt.Sprintf(`is on Cloud %q and this VM on Cloud %q`, other.object.Name, f.object.Name)))
		t.Expect(f.createCalls()).To(BeZero())
		edit(t, vm, onNetwork("near"))
		waitReady(t, vm)
	},

	"the cloud has no networks: the VM stalls until networkRef is removed": func(t *T) {
		f := newFixture(t, without(mockcloud.Networks))
		vm := f.createVM("web", onNetwork("net"))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set networkRef"))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.NetworkRef = nil })
		waitReady(t, vm)
	},

	"VMs are on the Network: its deletion is blocked until the last of them is gone": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		var vms []*pcapi.VM
		for n := range 5 {
			vms = append(vms, f.createVM(fmt.Sprintf("web-%d", n), onNetwork("net")))
		}
		for _, vm := range vms {
			waitReady(t, vm)
		}
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "VMs on this network: 5 (web-0, web-1, web-2, …)"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Blocked"),
			HaveField("Status.AttachedVMs", BeEquivalentTo(5)),
		))
		late := f.createVM("late", onNetwork("net"))
		t.Eventually(latest(late)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", "is being deleted"))
		for _, vm := range vms[1:] {
			deleteObject(t, vm)
		}
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "VMs on this network: 1 (web-0)"))
		t.Expect(f.networkOf(net)()).To(HaveField("ID", net.Status.NetworkID))
		deleteObject(t, vms[0])
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Expect(f.Networks()).To(BeEmpty())
		t.Expect(f.effects()[len(f.effects())-1]).To(Equal(deletedNetwork))

		t.Log("a VM that waits is created on the next network of the name")
		fresh := f.readyNetwork("net")
		t.Expect(f.serverOf(waitReady(t, late))()).To(HaveField("NetworkID", fresh.Status.NetworkID))
	},

	"the create is rejected and the Network deleted: the VM is created on the next Network of the name": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		refusal := f.addFault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Status: 422,
			ContentType: "application/problem+json", Body: `{"code":"invalid","title":"no","status":422,"detail":"no such network"}`,
		})
		vm := f.createVM("web", onNetwork("net"))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "no such network"))
		t.Expect(get(t, vm).Finalizers).NotTo(BeEmpty(), "the claim counts")
		deleteObject(t, net)
		t.Eventually(isGone(net)).Should(BeTrue(), "the VM gives up its claim, which had no effect")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady"))
		t.Expect(f.RemoveFault(refusal)).To(Succeed())
		fresh := f.readyNetwork("net")
		t.Expect(f.serverOf(waitReady(t, vm))()).To(HaveField("NetworkID", fresh.Status.NetworkID))
	},

	"a foreign server is on the network: the deletion is blocked until the server is gone": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		foreign, err := f.PutServer(mockcloud.Server{Name: "foreign", NetworkID: net.Status.NetworkID})
		t.Expect(err).NotTo(HaveOccurred())
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "1 servers are attached", "detach in the cloud"))
		t.Expect(f.DeleteServer(foreign.ID)).To(Succeed())
		requestReconcile(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
	},
}
