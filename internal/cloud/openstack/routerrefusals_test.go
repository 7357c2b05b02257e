package openstack

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// Networks that ask for no router do not depend on the routers of the cloud, nor on the rights to them.
func TestNetworksAreReadWithoutRouters(t *testing.T) {
	for _, code := range []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusServiceUnavailable} {
		for _, kind := range []string{"routers", "ports"} {
			t.Run(fmt.Sprint(kind, " ", code), func(t *testing.T) {
				t.Parallel()
				n, client := newNeutron(t)
				c := client()
				made, err := c.CreateNetwork(t.Context(), routed())
				if err != nil {
					t.Fatal(err)
				}
				n.refused["GET "+kind] = code
				listed, listErr := c.ListNetworks(t.Context())
				got, getErr := c.GetNetwork(t.Context(), made.ID)
				if listErr != nil || getErr != nil {
					t.Fatalf("%v, %v, want no errors", listErr, getErr)
				}
				lacks := kind == "routers" && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, code)
				for _, network := range []cloud.Network{listed[1], got} {
					if diff := cmp.Diff(cloud.Router{Unknown: true}, network.Router); diff != "" {
						t.Errorf("router (-want +got):\n%s", diff)
					}
				}
				_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
				if err == nil || lacks && !cloud.Is(err, cloud.Unsupported) {
					t.Errorf("UpdateNetwork: %v", err)
				}
			})
		}
	}
}

// What a network without a router costs.
func TestNetworksWithoutRoutersMakeFewCalls(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	want := func(what string, err error, reads map[string]int) {
		t.Helper()
		if diff := cmp.Diff(reads, n.reads()); diff != "" || err != nil {
			t.Errorf("%s: %v, reads (-want +got):\n%s", what, err, diff)
		}
	}
	want("CreateNetwork", err, map[string]int{"networks": 1})
	_, err = c.ListNetworks(t.Context())
	want("ListNetworks", err, map[string]int{"networks": 1, "subnets": 1, "routers": 1})
	_, err = c.GetNetwork(t.Context(), made.ID)
	want("GetNetwork", err, map[string]int{"networks": 1, "subnets": 1, "routers": 1})
	_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{Gateway: "10.0.0.9"})
	want("UpdateNetwork", err, map[string]int{"networks": 1, "subnets": 1, "routers": 1})
	n.all["networks"] = n.all["networks"][1:]
	_, err = c.ListNetworks(t.Context())
	want("ListNetworks without an external network", err, map[string]int{"networks": 1, "subnets": 1})
	want("DeleteNetwork", c.DeleteNetwork(t.Context(), made.ID), map[string]int{"routers": 1})
}

// Without routers, no network is made that could not get one.
func TestNoNetworkIsMadeWithoutRouters(t *testing.T) {
	for code, kind := range map[int]cloud.Kind{
		http.StatusNotFound: cloud.Unsupported, http.StatusMethodNotAllowed: cloud.Unsupported, http.StatusNotImplemented: cloud.Unsupported,
		http.StatusForbidden: cloud.Forbidden, http.StatusServiceUnavailable: cloud.Unavailable,
	} {
		n, client := newNeutron(t)
		n.refused["GET routers"] = code
		if _, err := client().CreateNetwork(t.Context(), routed()); outcomeOf(err) != (outcome{Kind: kind}) {
			t.Errorf("%d: %v, want %s", code, err, kind)
		}
		if n.changes != 0 {
			t.Errorf("%d: %d changes, want none", code, n.changes)
		}
	}
}

// A network without a router is deleted where routers cannot be listed, and one with a router is not: the service refuses that.
// A router that is left is reported.
func TestDeletionWhereRoutersCannotBeListed(t *testing.T) {
	for code, kinds := range map[int]struct{ network, routers cloud.Kind }{
		http.StatusForbidden:           {cloud.Conflict, cloud.Forbidden},
		http.StatusNotFound:            {cloud.Conflict, cloud.Unsupported},
		http.StatusNotImplemented:      {cloud.Conflict, cloud.Unsupported},
		http.StatusInternalServerError: {cloud.Unavailable, cloud.Unavailable},
		http.StatusServiceUnavailable:  {cloud.Unavailable, cloud.Unavailable},
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			n, client := newNeutron(t)
			c := client()
			plain, plainErr := c.CreateNetwork(t.Context(), aNetwork)
			made, err := c.CreateNetwork(t.Context(), routed())
			if plainErr != nil || err != nil {
				t.Fatal(plainErr, err)
			}
			n.refused["GET routers"] = code
			if err := c.DeleteNetwork(t.Context(), plain.ID); err != nil {
				t.Errorf("DeleteNetwork without a router: %v", err)
			}
			if err := c.DeleteNetwork(t.Context(), made.ID); outcomeOf(err) != (outcome{Kind: kinds.network}) {
				t.Errorf("DeleteNetwork with a router: %v, want %s", err, kinds.network)
			}
			if err := c.DeleteRouters(t.Context(), made.ID); outcomeOf(err) != (outcome{Kind: kinds.routers}) {
				t.Errorf("DeleteRouters: %v, want %s", err, kinds.routers)
			}
			if diff := cmp.Diff(map[string]int{"networks": 1, "subnets": 1, "routers": 1, "interfaces": 1}, n.counts()); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeletionThatTheCloudThrottles(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	if err != nil {
		t.Fatal(err)
	}
	n.refused["GET routers"] = http.StatusTooManyRequests
	if err := c.DeleteNetwork(t.Context(), made.ID); !cloud.Is(err, cloud.Throttled) || n.counts()["networks"] != 1 {
		t.Errorf("DeleteNetwork: %v, want Throttled and no deletion", err)
	}
}

// What keeps the network keeps its router: else servers would lose their way out, and the deletion would fail all the same.
func TestRouterStaysWithWhatIsOnTheNetwork(t *testing.T) {
	for owner, keeps := range map[string]bool{"compute:nova": true, "Octavia": true, "": true, "network:dhcp": false} {
		n, client := newNeutron(t)
		c := client()
		made, err := c.CreateNetwork(t.Context(), routed())
		if err != nil {
			t.Fatal(err)
		}
		n.addPort(made.ID, owner)
		before, changes := n.counts(), n.changes
		err = c.DeleteNetwork(t.Context(), made.ID)
		switch {
		case keeps && (!cloud.Is(err, cloud.Conflict) || cloud.CodeOf(err) != cloud.CodeRouterInUse || n.changes != changes):
			t.Errorf("%q: %v after %d changes, want Conflict and none", owner, err, n.changes-changes)
		case keeps:
			if diff := cmp.Diff(before, n.counts()); diff != "" {
				t.Errorf("%q: (-want +got):\n%s", owner, diff)
			}
		case err != nil || n.counts()["routers"] != 0:
			t.Errorf("%q: %v, %v left, want nothing", owner, err, n.counts())
		}
	}
}

// Somebody who deletes a network detaches its router first, which stays.
func TestRouterOfANetworkThatIsGone(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	n.all["ports"], n.all["subnets"] = n.all["ports"][1:], n.all["subnets"][1:]
	n.all["networks"] = slices.DeleteFunc(n.all["networks"], func(o object) bool { return o.text("id") == made.ID })
	for range 2 {
		if err := c.DeleteRouters(t.Context(), made.ID); err != nil {
			t.Errorf("DeleteRouters: %v", err)
		}
	}
	if left := n.all["routers"]; len(left) != 1 || left[0].text("id") != other.Router.ID {
		t.Errorf("left %v, want that of the other network", left)
	}
}

// The service answers a listing without the right to it with an empty one.
func TestRoutersThatTheAccountDoesNotSee(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	n.hidden["routers"] = true
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
		if outcomeOf(err) != (outcome{Kind: cloud.Forbidden}) || !strings.Contains(err.Error(), "get_router") {
			t.Errorf("UpdateNetwork: %v, want Forbidden with the right", err)
		}
	}
	if left := n.counts(); left["routers"] != 0 {
		t.Errorf("left %v, want no router", left)
	}
	n.hidden = map[string]bool{"ports": true}
	if _, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"}); err != nil {
		t.Errorf("UpdateNetwork without the right to ports: %v", err)
	}
	for range 2 {
		_, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
		if outcomeOf(err) != (outcome{Kind: cloud.Forbidden}) || !strings.Contains(err.Error(), "get_port") {
			t.Errorf("UpdateNetwork again: %v, want Forbidden with the right", err)
		}
	}
	if diff := cmp.Diff(map[string]int{"networks": 1, "subnets": 1, "routers": 1, "interfaces": 1}, n.counts()); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
}

// A neutron server may list from a database that lags behind.
func TestRouterThatIsNotListedYet(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	if err != nil {
		t.Fatal(err)
	}
	n.lags["routers"] = true
	change := cloud.UpdateNetwork{ExternalNetwork: "ext-net"}
	for i := range 3 {
		_, err := c.UpdateNetwork(t.Context(), made.ID, change)
		if again := i > 0; cloud.Is(err, cloud.Conflict) != again || !again && err != nil || n.counts()["routers"] != 1 {
			t.Errorf("UpdateNetwork %d: %v, %v made, want one router, and a Conflict once it has the address of the gateway", i, err, n.counts())
		}
	}
	n.lags["routers"] = false
	if got, err := c.UpdateNetwork(t.Context(), made.ID, change); err != nil || !got.Router.ConnectedTo("ext-net") {
		t.Errorf("%+v, %v, want it connected", got.Router, err)
	}
	if diff := cmp.Diff(map[string]int{"networks": 1, "subnets": 1, "routers": 1, "interfaces": 1}, n.counts()); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
}

// Another manager may have attached the router since its ports were listed.
func TestRouterThatIsAttachedMeanwhile(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	n.hidden["ports"] = true
	n.seen = func(r *http.Request) { n.hidden["ports"] = n.hidden["ports"] && r.Method == http.MethodGet }
	got, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
	if err != nil || !got.Router.ConnectedTo("ext-net") {
		t.Errorf("%+v, %v, want it connected", got.Router, err)
	}
}

func TestRouterThatIsNotAttachedIsDeleted(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	if err != nil {
		t.Fatal(err)
	}
	theirs := n.add("routers", object{"name": "theirs"})
	n.act(theirs, "add_router_interface", object{"subnet_id": n.all["subnets"][0].text("id")})
	n.hidden["ports"] = true
	_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
	if outcomeOf(err) != (outcome{Kind: cloud.Conflict}) {
		t.Errorf("UpdateNetwork: %v, want Conflict", err)
	}
	if left := n.counts(); left["routers"] != 1 {
		t.Errorf("left %v, want only the router of somebody else", left)
	}
}

func TestNoRouterIsMadeWithoutTheGateway(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), aNetwork)
	if err != nil {
		t.Fatal(err)
	}
	theirs := n.add("routers", object{"name": "theirs"})
	n.act(theirs, "add_router_interface", object{"subnet_id": n.all["subnets"][0].text("id")})
	changes := n.changes
	for range 2 {
		_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"})
		says := "the address 10.0.0.1 of the gateway is in use by router " + theirs.text("id")
		if outcomeOf(err) != (outcome{Kind: cloud.Conflict}) || !strings.Contains(err.Error(), says) {
			t.Errorf("UpdateNetwork: %v, want Conflict with %q", err, says)
		}
	}
	if n.changes != changes {
		t.Errorf("%d changes, want none", n.changes-changes)
	}
}

func TestGatewayOfARoutedNetworkIsKept(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{Gateway: "10.0.0.9", DNSNameservers: []string{"10.0.0.53"}})
	if outcomeOf(err) != (outcome{Kind: cloud.Rejected}) || !strings.Contains(err.Error(), "the gateway 10.0.0.1 is the address of a router") {
		t.Errorf("UpdateNetwork: %v, want Rejected with the reason", err)
	}
	got, err := c.GetNetwork(t.Context(), made.ID)
	if diff := cmp.Diff([]string{"10.0.0.53"}, got.DNSNameservers); diff != "" || err != nil {
		t.Errorf("DNS servers: %v (-want +got):\n%s", err, diff)
	}
	if s := n.all["subnets"][0]; s.text("gateway_ip") != "10.0.0.1" {
		t.Errorf("subnet %v, want its gateway", s)
	}
}

// An administrator sees the routers and the ports of all projects.
func TestRoutersOfOtherProjectsAreNotRead(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"routers", "ports"} {
		for _, o := range n.all[kind] {
			o["project_id"] = "another"
		}
	}
	n.ignores["routers"] = true
	n.add("routers", object{"description": "private-cloud-operator network " + otherID})
	var queries []url.Values
	n.seen = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/routers") || strings.HasSuffix(r.URL.Path, "/ports") {
			queries = append(queries, r.URL.Query())
		}
	}
	all, err := c.ListNetworks(t.Context())
	if err != nil || all[1].ID != made.ID || all[1].Router != (cloud.Router{}) {
		t.Errorf("%+v, %v, want no router", all, err)
	}
	for _, query := range queries {
		if query.Get("project_id") != projectID || len(query["fields"]) == 0 {
			t.Errorf("query %v, want the project and the fields that are used", query)
		}
	}
	if len(queries) != 2 {
		t.Errorf("%d queries, want one for routers and one for ports", len(queries))
	}
}
