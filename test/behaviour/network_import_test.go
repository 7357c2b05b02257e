package behaviour_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// putNetwork puts a network that the operator did not create into the cloud.
func (f *fixture) putNetwork(name string) mockcloud.Network {
	f.t.Helper()
	network, err := f.PutNetwork(mockcloud.Network{Name: name, CIDR: "10.20.0.0/16", Gateway: "10.20.0.1"})
	f.t.Expect(err).NotTo(HaveOccurred())
	return network
}

// importNetwork makes a Network refer to the network of a name.
func importNetwork(name string) func(*pcapi.Network) {
	return func(net *pcapi.Network) {
		net.Spec.CIDR, net.Spec.Gateway, net.Spec.Import = "", "", &pcapi.NetworkImport{Name: name}
	}
}

// allowImports sets which networks may be imported from the Cloud of the fixture.
func (f *fixture) allowImports(policy pcapi.ImportPolicy, networks ...pcapi.ImportableNetwork) {
	f.t.Helper()
	edit(f.t, f.object, func(c *pcapi.Cloud) { c.Spec.Imports, c.Spec.ImportableNetworks = policy, networks })
}

func TestImportNetwork(t *testing.T) { networkImports.run(t) }

var networkImports = cases{
	"a network is imported: a VM is attached to it, and the deletion keeps it": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		shared := f.putNetwork("shared")
		f.ResetCalls()
		net := f.readyNetwork("net", importNetwork("shared"))
		t.Expect(net).To(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "InSync", "is imported, and not changed"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Imported"),
			HaveField("Status.NetworkID", shared.ID), HaveField("Status.NameInCloud", "shared"),
		))
		want := [][]string{
			{"NAME", "CIDR", "GATEWAY", "NETWORK ID", "VMS", "READY", "REASON", "AGE"},
			{"net", "10.20.0.0/16", "10.20.0.1", shared.ID, "0", "True", "InSync", "<age>"},
		}
		got := table(t, kubectl(t, "", "get", "networks", "--namespace", f.namespace))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get networks (-want +got)")

		vm := f.readyVM("web", onNetwork("net"))
		t.Expect(f.serverOf(vm)()).To(HaveField("NetworkID", shared.ID))
		deleteObject(t, net)
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "the network stays"))
		deleteObject(t, vm)
		t.Eventually(isGone(net)).Should(BeTrue())
		t.Eventually(eventReasons(net)).Should(Equal([]string{"Imported", "Blocked", "Orphaned"}))
		t.Expect(f.Networks()).To(ConsistOf(shared))
		t.Expect([]int{f.CountCalls("POST", "/networks"), f.CountCalls("PATCH", ""), f.CountCalls("DELETE", "/networks/{id}")}).To(Equal([]int{0, 0, 0}))
	},

	"two namespaces import a network: both are attached, and neither removes it": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		shared, first := f.putNetwork("shared"), f.readyNetwork("net", importNetwork("shared"))
		second := testkit.Network(newNamespace(t, nil), "net", importNetwork("shared"), func(net *pcapi.Network) {
			net.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name}
		})
		t.Expect(env.Client.Create(t.Context(), second)).To(Succeed())
		t.Expect(waitNetworkReady(t, second).Status.NetworkID).To(Equal(first.Status.NetworkID))
		deleteObject(t, first)
		t.Eventually(isGone(first)).Should(BeTrue())
		f.waitForNetworkPolls(1)
		t.Expect(get(t, second)).To(testkit.BeReady())
		t.Expect(f.Networks()).To(ConsistOf(shared))
	},

	"the cloud has no network of the name: the Network says so, and is ready when it has": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.putNetwork("of-the-platform")
		net := f.createNetwork("net", importNetwork("late"))
		t.Eventually(latest(net)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", `the cloud has no network named "late"`),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected"),
			HaveField("Finalizers", BeEmpty()),
		))
		t.Expect(get(t, net)).NotTo(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "of-the-platform"))
		vm := f.createVM("web", onNetwork("net"))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "NetworkNotReady"))
		late := f.putNetwork("late")
		edit(t, net, func(net *pcapi.Network) {
			metav1.SetMetaDataAnnotation(&net.ObjectMeta, pcapi.ReconcileRequestedAtAnnotation, "now")
		})
		t.Expect(waitNetworkReady(t, net).Status.NetworkID).To(Equal(late.ID))
		waitReady(t, vm)
	},

	"the namespace has no right to import: the Network is refused until it is listed": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyNone })
		f.putNetwork("shared")
		net := f.createNetwork("net", importNetwork("shared"))
		refused := func(sentence string) {
			t.Eventually(latest(net)).Should(SatisfyAll(
				testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", sentence), HaveField("Status.NetworkID", BeEmpty())))
		}
		refused("the Cloud does not allow imports")
		f.allowImports(pcapi.ImportPolicyListed, pcapi.ImportableNetwork{Name: "shared", Namespace: "another"})
		refused(`network "shared" is not among those that this namespace may import`)
		t.Expect(f.CountCalls("GET", "/networks")).To(BeZero(), "nothing is looked for")
		f.allowImports(pcapi.ImportPolicyListed, pcapi.ImportableNetwork{Name: "shared", Namespace: f.namespace})
		waitNetworkReady(t, net)
		f.allowImports(pcapi.ImportPolicyNone)
		f.waitForNetworkPolls(1)
		t.Expect(get(t, net)).To(testkit.BeReady())
	},

	"imports of VMs are open: those of networks are what networkImports says": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
			c.Spec.Imports, c.Spec.NetworkImports = pcapi.ImportPolicyAny, pcapi.ImportPolicyNone
		})
		f.putNetwork("shared")
		net := f.createNetwork("net", importNetwork("shared"))
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "set networkImports"))
		edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.NetworkImports = pcapi.ImportPolicyAny })
		waitNetworkReady(t, net)
	},

	"the network is that of another Network: refused without a list": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		owner := f.readyNetwork("owner")
		net := f.createNetwork("net", importNetwork(owner.Status.NameInCloud))
		t.Eventually(latest(net)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "may belong to another object"))
	},

	"the network is changed in the cloud: the Network shows it and changes nothing": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.putNetwork("shared")
		net := f.readyNetwork("net", importNetwork("shared"))
		f.changeNetwork(net, func(n *mockcloud.Network) { n.Gateway = "10.20.0.9" })
		t.Eventually(latest(net)).Should(HaveField("Status.Gateway", "10.20.0.9"))
		t.Expect(get(t, net)).To(testkit.BeReady())
		t.Expect(f.CountCalls("PATCH", "")).To(BeZero())
	},

	"import is added to a Network: refused": refusedNetworkImportEdit(func(*pcapi.Network) {}, importNetwork("shared")),
	"import names another network: refused": refusedNetworkImportEdit(importNetwork("shared"), importNetwork("another")),
	"import is removed: refused":            refusedNetworkImportEdit(importNetwork("shared"), func(net *pcapi.Network) { net.Spec = testkit.Network("", "").Spec }),
	"cloudRef of an import is edited: refused": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.putNetwork("shared")
		net := f.readyNetwork("net", importNetwork("shared"))
		_, err := tryEdit(t, net, func(net *pcapi.Network) { net.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} })
		t.Expect(err).To(MatchError(ContainSubstring("cloudRef cannot be changed once the network exists")))
	},
}

// refusedNetworkImportEdit returns a case of an edit of spec.import, which no Cloud is needed for.
func refusedNetworkImportEdit(before, change func(*pcapi.Network)) func(*T) {
	return func(t *T) {
		net := testkit.Network(newNamespace(t, nil), "net", before)
		net.Spec.CloudRef = &pcapi.CloudReference{Name: "none"}
		t.Expect(env.Client.Create(t.Context(), net)).To(Succeed())
		_, err := tryEdit(t, net, change)
		t.Expect(err).To(MatchError(ContainSubstring("import cannot be added, changed or removed; delete this Network and make another")))
	}
}
