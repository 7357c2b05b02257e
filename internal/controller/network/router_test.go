package network

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

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
		"named by its id: in sync":                 {withRouters, []cloud.Network{networkWith(hasRouter(byID))}, onRecord(routedTo("ext-net")), &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "other-name", ExternalNetworkID: "ext-net", RequestedNetwork: "ext-net", RequestedNetworkID: "ext-net"}, "True InSync", []string{"list"}},
		"not in the spec: left as it is":           {withRouters, []cloud.Network{networkWith(hasRouter(byID))}, onRecord(), &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "other-name", ExternalNetworkID: "ext-net"}, "True InSync", []string{"list"}},
		"detached, not in the spec: it had one":    {withRouters, []cloud.Network{networkWith()}, onRecord(requested), &pcapi.NetworkRouterStatus{}, "True InSync", []string{"list"}},
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

// shownIDs is a cloud that shows the ids of external networks, and whose routers outlive their networks.
type shownIDs struct {
	*cloudfake.Cloud
	// ids are those of the external networks, by name.
	ids map[string]string
	// asked is what networks were to be connected to, and removed the networks whose routers were to be deleted.
	asked, removed []string
	// refusals are the next answers to updates, and fails those to removals.
	refusals, fails []error
}

func (c *shownIDs) UpdateNetwork(_ context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	c.asked = append(c.asked, change.ExternalNetwork)
	if len(c.refusals) > 0 {
		err := c.refusals[0]
		c.refusals = c.refusals[1:]
		return cloud.Network{}, err
	}
	for name, external := range c.ids {
		if change.ExternalNetwork == name || change.ExternalNetwork == external {
			return networkWith(hasRouter(cloud.Router{ID: "r1", ExternalNetwork: name, ExternalID: external})), nil
		}
	}
	return cloud.Network{}, &cloud.Error{Kind: cloud.Rejected, Op: "update network " + id, Code: cloud.CodeExternalNetworkUnknown, Detail: "there is no such external network"}
}

func (c *shownIDs) DeleteRouters(_ context.Context, networkID string) error {
	c.removed = append(c.removed, networkID)
	if len(c.fails) == 0 {
		return nil
	}
	err := c.fails[0]
	c.fails = c.fails[1:]
	return err
}

func (h *harness) showIDs(ids map[string]string) *shownIDs {
	c := &shownIDs{Cloud: h.cloud, ids: ids}
	h.inv.Connect(c, withRouters)
	return c
}

// requested has the status show a router to ext-net, which had the id e1 then.
func requested(net *pcapi.Network) {
	net.Status.Router = &pcapi.NetworkRouterStatus{
		ID: "r1", ExternalNetwork: "ext-net", ExternalNetworkID: "e1", RequestedNetwork: "ext-net", RequestedNetworkID: "e1",
	}
}

// A name is looked up once: networks can be renamed, and their names given to others.
func TestRouterStaysOnTheNetworkThatWasRequested(t *testing.T) {
	t.Parallel()
	to := func(name, id string) *pcapi.NetworkRouterStatus {
		return &pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: name, ExternalNetworkID: id, RequestedNetwork: "ext-net", RequestedNetworkID: id}
	}
	for name, test := range map[string]struct {
		router cloud.Router
		net    *pcapi.Network
		ids    map[string]string
		asked  []string
		want   *pcapi.NetworkRouterStatus
	}{
		"connected by the name: the id is recorded": {
			cloud.Router{ID: "r1", ExternalNetwork: "ext-net", ExternalID: "e1"}, onRecord(routedTo("ext-net")), nil, nil, to("ext-net", "e1"),
		},
		"made: the id is recorded": {cloud.Router{}, onRecord(routedTo("ext-net")), map[string]string{"ext-net": "e1"}, []string{"ext-net"}, to("ext-net", "e1")},
		"renamed: in sync":         {cloud.Router{ID: "r1", ExternalNetwork: "wan", ExternalID: "e1"}, onRecord(routedTo("ext-net"), requested), nil, nil, to("wan", "e1")},
		"connected to another of the name: set back": {
			cloud.Router{ID: "r1", ExternalNetwork: "ext-net", ExternalID: "e2"}, onRecord(routedTo("ext-net"), requested),
			map[string]string{"wan": "e1", "ext-net": "e2"}, []string{"e1"}, to("wan", "e1"),
		},
		"gone, another one has the name: connected to that": {
			cloud.Router{ID: "r1"}, onRecord(routedTo("ext-net"), requested), map[string]string{"ext-net": "e2"}, []string{"e1", "ext-net"}, to("ext-net", "e2"),
		},
		"another name in the spec: looked up": {
			cloud.Router{ID: "r1", ExternalNetwork: "ext-net", ExternalID: "e1"}, onRecord(routedTo("wan"), requested), map[string]string{"wan": "e3"}, []string{"wan"},
			&pcapi.NetworkRouterStatus{ID: "r1", ExternalNetwork: "wan", ExternalNetworkID: "e3", RequestedNetwork: "wan", RequestedNetworkID: "e3"},
		},
		"not shown, no router in the spec: kept": {cloud.Router{Unknown: true}, onRecord(requested), nil, nil, to("ext-net", "e1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withRouters, []cloud.Network{networkWith(hasRouter(test.router))}, test.net)
			c := h.showIDs(test.ids)
			for range 2 {
				h.reconcile()
				h.advance(time.Second)
			}
			if diff := cmp.Diff(test.asked, c.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			h.wantCondition("Ready", "True InSync")
			if diff := cmp.Diff(test.want, h.status().Router); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRouterOfANetworkThatIsGoneIsDeleted(t *testing.T) {
	t.Parallel()
	had := func(net *pcapi.Network) { net.Status.Router = &pcapi.NetworkRouterStatus{ID: "r1"} }
	detached := func(net *pcapi.Network) { net.Status.Router = &pcapi.NetworkRouterStatus{} }
	const op = "delete the router of network n1"
	away := &cloud.Error{Kind: cloud.Unavailable, Op: op, Detail: "503"}
	forbidden, unsupported := &cloud.Error{Kind: cloud.Forbidden, Op: op}, &cloud.Error{Kind: cloud.Unsupported, Op: op}
	for name, test := range map[string]struct {
		net   *pcapi.Network
		gone  bool
		fails []error
		want  []string
	}{
		"somebody else deleted the network":     {net: onRecord(routedTo("ext-net"), deleted), gone: true, want: []string{"n1"}},
		"the spec names none any more":          {net: onRecord(had, deleted), gone: true, want: []string{"n1"}},
		"the router was detached before":        {net: onRecord(detached, deleted), gone: true, want: []string{"n1"}},
		"none observed, and not permitted":      {net: onRecord(routedTo("ext-net"), deleted), gone: true, fails: []error{forbidden}, want: []string{"n1"}},
		"none observed, and no routers":         {net: onRecord(routedTo("ext-net"), deleted), gone: true, fails: []error{unsupported}, want: []string{"n1"}},
		"not permitted at once":                 {net: onRecord(routedTo("ext-net"), had, deleted), gone: true, fails: []error{forbidden}, want: []string{"n1", "n1"}},
		"detached, and not permitted at once":   {net: onRecord(routedTo("ext-net"), detached, deleted), gone: true, fails: []error{forbidden}, want: []string{"n1", "n1"}},
		"the cloud has no routers for a while":  {net: onRecord(routedTo("ext-net"), had, deleted), gone: true, fails: []error{unsupported}, want: []string{"n1", "n1"}},
		"the network is deleted":                {net: onRecord(routedTo("ext-net"), deleted), want: []string{"n1"}},
		"the router cannot be deleted at once":  {net: onRecord(routedTo("ext-net"), deleted), gone: true, fails: []error{away}, want: []string{"n1", "n1"}},
		"a network without a router: not asked": {net: onRecord(deleted), gone: true},
		"an imported network: not asked": {net: netWith(recorded, deleted, had, func(net *pcapi.Network) {
			net.Finalizers, net.Spec.Import = []string{pcapi.NetworkFinalizer}, &pcapi.NetworkImport{Name: "a"}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var networks []cloud.Network
			if !test.gone {
				networks = append(networks, networkWith())
			}
			h := newHarness(t, withRouters, networks, test.net)
			c := h.showIDs(nil)
			c.fails = test.fails
			for range 6 {
				h.reconcile()
				h.advance(10 * time.Second)
			}
			h.wantGone()
			if diff := cmp.Diff(test.want, c.removed); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// The router may be left with its external address.
func TestRouterThatMayBeLeftKeepsTheFinalizer(t *testing.T) {
	t.Parallel()
	for _, kind := range []cloud.Kind{cloud.Forbidden, cloud.Unsupported} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withRouters, nil, onRecord(routedTo("ext-net"), requested, deleted))
			refusal := &cloud.Error{Kind: kind, Op: "delete the router of network n1", Detail: "get_router is not granted"}
			h.showIDs(nil).fails = []error{refusal, refusal}
			for range 2 {
				h.reconcile()
				h.advance(10 * time.Second)
			}
			h.wantCondition("Deleting", "True Blocked", "network n1 is gone, and its router may be left", "get_router is not granted", "remove the finalizer", "tried again after 2s")
		})
	}
}

// Whoever detaches the router in the cloud does not decide which network it is connected to afterwards.
func TestDetachedRouterStaysOnTheNetworkThatWasRequested(t *testing.T) {
	t.Parallel()
	for name, interrupted := range map[string]func(h *harness, c *shownIDs){
		"the brake is on":    func(h *harness, _ *shownIDs) { h.inv.Brake(true) },
		"Connect fails once": func(_ *harness, c *shownIDs) { c.refusals = []error{errAway} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net"), requested))
			c := h.showIDs(map[string]string{"ext-net": "e1"})
			interrupted(h, c)
			h.reconcile()
			want := &pcapi.NetworkRouterStatus{RequestedNetwork: "ext-net", RequestedNetworkID: "e1"}
			if diff := cmp.Diff(want, h.status().Router); diff != "" {
				t.Errorf("status while it is detached (-want +got):\n%s", diff)
			}
			h.inv.Brake(false)
			c.ids, c.asked = map[string]string{"wan": "e1", "ext-net": "e2"}, nil
			for range 2 {
				h.advance(10 * time.Second)
				h.reconcile()
			}
			if diff := cmp.Diff([]string{"e1"}, c.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			h.wantCondition("Ready", "True InSync")
			if router := h.status().Router; router == nil || router.ExternalNetwork != "wan" {
				t.Errorf("router %+v, want it on wan", router)
			}
		})
	}
}

// A cloud may refuse the gateway for as long as the router is attached.
func TestRouterIsCorrectedBeforeTheGateway(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRouters, []cloud.Network{networkWith(hasRouter(cloud.Router{ID: "r1", ExternalNetwork: "wan", ExternalID: "e2"}))},
		onRecord(routedTo("ext-net"), gateway("10.0.0.9")))
	c := h.showIDs(map[string]string{"ext-net": "e1"})
	h.reconcile()
	if diff := cmp.Diff([]string{"ext-net"}, c.asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
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
	t.Run("others use the router of a deleted Network: Blocked, with the next step of the cloud alone", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withRouters, []cloud.Network{networkWith()}, onRecord(routedTo("ext-net"), deleted))
		h.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.Conflict, Code: cloud.CodeRouterInUse, Op: "delete network", Detail: "detach router r1 from network n2"})
		h.reconcile()
		h.wantCondition("Deleting", "True Blocked", "detach router r1 from network n2", "tried again after 1s")
		if c := meta.FindStatusCondition(h.status().Conditions, "Deleting"); c == nil || strings.Contains(c.Message, "no VM object") {
			t.Errorf("Deleting is %+v, want no other step", c)
		}
	})
}
