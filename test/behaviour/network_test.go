package behaviour_test

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// network makes a Network on the site's cloud.
func (s *site) network(ctx SpecContext, name string, change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	GinkgoHelper()
	net := testkit.Network(s.namespace, name, change...)
	if net.Spec.CloudRef == nil {
		net.Spec.CloudRef = &v1alpha1.CloudReference{Name: s.object.Name}
	}
	Expect(env.Client.Create(ctx, net)).To(Succeed())
	return net
}

// wired makes a Network and returns it as it is once it is ready.
func (s *site) wired(ctx SpecContext, name string, change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	GinkgoHelper()
	return wired(ctx, s.network(ctx, name, change...))
}

func wired(ctx SpecContext, net *v1alpha1.Network) *v1alpha1.Network {
	GinkgoHelper()
	Eventually(ctx, now(net)).Should(testkit.BeReady())
	return read(ctx, net)
}

// on has a VM refer to a Network.
func on(network string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) { vm.Spec.NetworkRef = &v1alpha1.NetworkReference{Name: network} }
}

// behind reads an object's network from the cloud's own books.
func (s *site) behind(net *v1alpha1.Network) func() (mockcloud.Network, error) {
	return func() (mockcloud.Network, error) {
		for _, n := range s.Networks() {
			if n.ID == net.Status.NetworkID {
				return n, nil
			}
		}
		return mockcloud.Network{}, fmt.Errorf("the cloud has no network %s", net.Status.NetworkID)
	}
}

// alter changes a network behind the operator's back.
func (s *site) alter(net *v1alpha1.Network, change func(*mockcloud.Network)) {
	GinkgoHelper()
	n, err := s.behind(net)()
	Expect(err).NotTo(HaveOccurred())
	change(&n)
	_, err = s.PutNetwork(n)
	Expect(err).NotTo(HaveOccurred())
}

// networkPolls waits until the cloud's networks were listed n times more.
func (s *site) networkPolls(ctx SpecContext, n int) {
	GinkgoHelper()
	before := s.CountCalls("GET", "/networks")
	Eventually(ctx, func() int { return s.CountCalls("GET", "/networks") - before }).
		Should(BeNumerically(">=", n), "the networks are looked at")
}

func gateway(address string) func(*v1alpha1.Network) {
	return func(net *v1alpha1.Network) { net.Spec.Gateway = address }
}

const (
	createdNetwork = mockcloud.OpCreateNetwork
	deletedNetwork = mockcloud.OpDeleteNetwork
)

var newNetworks = theme{"a Network", cases{
	"is made in the cloud as the spec says, under a name that is its alone, and rests at one call a poll": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		first, second := s.wired(ctx, "first"), s.wired(ctx, "second")
		Expect(first).To(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "InSync"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			HaveField("Status.Cloud", s.object.Name),
			HaveField("Status.AttachedVMs", BeEquivalentTo(0)),
		))
		Expect(s.behind(first)()).To(SatisfyAll(
			HaveField("CIDR", "192.168.0.0/16"), HaveField("Gateway", "192.168.0.1"),
			HaveField("Name", MatchRegexp(`^%s-first-[0-9a-f]{12}$`, s.namespace)),
		))
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork, createdNetwork}))

		s.networkPolls(ctx, 2)
		began := time.Now()
		s.ResetCalls()
		s.networkPolls(ctx, 3)
		took := int(time.Since(began)/testkit.PollInterval) + 2
		Expect(s.CountCalls("GET", "/networks")).To(BeNumerically("<=", took), "one listing serves both")
		Expect(s.CountCalls("", "/networks/{id}")).To(BeZero())
		Expect(read(ctx, first).ResourceVersion).To(Equal(first.ResourceVersion))
		Expect(read(ctx, second).ResourceVersion).To(Equal(second.ResourceVersion))
	},

	"is gone from the cloud before its object is, and tells its story once": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		kubectl(ctx, "", "delete", "network", "net", "--namespace", s.namespace)
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork, deletedNetwork}))
		Expect(s.Networks()).To(BeEmpty())
		Eventually(ctx, story(net)).Should(Equal([]string{"Created", "Deleted"}))
	},

	"whose name the cloud prohibits stalls, and can be deleted at any time": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedNames: []string{"*-forbidden-*"}}})
		net := s.network(ctx, "forbidden")
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "is prohibited"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
			HaveField("Finalizers", BeEmpty()),
		))
		s.polls(ctx, 2)
		Expect(s.CountCalls("POST", "/networks")).To(Equal(1), "what is refused is not asked for again at once")
		s.SetUnavailable(true)
		remove(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue())
		Expect(s.effects()).To(BeEmpty())
	},

	"that the cloud refuses stalls with the cloud's words, and goes on once it is corrected": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		refusal := s.fault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/networks"}, Status: 422,
			ContentType: "application/problem+json", Body: `{"code":"invalid","title":"no","status":422,"detail":"this range is reserved"}`,
		})
		net := s.network(ctx, "net")
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "this range is reserved"))
		Expect(s.RemoveFault(refusal)).To(Succeed())
		edit(ctx, net, func(net *v1alpha1.Network) { net.Spec.CIDR, net.Spec.Gateway = "10.1.0.0/16", "10.1.0.1" })
		net = wired(ctx, net)
		Expect(s.behind(net)()).To(HaveField("CIDR", "10.1.0.0/16"))
	},

	"is not made twice where the cloud says that its name is taken: an earlier create is looked for": func(ctx SpecContext) {
		s := newSite(ctx, without(mockcloud.Idempotency))
		s.fault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1, Count: 1}, Answer: mockcloud.After, Status: 409,
			ContentType: "application/problem+json", Body: `{"code":"nameTaken","title":"taken","status":409}`,
		})
		net := s.wired(ctx, "net")
		Expect(net).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "Adopted"))
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	},

	"stalls on a cloud that has no networks, and sends nothing": func(ctx SpecContext) {
		s := newSite(ctx, without(mockcloud.Networks))
		net := s.network(ctx, "net")
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "has no networks"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
		))
		Expect(s.CountCalls("", "/networks")).To(BeZero())
		remove(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue())
	},

	"waits while the cloud is away, and is made when it is back": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		s.SetUnavailable(true)
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		net := s.network(ctx, "net")
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"), HaveField("Finalizers", BeEmpty())))
		s.SetUnavailable(false)
		nudge(ctx, s.object)
		wired(ctx, net)
	},

	"says nothing of an outage while it is well: that is the Cloud's to tell": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		s.SetUnavailable(true)
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		poke(ctx, net)
		s.SetUnavailable(false)
		nudge(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(testkit.BeReady())
		s.networkPolls(ctx, 2)
		Expect(story(net)(ctx)).To(Equal([]string{"Created"}))
		Expect(read(ctx, net).Status).To(Equal(net.Status))
	},

	"may not use a Cloud that its namespace may not, and learns nothing about it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		net := s.network(ctx, "net")
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable", "may not use Cloud"))
		Expect(s.effects()).To(BeEmpty())
	},

	"is left alone while it is paused": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		annotate(ctx, net, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		s.alter(net, func(n *mockcloud.Network) { n.Gateway = "192.168.0.9" })
		remove(ctx, net)
		s.polls(ctx, 2)
		Expect(s.behind(net)()).To(HaveField("Gateway", "192.168.0.9"))
		annotate(ctx, net, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, gone(net)).Should(BeTrue())
		Expect(s.Networks()).To(BeEmpty())
	},

	"is not made or deleted while the Cloud's brake is on": func(ctx SpecContext) {
		s, _ := herd(ctx)
		net := s.wired(ctx, "net")
		empty := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "GET", Path: "/servers"}, List: &mockcloud.ListFault{Empty: true}})
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished"))
		fresh := s.network(ctx, "fresh")
		remove(ctx, net)
		Eventually(ctx, now(fresh)).Should(SatisfyAll(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Braked"), HaveField("Finalizers", BeEmpty())))
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "brake"))
		Expect(s.RemoveFault(empty)).To(Succeed())
		acknowledge(ctx, s)
		wired(ctx, fresh)
		Eventually(ctx, gone(net)).Should(BeTrue())
	},
}}

var networkDrift = theme{"a network that differs from its Network", cases{
	"is set back to its gateway": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		s.alter(net, func(n *mockcloud.Network) { n.Gateway = "192.168.0.9" })
		Eventually(ctx, s.behind(net)).Should(HaveField("Gateway", "192.168.0.1"))
		Eventually(ctx, now(net)).Should(testkit.BeReady())
		Expect(s.CountCalls("PATCH", "/networks/{id}")).To(Equal(1))
	},

	"follows an edit of the gateway": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		edited := edit(ctx, net, gateway("192.168.0.2"))
		Eventually(ctx, s.behind(net)).Should(HaveField("Gateway", "192.168.0.2"))
		Eventually(ctx, now(net)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ObservedGeneration", edited.Generation)))
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	},

	"is as it should be if only its address is written in another way": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net", func(net *v1alpha1.Network) { net.Spec.CIDR, net.Spec.Gateway = "fd00::/64", "fd00:0:0::1" })
		s.alter(net, func(n *mockcloud.Network) { n.Gateway, n.CIDR = "fd00::1", "fd00:0::/64" })
		s.networkPolls(ctx, 2)
		Expect(s.CountCalls("PATCH", "")).To(BeZero())
		Expect(read(ctx, net)).To(testkit.BeReady())
	},

	"stalls the Network by its range, which cannot be changed, until it is as it was": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		s.alter(net, func(n *mockcloud.Network) { n.CIDR = "192.168.0.0/24" })
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", "is 192.168.0.0/24 in the cloud, 192.168.0.0/16 in the spec"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
		))
		s.alter(net, func(n *mockcloud.Network) { n.CIDR = "192.168.0.0/16" })
		Eventually(ctx, func(ctx SpecContext) (*v1alpha1.Network, error) {
			poke(ctx, net)
			return now(net)(ctx)
		}).WithPolling(200 * time.Millisecond).Should(testkit.BeReady())
		Expect(s.CountCalls("PATCH", "")).To(BeZero())
	},

	"is not touched if it bears another's name, whatever a status says": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		foreign, err := s.PutNetwork(mockcloud.Network{Name: "somebody-elses", CIDR: "192.168.0.0/16", Gateway: "192.168.0.7"})
		Expect(err).NotTo(HaveOccurred())
		net := s.network(ctx, "net", func(net *v1alpha1.Network) { net.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"} })
		forged := read(ctx, net)
		base := forged.DeepCopy()
		forged.Status.NetworkID, forged.Status.Cloud = foreign.ID, s.object.Name
		Expect(env.Client.Status().Patch(ctx, forged, client.MergeFrom(base))).To(Succeed())
		annotate(ctx, net, v1alpha1.PausedAnnotation, "")

		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Drift", `named "somebody-elses" in the cloud`))
		remove(ctx, net)
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "so it is not deleted"))
		Expect(s.Networks()).To(HaveExactElements(foreign))
		Expect(s.DeleteNetwork(foreign.ID)).To(Succeed())
		Eventually(ctx, func(ctx SpecContext) (bool, error) {
			if is, err := gone(net)(ctx); is || err != nil {
				return is, err
			}
			_, err := tryEdit(ctx, net, func(net *v1alpha1.Network) {
				net.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: fmt.Sprint(requests.Add(1))}
			})
			return false, client.IgnoreNotFound(err)
		}).WithPolling(200 * time.Millisecond).Should(BeTrue())
	},

	"leaves its Network Lost when it is gone, and is not made again": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		Expect(s.DeleteNetwork(net.Status.NetworkID)).To(Succeed())
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Lost", "it is not made again"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Lost"),
			HaveField("Status.NetworkID", net.Status.NetworkID),
		))
		waiting := s.create(ctx, "web", on("net"))
		Eventually(ctx, now(waiting)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", `Network "net" is lost`))
		Expect(s.CountCalls("POST", "/networks")).To(Equal(1))
		remove(ctx, waiting)
		remove(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue())
	},

	"cannot be replaced on record by hand": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		fresh := s.wired(ctx, "net")
		base := fresh.DeepCopy()
		for _, id := range []string{"another", ""} {
			fresh.Status.NetworkID = id
			err := env.Client.Status().Patch(ctx, fresh.DeepCopy(), client.MergeFrom(base))
			Expect(err).To(MatchError(ContainSubstring("status.networkId cannot be changed once it is set")))
		}
	},
}}

var attachments = theme{"a VM that refers to a Network", cases{
	"waits for it, is woken when it is there, and is made on it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.create(ctx, "web", on("net"))
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", `Network "net" does not exist`),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "NetworkNotReady"),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
			HaveField("Finalizers", BeEmpty()),
		))
		Expect(s.CountCalls("", "/check/{name}")).To(BeZero())

		paused := s.network(ctx, "net", func(net *v1alpha1.Network) { net.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"} })
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", "is not made yet"))
		annotate(ctx, paused, v1alpha1.PausedAnnotation, "")
		net := wired(ctx, paused)
		vm = untilReady(ctx, vm)
		Expect(s.serverOf(vm)()).To(HaveField("NetworkID", net.Status.NetworkID))
		Eventually(ctx, now(net)).Should(HaveField("Status.AttachedVMs", BeEquivalentTo(1)))
	},

	"stalls if it is on another Cloud, and goes on when it names one of its own": func(ctx SpecContext) {
		s, other := newSite(ctx, mockcloud.Options{}), newSite(ctx, mockcloud.Options{})
		s.wired(ctx, "far", func(net *v1alpha1.Network) { net.Spec.CloudRef = &v1alpha1.CloudReference{Name: other.object.Name} })
		s.wired(ctx, "near")
		vm := s.create(ctx, "web", on("far"))
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "NetworkNotReady",
			fmt.Sprintf(`is on Cloud %q and this VM on Cloud %q`, other.object.Name, s.object.Name)))
		Expect(s.posts()).To(BeZero())
		edit(ctx, vm, on("near"))
		untilReady(ctx, vm)
	},

	"stalls on a cloud without networks": func(ctx SpecContext) {
		s := newSite(ctx, without(mockcloud.Networks))
		vm := s.create(ctx, "web", on("net"))
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "cannot set networkRef"))
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.NetworkRef = nil })
		untilReady(ctx, vm)
	},

	"keeps it until the last of them is gone": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		var vms []*v1alpha1.VM
		for n := range 5 {
			vms = append(vms, s.create(ctx, fmt.Sprintf("web-%d", n), on("net")))
		}
		for _, vm := range vms {
			untilReady(ctx, vm)
		}
		remove(ctx, net)
		Eventually(ctx, now(net)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "VMs on this network: 5 (web-0, web-1, web-2, …)"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Blocked"),
			HaveField("Status.AttachedVMs", BeEquivalentTo(5)),
		))
		late := s.create(ctx, "late", on("net"))
		Eventually(ctx, now(late)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady", "is being deleted"))
		for _, vm := range vms[1:] {
			remove(ctx, vm)
		}
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "VMs on this network: 1 (web-0)"))
		Expect(s.behind(net)()).To(HaveField("ID", net.Status.NetworkID))
		remove(ctx, vms[0])
		Eventually(ctx, gone(net)).Should(BeTrue())
		Expect(s.Networks()).To(BeEmpty())
		Expect(s.effects()[len(s.effects())-1]).To(Equal(deletedNetwork))

		By("and a VM that waits is made on the one that takes its place")
		fresh := s.wired(ctx, "net")
		Expect(s.serverOf(untilReady(ctx, late))()).To(HaveField("NetworkID", fresh.Status.NetworkID))
	},

	"is made on the new one if the network went while its create was refused, and both have an end": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		refusal := s.fault(mockcloud.Fault{
			Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Status: 422,
			ContentType: "application/problem+json", Body: `{"code":"invalid","title":"no","status":422,"detail":"no such network"}`,
		})
		vm := s.create(ctx, "web", on("net"))
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "no such network"))
		Expect(read(ctx, vm).Finalizers).NotTo(BeEmpty(), "the claim counts")
		remove(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue(), "the VM gives its claim up, for nothing came of it")
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady"))
		Expect(s.RemoveFault(refusal)).To(Succeed())
		fresh := s.wired(ctx, "net")
		Expect(s.serverOf(untilReady(ctx, vm))()).To(HaveField("NetworkID", fresh.Status.NetworkID))
	},

	"is not the only one: servers that are nobody's here keep the network, too, and the cloud says so": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		foreign, err := s.PutServer(mockcloud.Server{Name: "somebody-elses", NetworkID: net.Status.NetworkID})
		Expect(err).NotTo(HaveOccurred())
		remove(ctx, net)
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "1 servers are attached", "take what is attached off"))
		Expect(s.DeleteServer(foreign.ID)).To(Succeed())
		poke(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue())
	},
}}

// onceNetwork shows that a create of a network whose answer is lost leads to one network.
func onceNetwork(on mockcloud.Options, fault mockcloud.Fault) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, on)
		fault = losing(fault, on)
		fault.Match.Path = "/networks"
		s.fault(fault)
		net := s.wired(ctx, "net")
		Expect(s.Networks()).To(HaveExactElements(HaveField("ID", net.Status.NetworkID)))
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	}
}

// lateNetwork shows what comes of a request that takes effect after the second one.
func lateNetwork(on mockcloud.Options, effects ...mockcloud.Op) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, on)
		held := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1}, Hold: true})
		net := s.wired(ctx, "net")
		Expect(s.ReleaseFault(held)).To(Succeed())
		Eventually(ctx, s.effects).Should(Equal(effects))
		s.networkPolls(ctx, 2)
		Expect(s.effects()).To(Equal(effects))
		Expect(s.Networks()).To(HaveLen(1))
		Expect(wired(ctx, net).Status.NetworkID).To(Equal(net.Status.NetworkID))
	}
}

// unprotected is a cloud on which a second create makes a second network.
var unprotected = without(mockcloud.Idempotency, mockcloud.UniqueNames)

var lostNetworks = theme{"a create of a network whose answer is lost leads to exactly one", func() cases {
	all := cases{}
	for on, options := range map[string]mockcloud.Options{
		"with keys and unique names": {}, "with unique names": without(mockcloud.Idempotency), "with keys": without(mockcloud.UniqueNames), "with neither": unprotected,
	} {
		for _, answer := range []string{"reset", "turned into a failure", "cut short", "replaced by another's"} {
			all["on a cloud "+on+", the answer "+answer] = onceNetwork(options, lost[answer])
		}
		all["on a cloud "+on+", where the request was lost too"] = onceNetwork(options, mockcloud.Fault{Reset: true})
	}
	all["by its key, even if it takes effect after the second"] = lateNetwork(without(mockcloud.UniqueNames), createdNetwork)
	all["by its name, even if it takes effect after the second"] = lateNetwork(without(mockcloud.Idempotency), createdNetwork)

	all["after two for a while, if nothing keeps the first from taking effect after the second"] = func(ctx SpecContext) {
		s := newSite(ctx, unprotected)
		held := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks", Nth: 1}, Hold: true})
		net := s.wired(ctx, "net")
		Expect(net).To(testkit.HaveCondition("Created", metav1.ConditionTrue, "", "two networks may exist for a while"))
		Expect(s.ReleaseFault(held)).To(Succeed())
		Eventually(ctx, s.effects).Should(Equal([]mockcloud.Op{createdNetwork, createdNetwork, deletedNetwork}))
		Expect(s.Networks()).To(HaveExactElements(HaveField("ID", net.Status.NetworkID)))
		wired(ctx, net)
	}

	all["which the gateway follows that was edited meanwhile"] = func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		fault := losing(lost["turned into a failure"], mockcloud.Options{})
		fault.Match.Path = "/networks"
		s.fault(fault)
		net := s.network(ctx, "net")
		Eventually(ctx, func() int { return s.CountCalls("POST", "/networks") }).Should(BeNumerically(">", 0))
		edit(ctx, net, gateway("192.168.0.5"))
		net = wired(ctx, net)
		Eventually(ctx, s.behind(net)).Should(HaveField("Gateway", "192.168.0.5"))
		Expect(s.effects()).To(Equal([]mockcloud.Op{createdNetwork}))
	}

	all["that is gone again if the object is deleted before it was found"] = func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		held := s.fault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/networks"}, Hold: true})
		net := s.network(ctx, "net")
		Expect(s.WaitHeld(ctx, held, 1)).To(Succeed())
		remove(ctx, net)
		Eventually(ctx, now(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested"))
		Expect(s.RemoveFault(held)).To(Succeed())
		Eventually(ctx, gone(net)).Should(BeTrue())
		Expect(s.Networks()).To(BeEmpty())
	}
	return all
}()}

var _ = Describe("the operator", func() {
	sideBySide("makes Networks, keeps and deletes them", newNetworks, networkDrift)
	sideBySide("attaches VMs to Networks", attachments)
	sideBySide("makes a network exactly once", lostNetworks)
})

var _ = Describe("what people see of Networks", func() {
	It("is the manifest of the seed as it stands, and a line with range, gateway, id, VMs and why it is not ready", func(ctx SpecContext) {
		namespace := newNamespace(ctx, nil)
		kubectl(ctx, `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Network
metadata:
  name: example-network
spec:
  cidr: "192.168.0.0/16"
  gateway: "192.168.0.1"
`, "apply", "--namespace", namespace, "-f", "-")
		net := wired(ctx, testkit.Network(namespace, "example-network"))
		want := [][]string{
			{"NAME", "CIDR", "GATEWAY", "NETWORK ID", "VMS", "READY", "REASON", "AGE"},
			{"example-network", "192.168.0.0/16", "192.168.0.1", net.Status.NetworkID, "0", "True", "InSync", "<age>"},
		}
		got := table(kubectl(ctx, "", "get", "networks", "--namespace", namespace))
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get networks (-want +got)")
		remove(ctx, net)
		Eventually(ctx, gone(net)).Should(BeTrue())
	})

	DescribeTable("is a sentence that says what to do where a manifest cannot be meant",
		func(ctx SpecContext, spec, sentence string) {
			manifest := "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Network\nmetadata:\n  generateName: bad-\nspec: " + spec
			output, err := tryKubectl(ctx, manifest, "create", "--dry-run=server", "-f", "-")
			Expect(err).To(HaveOccurred(), "it was accepted: %s", output)
			Expect(output).To(ContainSubstring(sentence))
		},
		Entry("without a range", `{gateway: 10.0.0.1}`, "spec.cidr: Required value"),
		Entry("without a gateway", `{cidr: 10.0.0.0/8}`, "spec.gateway: Required value"),
		Entry("with a range that is none", `{cidr: 10.0.0.0, gateway: 10.0.0.1}`, "cidr must be a range such as 192.168.0.0/16"),
		Entry("with address bits behind the prefix", `{cidr: 10.0.0.1/8, gateway: 10.0.0.1}`, "without address bits behind the prefix"),
		Entry("with a gateway that is none", `{cidr: 10.0.0.0/8, gateway: 10.0.0.256}`, "gateway must be an IP address such as 192.168.0.1"),
		Entry("with a gateway outside", `{cidr: 10.0.0.0/24, gateway: 10.0.1.1}`, "gateway must be an address inside cidr"),
		Entry("with a gateway of the other family", `{cidr: 10.0.0.0/24, gateway: "fd00::1"}`, "gateway must be an address inside cidr"),
		Entry("with a field that there is not", `{cidr: 10.0.0.0/8, gateway: 10.0.0.1, vlan: 4}`, `unknown field "spec.vlan"`),
	)

	It("is a sentence with the way out where an edit cannot be followed", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		net := s.wired(ctx, "net")
		const wayOut = " cannot be changed once the network exists; delete this Network and make another"
		_, err := tryEdit(ctx, net, func(net *v1alpha1.Network) { net.Spec.CIDR = "192.168.0.0/24" })
		Expect(err).To(MatchError(ContainSubstring("cidr" + wayOut)))
		_, err = tryEdit(ctx, net, func(net *v1alpha1.Network) { net.Spec.CloudRef = &v1alpha1.CloudReference{Name: "other"} })
		Expect(err).To(MatchError(ContainSubstring("cloudRef" + wayOut)))
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(env.Client.Patch(ctx, net, strip)).To(Succeed())
		Eventually(ctx, now(net)).Should(HaveField("Finalizers", Not(BeEmpty())), "a finalizer that was stripped by hand is put back")
	})
})
