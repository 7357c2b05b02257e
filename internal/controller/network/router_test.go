package network

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var withRouters = cloud.NewCapabilities(append([]cloud.Capability{cloud.Routers}, everything...)...)

func routedTo(external string) func(*pcapi.Network) {
	return func(net *pcapi.Network) { net.Spec.Router = &pcapi.NetworkRouter{ExternalNetwork: external} }
}

func hasRouter(r cloud.Router) func(*cloud.Network) {
	return func(n *cloud.Network) { n.Router = r }
}

func TestRouterOfANetwork(t *testing.T) {
	t.Parallel()
	byID := cloud.Router{ID: "r1", ExternalNetwork: "other-name", ExternalID: "ext-net"}
	for name, test := range map[string]struct {
		caps     cloud.Capabilities
		networks []cloud.Network
		net      *pcapi.Network
		want     *pcapi.NetworkRouterStatus
		ready    string
		calls    []string
	}{
		"new: created with it":                     {withRouters, nil, netWith(routedTo("ext-net")), &pcapi.NetworkRouterStatus{ExternalNetwork: "ext-net"}, "True InSync", []string{"create"}},
		"added to a network: made":                 {withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net")), &pcapi.NetworkRouterStatus{ExternalNetwork: "ext-net"}, "True InSync", []string{"list", "update"}},
		"connected to another network: set back":   {withRouters, []cloud.Network{networkWith(hasRouter(cloud.Router{ID: "r1", ExternalNetwork: "wan"}))}, onRecord(routedTo("ext-net")), &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "ext-net"}, "True InSync", []string{"list", "update"}},
		"named by its id: in sync":                 {withRouters, []cloud.Network{networkWith(hasRouter(byID))}, onRecord(routedTo("ext-net")), &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "other-name"}, "True InSync", []string{"list"}},
		"not in the spec: left as it is":           {withRouters, []cloud.Network{networkWith(hasRouter(byID))}, onRecord(), &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "other-name"}, "True InSync", []string{"list"}},
		"an unknown network: Rejected":             {withRouters, nil, netWith(routedTo("wan")), nil, "False Rejected", []string{"create"}},
		"the cloud lacks them, new: Unsupported":   {everything, nil, netWith(routedTo("ext-net")), nil, "False Unsupported", nil},
		"the cloud lacks them, added: Unsupported": {everything, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net")), nil, "False Unsupported", []string{"list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, test.caps, test.networks, test.net)
			h.reconcile()
			h.wantCalls(test.calls...)
			h.wantCondition("Ready", test.ready)
			if diff := cmp.Diff(test.want, h.status().Router); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// A create that ended before the router was made leaves a network without one.
func TestRouterIsMadeAfterAnInterruptedCreate(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]cloud.Capabilities{"everything": withRouters, "neither keys nor unique names": cloud.NewCapabilities(cloud.Networks, cloud.Routers)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, caps, nil, netWith(routedTo("ext-net")))
			h.cloud.Fail(cloudfake.CreateNetwork, errReset, false)
			h.reconcile()
			h.cloud.AddNetworks(networkWith())
			h.start(caps)
			for range 3 {
				h.advance(5 * time.Second)
				h.reconcile()
			}
			h.wantCondition("Ready", "True InSync")
			networks := h.cloud.Networks()
			if len(networks) != 1 || networks[0].Router.ExternalNetwork != "ext-net" {
				t.Errorf("networks %+v, want one with a router", networks)
			}
		})
	}
}

func TestRouterThatIsRefused(t *testing.T) {
	t.Parallel()
	inUse := &cloud.Error{Kind: cloud.Conflict, Op: "update network", Detail: "the gateway address is in use"}
	t.Run("another router has the gateway: Rejected, and tried again soon", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net")))
		h.fail(cloudfake.UpdateNetwork, inUse)
		if again := h.reconcile().RequeueAfter; again > 2*time.Second {
			t.Errorf("requeued after %v, want a second at first", again)
		}
		h.wantCondition("Stalled", "True Rejected", "the gateway address is in use")
	})
	t.Run("the brake is on: no router is made", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net")))
		h.inv.Brake(true)
		h.reconcile()
		h.wantCalls("list")
		h.wantCondition("Ready", "False Braked")
	})
	t.Run("others use the router of a deleted Network: Blocked, with the reason", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net"), deleted))
		h.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.Conflict, Op: "delete network", Detail: "router r1 of the network has interfaces on 1 other subnets"})
		h.reconcile()
		h.wantCondition("Deleting", "True Blocked", "router r1 of the network has interfaces on 1 other subnets", "tried again after 1s")
	})
}
