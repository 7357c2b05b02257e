package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

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
	"dnsNameservers is empty":                 {`{cidr: 10.0.0.0/8, gateway: 10.0.0.1, dnsNameservers: []}`, "spec.dnsNameservers: Invalid value: 0: spec.dnsNameservers in body should have at least 1 items"},
	"router has no external network":          {`{cidr: 10.0.0.0/8, gateway: 10.0.0.1, router: {}}`, "spec.router.externalNetwork: Required value"},
	"the spec is empty":                       {`{}`, "spec.cidr: Required value"},
	"import has no name":                      {`{import: {}}`, "spec.import.name: Required value"},
	"import has an empty name":                {`{import: {name: ""}}`, "spec.import.name: Invalid value"},
	"import with cidr":                        {`{import: {name: shared}, cidr: 10.0.0.0/8}`, "cidr and gateway of an imported network are those that it has in the cloud"},
	"import with gateway":                     {`{import: {name: shared}, gateway: 10.0.0.1}`, "cidr and gateway of an imported network are those that it has in the cloud"},
}
