package network

import (
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// given are what clouds make of the names of networks.
var given = map[string]func(string) string{
	"upper case": strings.ToUpper, "domain": func(name string) string { return name + ".cloud.example.com" }, "cut": func(name string) string { return name[:len(name)-5] },
	"cut to 15 characters": func(name string) string { return name[:15] }, "prefix": func(name string) string { return "tenant-" + name },
}

func TestNameOfANetworkThatTheCloudChoseIsNoDriftUntilItChanges(t *testing.T) {
	for name, give := range given {
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
	for _, name := range []string{"upper case", "domain", "cut"} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, netWith())
			h.cloud.AlterNetworks(func(n *cloud.Network) { n.Name = given[name](n.Name) })
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
