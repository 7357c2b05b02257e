package behaviour_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// createNetwork creates a Network on the cloud of the fixture.
func (f *fixture) createNetwork(name string, change ...func(*pcapi.Network)) *pcapi.Network {
	f.t.Helper()
	net := testkit.Network(f.namespace, name, change...)
	if net.Spec.CloudRef == nil {
		net.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name}
	}
	f.t.Expect(env.Client.Create(f.t.Context(), net)).To(Succeed())
	return net
}

// readyNetwork creates a Network and returns it as it is once it is ready.
func (f *fixture) readyNetwork(name string, change ...func(*pcapi.Network)) *pcapi.Network {
	f.t.Helper()
	return waitNetworkReady(f.t, f.createNetwork(name, change...))
}

func waitNetworkReady(t *T, net *pcapi.Network) *pcapi.Network {
	t.Helper()
	t.Eventually(latest(net)).Should(testkit.BeReady())
	return get(t, net)
}

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

// changeNetwork changes a network in the cloud, as another client does.
func (f *fixture) changeNetwork(net *pcapi.Network, change func(*mockcloud.Network)) {
	f.t.Helper()
	n, err := f.networkOf(net)()
	f.t.Expect(err).NotTo(HaveOccurred())
	change(&n)
	_, err = f.PutNetwork(n)
	f.t.Expect(err).NotTo(HaveOccurred())
}

// waitForNetworkPolls waits until the networks of the cloud were listed n times more.
func (f *fixture) waitForNetworkPolls(n int) {
	f.t.Helper()
	before := f.CountCalls("GET", "/networks")
	f.t.Eventually(func() int { return f.CountCalls("GET", "/networks") - before }).
		Should(BeNumerically(">=", n), "the networks are listed")
}

func gateway(address string) func(*pcapi.Network) {
	return func(net *pcapi.Network) { net.Spec.Gateway = address }
}

const (
	createdNetwork = mockcloud.OpCreateNetwork
	deletedNetwork = mockcloud.OpDeleteNetwork
)

func TestNetwork(t *testing.T) { networkCases.run(t) }

var networkCases = cases{
	"a Network is created: the network has a unique name and costs one listing a poll": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		first, second := f.readyNetwork("first"), f.readyNetwork("second")
		t.Expect(first).To(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "InSync"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.Cloud", f.object.Name),
			HaveField("Status.AttachedVMs", BeEquivalentTo(0)),
		))
		t.Expect(f.networkOf(first)()).To(SatisfyAll(
			HaveField("CIDR", "192.168.0.0/16"), HaveField("Gateway", "192.168.0.1"),
			HaveField("Name", MatchRegexp(`^%s-first-[0-9a-f]{12}$`, f.namespace)),
		))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork, createdNetwork}))

		f.waitForNetworkPolls(2)
		began := time.Now()
		f.ResetCalls()
		f.waitForNetworkPolls(3)
		took := int(time.Since(began)/testkit.PollInterval) + 2
		t.Expect(f.CountCalls("GET", "/networks")).To(BeNumerically("<=", took), "one listing serves both")
		t.Expect(f.CountCalls("", "/networks/{id}")).To(BeZero())
		t.Expect(get(t, first).ResourceVersion).To(Equal(first.ResourceVersion))
		t.Expect(get(t, second).ResourceVersion).To(Equal(second.ResourceVersion))
	},

	"kubectl delete returns: the network is gone and each event was recorded once": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		kubectl(t, "", "delete", "network", "net", "--namespace", f.namespace)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork, deletedNetwork}))
		t.Expect(f.Networks()).To(BeEmpty())
		t.Eventually(eventReasons(net)).Should(Equal([]string{"Created", "Deleted"}))
	},

	"the cloud prohibits the name: the Network stalls and can be deleted in an outage": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedNames: []string{"*-forbidden-*"}}})
		net := f.createNetwork("forbidden")
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "is prohibited"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
			HaveField("Finalizers", BeEmpty()),
		))
		f.waitForPolls(2)
		t.Expect(f.CountCalls("POST", "/networks")).To(Equal(1), "a rejected create is not sent again at once")
		f.SetUnavailable(true)
		deleteObject(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Expect(f.effects()).To(BeEmpty())
	},

	"the cloud rejects the create: the Network stalls with the cloud's message until it is corrected": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		refusal := f.addFault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/networks"}, Status: 422,
			ContentType: "application/problem+json", Body: `{"code":"invalid","title":"no","status":422,"detail":"this range is reserved"}`,
		})
		net := f.createNetwork("net")
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "this range is reserved"))
		t.Expect(f.RemoveFault(refusal)).To(Succeed())
		edit(t, net, func(net *pcapi.Network) { net.Spec.CIDR, net.Spec.Gateway = "10.1.0.0/16", "10.1.0.1" })
		net = waitNetworkReady(t, net)
		t.Expect(f.networkOf(net)()).To(HaveField("CIDR", "10.1.0.0/16"))
	},

	"the create took effect and answers that the name is taken: the network is adopted": func(t *T) {
		f := newFixture(t, without(mockcloud.Idempotency))
		f.addFault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1, Count: 1}, Answer: mockcloud.After, Status: 409,
			ContentType: "application/problem+json", Body: `{"code":"nameTaken","title":"taken","status":409}`,
		})
		net := f.readyNetwork("net")
		t.Expect(net).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Adopted"))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	},

	"the cloud has no networks: the Network stalls and no call is sent": func(t *T) {
		f := newFixture(t, without(mockcloud.Networks))
		net := f.createNetwork("net")
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "has no networks"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
		))
		t.Expect(f.CountCalls("", "/networks")).To(BeZero())
		deleteObject(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
	},

	"the cloud is unreachable: the Network waits and is created when the cloud is back": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.SetUnavailable(true)
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		net := f.createNetwork("net")
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"), HaveField("Finalizers", BeEmpty())))
		f.SetUnavailable(false)
		touch(t, f.object)
		waitNetworkReady(t, net)
	},

	"the cloud is unreachable for a while: a ready Network is not written": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		f.SetUnavailable(true)
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		requestReconcile(t, net)
		f.SetUnavailable(false)
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(testkit.BeReady())
		f.waitForNetworkPolls(2)
		t.Eventually(eventReasons(net)).Should(Equal([]string{"Created"}))
		t.Expect(get(t, net).Status).To(Equal(net.Status))
	},

	"the namespace may not use the Cloud: the Network reports it and nothing is created": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		net := f.createNetwork("net")
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it"))
		t.Expect(f.effects()).To(BeEmpty())
	},

	"the Network is paused: it is not changed or deleted until it is resumed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		annotate(t, net, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		f.changeNetwork(net, func(n *mockcloud.Network) { n.Gateway = "192.168.0.9" })
		deleteObject(t, net)
		f.waitForPolls(2)
		t.Expect(f.networkOf(net)()).To(HaveField("Gateway", "192.168.0.9"))
		annotate(t, net, pcapi.PausedAnnotation, "")
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Expect(f.Networks()).To(BeEmpty())
	},

	"the brake is on: Networks are neither created nor deleted until it is acknowledged": func(t *T) {
		f, _ := fourVMs(t)
		net := f.readyNetwork("net")
		showServers := f.showNoServers()
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished"))
		fresh := f.createNetwork("fresh")
		deleteObject(t, net)
		t.Eventually(latest(fresh)).Should(SatisfyAll(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Braked"), HaveField("Finalizers", BeEmpty())))
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "brake"))
		showServers()
		f.acknowledge()
		waitNetworkReady(t, fresh)
		t.Eventually(isGone(net)).Should(BeTrue())
	},
}

func TestNetworkDrift(t *testing.T) { networkDrift.run(t) }

var networkDrift = cases{
	"the gateway differs: it is set back": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		f.changeNetwork(net, func(n *mockcloud.Network) { n.Gateway = "192.168.0.9" })
		t.Eventually(f.networkOf(net)).Should(HaveField("Gateway", "192.168.0.1"))
		t.Eventually(latest(net)).Should(testkit.BeReady())
		t.Expect(f.CountCalls("PATCH", "/networks/{id}")).To(Equal(1))
	},

	"the gateway is edited: the network follows": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		edited := edit(t, net, gateway("192.168.0.2"))
		t.Eventually(f.networkOf(net)).Should(HaveField("Gateway", "192.168.0.2"))
		t.Eventually(latest(net)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ObservedGeneration", edited.Generation)))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	},

	"an address is written in another form: nothing is changed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net", func(net *pcapi.Network) { net.Spec.CIDR, net.Spec.Gateway = "fd00::/64", "fd00:0:0::1" })
		f.changeNetwork(net, func(n *mockcloud.Network) { n.Gateway, n.CIDR = "fd00::1", "fd00:0::/64" })
		f.waitForNetworkPolls(2)
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
		t.Expect(get(t, net)).To(testkit.BeReady())
	},

	"the range differs: the Network stalls until the range is restored": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		f.changeNetwork(net, func(n *mockcloud.Network) { n.CIDR = "192.168.0.0/24" })
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", "is 192.168.0.0/24 in the cloud, 192.168.0.0/16 in the spec"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
		))
		f.changeNetwork(net, func(n *mockcloud.Network) { n.CIDR = "192.168.0.0/16" })
		t.Eventually(func(ctx context.Context) (*pcapi.Network, error) {
			requestReconcile(t, net)
			return latest(net)(ctx)
		}).WithPolling(200 * time.Millisecond).Should(testkit.BeReady())
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
	},

	"status names a foreign network: it is neither changed nor deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		foreign, err := f.PutNetwork(mockcloud.Network{Name: "foreign", CIDR: "192.168.0.0/16", Gateway: "192.168.0.7"})
		t.Expect(err).NotTo(HaveOccurred())
		net := f.createNetwork("net", func(net *pcapi.Network) { net.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} })
		forged := get(t, net)
		base := forged.DeepCopy()
		forged.Status.NetworkID, forged.Status.Cloud = foreign.ID, f.object.Name
		t.Expect(env.Client.Status().Patch(t.Context(), forged, client.MergeFrom(base))).To(Succeed())
		annotate(t, net, pcapi.PausedAnnotation, "")

		t.Eventually(latest(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", `named "foreign" in the cloud`))
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "so it is not deleted"))
		t.Expect(f.Networks()).To(HaveExactElements(foreign))
		t.Expect(f.DeleteNetwork(foreign.ID)).To(Succeed())
		t.Eventually(func(ctx context.Context) (bool, error) {
			request := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`,
				pcapi.ReconcileRequestedAtAnnotation, requests.Add(1)))
			if err := client.IgnoreNotFound(env.Client.Patch(ctx, net.DeepCopy(), request)); err != nil {
				return false, err
			}
			return isGone(net)(ctx)
		}).WithPolling(200 * time.Millisecond).Should(BeTrue())
	},

	"the network is deleted in the cloud: the Network is Lost and not created again": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		t.Expect(f.DeleteNetwork(net.Status.NetworkID)).To(Succeed())
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Lost", "it is not created again"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Lost"),
			HaveField("Status.NetworkID", net.Status.NetworkID),
		))
		waiting := f.createVM("web", onNetwork("net"))
		t.Eventually(latest(waiting)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", `Network "net" is lost`))
		t.Expect(f.CountCalls("POST", "/networks")).To(Equal(1))
		deleteObject(t, waiting)
		deleteObject(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
	},

	"status.networkId is changed: the API server refuses it": refusedNetworkID("another"),
	"status.networkId is removed: the API server refuses it": refusedNetworkID(""),
}

func refusedNetworkID(id string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		edited := f.readyNetwork("net")
		base := edited.DeepCopy()
		edited.Status.NetworkID = id
		err := env.Client.Status().Patch(t.Context(), edited, client.MergeFrom(base))
		t.Expect(err).To(MatchError(ContainSubstring("status.networkId cannot be changed once it is set")))
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

// networkOnce returns a case of a create of a network whose answer is lost: there is one network.
func networkOnce(on mockcloud.Options, fault mockcloud.Fault) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		fault = losing(fault, on)
		fault.Match.Path = "/networks"
		f.addFault(fault)
		net := f.readyNetwork("net")
		t.Expect(f.Networks()).To(HaveExactElements(HaveField("ID", net.Status.NetworkID)))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	}
}

// lateNetwork returns a case of the effects when the first request for a network
// takes effect after the second one.
func lateNetwork(on mockcloud.Options, effects ...mockcloud.Op) func(*T) {
	return func(t *T) {
		f := newFixture(t, on)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1}, Hold: true})
		net := f.readyNetwork("net")
		t.Expect(f.ReleaseFault(held)).To(Succeed())
		t.Eventually(f.effects).Should(Equal(effects))
		f.waitForNetworkPolls(2)
		t.Expect(f.effects()).To(Equal(effects))
		t.Expect(f.Networks()).To(HaveLen(1))
		t.Expect(waitNetworkReady(t, net).Status.NetworkID).To(Equal(net.Status.NetworkID))
	}
}

// unprotected is a cloud on which a second create creates a second network.
var unprotected = without(mockcloud.Idempotency, mockcloud.UniqueNames)

func TestCreateNetworkExactlyOnce(t *testing.T) { networkCreateCases.run(t) }

var networkCreateCases = func() cases {
	all := cases{}
	for on, options := range map[string]mockcloud.Options{
		"with idempotency keys and unique names": {}, "with unique names": without(mockcloud.Idempotency), "with idempotency keys": without(mockcloud.UniqueNames), "with neither": unprotected,
	} {
		for _, answer := range []string{"reset", "a failure", "truncated", "of another server"} {
			all["a cloud "+on+": the answer is "+answer] = networkOnce(options, lostAnswers[answer])
		}
		all["a cloud "+on+": the request is lost"] = networkOnce(options, mockcloud.Fault{Reset: true})
	}
	all["the first request takes effect after the second: its key keeps one network"] = lateNetwork(without(mockcloud.UniqueNames), createdNetwork)
	all["the first request takes effect after the second: its name keeps one network"] = lateNetwork(without(mockcloud.Idempotency), createdNetwork)

	all["the first request takes effect after the second without keys and unique names: the second of two networks is removed"] = func(t *T) {
		f := newFixture(t, unprotected)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1}, Hold: true})
		net := f.readyNetwork("net")
		t.Expect(net).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "", "two networks may exist for a while"))
		t.Expect(f.ReleaseFault(held)).To(Succeed())
		t.Eventually(f.effects).Should(Equal([]mockcloud.Op{createdNetwork, createdNetwork, deletedNetwork}))
		t.Expect(f.Networks()).To(HaveExactElements(HaveField("ID", net.Status.NetworkID)))
		waitNetworkReady(t, net)
	}

	all["the gateway was edited meanwhile: the network follows the edit"] = func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		fault := losing(lostAnswers["a failure"], mockcloud.Options{})
		fault.Match.Path = "/networks"
		f.addFault(fault)
		net := f.createNetwork("net")
		t.Eventually(func() int { return f.CountCalls("POST", "/networks") }).Should(BeNumerically(">", 0))
		edit(t, net, gateway("192.168.0.5"))
		net = waitNetworkReady(t, net)
		t.Eventually(f.networkOf(net)).Should(HaveField("Gateway", "192.168.0.5"))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	}

	all["the object is deleted before the network is found: the network is deleted"] = func(t *T) {
		f := newFixture(t, mockcloud.Options{}, settlingLate)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks"}, Hold: true})
		net := f.createNetwork("net")
		t.Expect(f.WaitHeld(t.Context(), held, 1)).To(Succeed())
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested"))
		t.Expect(f.RemoveFault(held)).To(Succeed())
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Expect(f.Networks()).To(BeEmpty())
	}
	return all
}()

func TestInvalidNetworkIsRefused(t *testing.T) { refused("Network", invalidNetworks).run(t) }

var invalidNetworks = map[string]refusal{
	"cidr is missing":                         {`{gateway: 10.0.0.1}`, "spec.cidr: Required value"},
	"gateway is missing":                      {`{cidr: 10.0.0.0/8}`, "spec.gateway: Required value"},
	"cidr has no prefix":                      {`{cidr: 10.0.0.0, gateway: 10.0.0.1}`, "cidr must be a range such as 192.168.0.0/16"},
	"cidr has address bits behind the prefix": {`{cidr: 10.0.0.1/8, gateway: 10.0.0.1}`, "without address bits behind the prefix"},
	"gateway is no IP address":                {`{cidr: 10.0.0.0/8, gateway: 10.0.0.256}`, "gateway must be an IP address such as 192.168.0.1"},
	"gateway is outside cidr":                 {`{cidr: 10.0.0.0/24, gateway: 10.0.1.1}`, "gateway must be an address inside cidr"},
	"gateway is of the other family":          {`{cidr: 10.0.0.0/24, gateway: "fd00::1"}`, "gateway must be an address inside cidr"},
	"the spec has an unknown field":           {`{cidr: 10.0.0.0/8, gateway: 10.0.0.1, vlan: 4}`, `unknown field "spec.vlan"`},
	"the spec is empty":                       {`{}`, "spec.cidr: Required value"},
	"import has no name":                      {`{import: {}}`, "spec.import.name: Required value"},
	"import has an empty name":                {`{import: {name: ""}}`, "spec.import.name: Invalid value"},
	"import with cidr":                        {`{import: {name: shared}, cidr: 10.0.0.0/8}`, "cidr and gateway of an imported network are those that it has in the cloud"},
	"import with gateway":                     {`{import: {name: shared}, gateway: 10.0.0.1}`, "cidr and gateway of an imported network are those that it has in the cloud"},
}

func TestNetworkManifests(t *testing.T) { networkManifests.run(t) }

var networkManifests = cases{
	"the documented manifest is applied: kubectl prints range, gateway, id, VMs and reason": func(t *T) {
		namespace := newNamespace(t, nil)
		kubectl(t, `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Network
metadata:
  name: example-network
spec:
  cidr: "192.168.0.0/16"
  gateway: "192.168.0.1"
`, "apply", "--namespace", namespace, "-f", "-")
		net := waitNetworkReady(t, testkit.Network(namespace, "example-network"))
		want := [][]string{
			{"NAME", "CIDR", "GATEWAY", "NETWORK ID", "VMS", "READY", "REASON", "AGE"},
			{"example-network", "192.168.0.0/16", "192.168.0.1", net.Status.NetworkID, "0", "True", "InSync", "<age>"},
		}
		got := table(t, kubectl(t, "", "get", "networks", "--namespace", namespace))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get networks (-want +got)")
		deleteObject(t, net)
		t.Eventually(isGone(net)).Should(BeTrue())
	},

	"cidr is edited: refused":     refusedNetworkEdit("cidr", func(net *pcapi.Network) { net.Spec.CIDR = "192.168.0.0/24" }),
	"cloudRef is edited: refused": refusedNetworkEdit("cloudRef", func(net *pcapi.Network) { net.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} }),

	"the finalizer is removed: it is put back": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		t.Expect(env.Client.Patch(t.Context(), net, strip)).To(Succeed())
		t.Eventually(latest(net)).Should(HaveField("Finalizers", Not(BeEmpty())))
	},
}

// refusedNetworkEdit returns a case of an edit of a field that cannot be changed.
func refusedNetworkEdit(field string, change func(*pcapi.Network)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net")
		_, err := tryEdit(t, net, change)
		t.Expect(err).To(MatchError(ContainSubstring(field + " cannot be changed once the network exists; delete this Network and make another")))
	}
}
