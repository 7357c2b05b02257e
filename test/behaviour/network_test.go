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

	"DNS servers and a router: the network gets them, also later and after a change in the cloud": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		net := f.readyNetwork("net", func(net *pcapi.Network) { net.Spec.DNSNameservers = []pcapi.NetworkAddress{"192.168.0.53"} })
		t.Expect(f.networkOf(net)()).To(And(HaveField("DNSNameservers", Equal([]string{"192.168.0.53"})), HaveField("Router", BeNil())))
		t.Expect(net.Status.DNSNameservers).To(Equal([]string{"192.168.0.53"}))
		edit(t, net, func(net *pcapi.Network) { net.Spec.Router = &pcapi.NetworkRouter{ExternalNetwork: "ext-net"} })
		t.Eventually(latest(net)).Should(HaveField("Status.Router", Equal(&pcapi.NetworkRouterStatus{ExternalNetwork: "ext-net"})))
		edit(t, net, func(net *pcapi.Network) { net.Spec.Router.ExternalNetwork = "nowhere" })
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", `no external network is named "nowhere"; there are: ext-net`))
		edit(t, net, func(net *pcapi.Network) { net.Spec.Router.ExternalNetwork = "ext-net" })
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "InSync"))

		found, err := f.networkOf(net)()
		t.Expect(err).NotTo(HaveOccurred())
		found.DNSNameservers, found.Router = []string{"192.168.9.9"}, nil
		_, err = f.PutNetwork(found)
		t.Expect(err).NotTo(HaveOccurred())
		t.Eventually(f.networkOf(net)).Should(And(
			HaveField("DNSNameservers", Equal([]string{"192.168.0.53"})), HaveField("Router", Equal(&mockcloud.Router{ExternalNetwork: "ext-net"})),
		))
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
