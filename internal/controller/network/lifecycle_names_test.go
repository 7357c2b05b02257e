package network

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/names"
)

// given are what clouds make of the names of networks.
var given = map[string]func(string) string{
	"upper case": strings.ToUpper, "domain": func(name string) string { return name + ".cloud.example.com" }, "cut": func(name string) string { return name[:len(name)-5] },
	"prefix": func(name string) string { return "tenant-" + name }, "other characters": func(name string) string { return strings.ReplaceAll(name, "-", "_") },
}

func TestNameOfANetworkThatTheCloudChoseIsNoDriftUntilItChanges(t *testing.T) {
	all := maps.Clone(given)
	all["extended"] = func(name string) string { return name + "-dc1" } // proves no owner
	for name, give := range all {
		for profile, caps := range map[string]cloud.Capabilities{"all capabilities": everything, "no proofs": cloud.NewCapabilities(cloud.Networks)} {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, nil, netWith())
				h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = give(n.Name) })
				for range 3 {
					h.reconcile()
					h.advance(pollInterval)
				}
				h.wantCondition("Ready", "True InSync")
				made := h.cloud.Networks()[0]
				if got := h.network().Status.NameInCloud; got != made.Name {
					t.Errorf("nameInCloud is %q, want %q", got, made.Name)
				}
				h.cloud.ModifyNetwork(made.ID, func(n *cloud.Network) { n.Name = "backbone" })
				h.advance(pollInterval)
				h.reconcile()
				h.wantCondition("Ready", "False Drift", "backbone", made.Name)
				h.cloud.ModifyNetwork(made.ID, func(n *cloud.Network) { n.Name = made.Name })
				h.advance(pollInterval)
				h.reconcile()
				h.wantCondition("Ready", "True InSync")
				if err := h.client.Delete(t.Context(), netWith()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					h.advance(settleTime)
					h.reconcile()
				}
				h.wantGone()
				if left := h.cloud.Networks(); len(left) > 0 {
					t.Errorf("networks %v are left", left)
				}
				if n := h.cloud.Sent(cloudfake.CreateNetwork); n != 1 {
					t.Errorf("%d creates were sent, want 1", n)
				}
			})
		}
	}
}

// The answer to the create is lost, and the network is found under the name that the cloud gave it.
func TestNetworkOfALostCreateIsFoundUnderANameThatTheCloudChose(t *testing.T) {
	for name, give := range given {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, netWith())
			h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = give(n.Name) })
			h.cloud.Fail(cloudfake.CreateNetwork, errReset, true)
			for range 5 {
				h.reconcile()
				h.advance(settleTime)
			}
			h.wantCondition("Ready", "True InSync")
			if n := h.cloud.Sent(cloudfake.CreateNetwork); n != 1 {
				t.Errorf("%d creates were sent, want 1", n)
			}
		})
	}
}

// longNamed returns a Network whose name in the cloud loses its hash where that is cut to 15 characters.
func longNamed(last string) *pcapi.Network {
	return netWith(func(net *pcapi.Network) { net.Name, net.UID = "network-of-team-"+last, types.UID("uid-"+last) })
}

// The cloud cuts names to 15 characters, so that two Networks and a network of somebody else have the same name there.
func TestNetworksWithOneNameInTheCloudAreKeptApart(t *testing.T) {
	for profile, caps := range map[string]cloud.Capabilities{"keys": keysOnly, "no proofs": cloud.NewCapabilities(cloud.Networks)} {
		t.Run(profile, func(t *testing.T) {
			a, b := longNamed("a"), longNamed("b")
			h := newHarness(t, caps, []cloud.Network{{ID: "foreign", Name: "ns-network-of-t", CIDR: "10.0.0.0/24"}}, a, b)
			h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = n.Name[:15] })
			both := func() {
				for range 4 {
					h.reconcileNetwork(a.Name)
					h.reconcileNetwork(b.Name)
					h.advance(settleTime)
				}
			}
			both()
			ids := map[string]bool{}
			for _, o := range []*pcapi.Network{a, b} {
				var net pcapi.Network
				if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(o), &net); err != nil {
					t.Fatal(err)
				}
				ids[net.Status.NetworkID] = true
				if !meta.IsStatusConditionTrue(net.Status.Conditions, pcapi.ReadyCondition) {
					t.Errorf("%s is not Ready: %v", o.Name, net.Status.Conditions)
				}
			}
			if have := len(h.cloud.Networks()); len(ids) != 2 || ids[""] || ids["foreign"] || have != 3 {
				t.Errorf("the Networks have the ids %v, and the cloud %d networks, want two of their own and 3", ids, have)
			}
			if err := h.client.Delete(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			both()
			if left := h.cloud.Networks(); len(left) != 2 {
				t.Errorf("networks %v are left, want the foreign one and that of the other Network", left)
			}
		})
	}
}

// A Network is deleted, and the cloud gives its id at once to the network of another one, which has the same name there.
func TestNetworkOfAnotherNetworkThatGotIDAndNameIsNotDeleted(t *testing.T) {
	a, b := longNamed("a"), longNamed("b")
	h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, a, b)
	h.cloud.SetReusesIDs(true)
	h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = n.Name[:15] })
	for range 2 {
		h.reconcileNetwork(a.Name)
		h.advance(settleTime)
	}
	if err := h.client.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.DeleteNetwork {
			h.cloud.OnAnswer(nil)
			h.advance(time.Second)
			h.reconcileNetwork(b.Name)
		}
	})
	for range 4 {
		h.reconcileNetwork(a.Name)
		h.advance(settleTime)
	}
	if left := h.cloud.Networks(); len(left) != 1 {
		t.Errorf("networks %v are left, want that of the other Network", left)
	}
}

// Somebody has deleted the network in the cloud, and the cloud has given its id and its name, which proves nothing, to another one.
func TestLaterNetworkWithTheRecordedIDAndNameIsLeftAlone(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, netWith())
	h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name += "-dc1" })
	h.reconcile()
	h.advance(10 * settleTime)
	h.cloud.ModifyNetwork(h.cloud.Networks()[0].ID, func(n *cloud.Network) { n.CreatedAt, n.Gateway = h.now, "10.0.0.7" })
	h.reconcile()
	h.wantCondition("Ready", "False Drift")
	if err := h.client.Delete(t.Context(), netWith()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.advance(settleTime)
		h.reconcile()
	}
	h.wantCondition("Deleting", "True Blocked")
	if left := h.cloud.Networks(); len(left) != 1 || left[0].Gateway != "10.0.0.7" {
		t.Errorf("the cloud has %v, want the later network as it was", left)
	}
}

// The cloud gave the network of another tenant's Network a name that does not show that.
func TestNetworkOfAnotherNetworkIsNotImported(t *testing.T) {
	there := portGroup(withName("team_a_web_0123456789ab"))
	h := newImport(t, everything, []cloud.Network{there}, func(net *pcapi.Network) { net.Spec.Import.Name = there.Name })
	owner := netWith(func(net *pcapi.Network) {
		net.Namespace, net.Name, net.UID = "team", "web", "other"
		net.Status.NetworkID, net.Status.Cloud = there.ID, "default"
	})
	if err := h.client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	h.editCloud(func(spec *pcapi.CloudSpec) { spec.Imports = pcapi.ImportPolicyAny })
	h.reconcile()
	h.wantCondition("Ready", "False Rejected", "may belong to another object")
}

// A cloud that answers a create of a known name with the network that has it, and cuts names.
func TestNetworkOfAnotherNetworkInTheAnswerIsNotTaken(t *testing.T) {
	a, b := longNamed("a"), longNamed("b")
	h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, a, b)
	h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = n.Name[:15] })
	h.reconcileNetwork(a.Name)
	h.advance(settleTime)
	first := h.cloud.Networks()[0]
	h.cloud.AlterNetworks(func(n *cloud.Network) { *n = first })
	for i := range 4 {
		if i == 2 {
			h.start(cloud.NewCapabilities(cloud.Networks))
		}
		h.reconcileNetwork(b.Name)
		h.advance(settleTime)
	}
	var net pcapi.Network
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(b), &net); err != nil || net.Status.NetworkID != "" {
		t.Errorf("the second Network has the id %q, %v", net.Status.NetworkID, err)
	}
}

// Others name their networks after one of the operator.
func TestNetworkThatIsNamedAfterOneOfANetworkIsKept(t *testing.T) {
	for name, suffix := range map[string]string{"by hand": "-manual", "by another Network": "-2-0123456789ab", "by another Network, with a dot": ".b-0123456789ab", "by another Network, cut": "-2-012345"} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, netWith())
			h.cloud.AddNetworks(cloud.Network{ID: "foreign", Name: names.Owned(maxName, "cluster", "ns", "net", "uid") + suffix, CIDR: "10.0.0.0/24"})
			for range 4 {
				h.reconcile()
				h.advance(settleTime)
			}
			if id := h.network().Status.NetworkID; id == "" || id == "foreign" || len(h.cloud.Networks()) != 2 {
				t.Errorf("the Network has the id %q, and the cloud has %v", id, h.cloud.Networks())
			}
		})
	}
}

func TestNetworkWithAnotherNameThanWasRecordedIsNotDeleted(t *testing.T) {
	h := newHarness(t, everything, nil, netWith())
	h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name += ".cloud.example.com" })
	h.reconcile()
	id := h.cloud.Networks()[0].ID
	h.cloud.ModifyNetwork(id, func(n *cloud.Network) { n.Name = "backbone" })
	if err := h.client.Delete(t.Context(), netWith()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		h.advance(settleTime)
		h.reconcile()
	}
	h.wantCondition("Deleting", "True Blocked", "backbone")
	if len(h.cloud.Networks()) != 1 {
		t.Error("a network of another name was deleted")
	}
}
