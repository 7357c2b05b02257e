package openstack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func routed() cloud.CreateNetwork {
	req := aNetwork
	req.ExternalNetwork = "ext-net"
	return req
}

func TestRouterIsMadeWithTheNetworkAndRemovedWithIt(t *testing.T) {
	for owner, ports := range map[string]int{
		"network:router_interface": 1, "network:router_interface_distributed": 2, "network:ha_router_replicated_interface": 1,
	} {
		t.Run(owner, func(t *testing.T) { testMadeAndRemoved(t, owner, ports) })
	}
}

func testMadeAndRemoved(t *testing.T, owner string, ports int) {
	n, client := newNeutron(t)
	n.owner = owner
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil || made.Router.ExternalNetwork != "ext-net" || made.Router.ExternalID != externalID || made.Router.ID == "" {
		t.Fatalf("%+v, %v", made, err)
	}
	if r := n.all["routers"][0]; r.text("name") != "net" || r.text("description") != "private-cloud-operator network "+made.ID {
		t.Errorf("router %v, want the name and the id of the network", r)
	}
	if diff := cmp.Diff(map[string]int{"networks": 1, "subnets": 1, "routers": 1, "interfaces": ports}, n.counts()); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	listed, err := c.ListNetworks(t.Context())
	if err != nil || len(listed) != 2 {
		t.Fatalf("networks %+v, %v", listed, err)
	}
	read, err := c.GetNetwork(t.Context(), made.ID)
	for _, got := range []cloud.Network{listed[1], read} {
		if diff := cmp.Diff(made, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if err := c.DeleteNetwork(t.Context(), made.ID); err != nil {
		t.Errorf("DeleteNetwork: %v", err)
	}
	if diff := cmp.Diff(map[string]int{"networks": 0, "subnets": 0, "routers": 0, "interfaces": 0}, n.counts()); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Whichever call is the last one of a manager, with or without effect, the next manager makes
// no second router, and leaves none.
func TestManagerKilledBetweenTwoCallsLeavesNoRouter(t *testing.T) {
	for ranges, req := range map[int]cloud.CreateNetwork{1: routed(), 2: dualStack()} {
		calls := 5 + 3*ranges // two of a create, two for each range, one for the deletion of each, two of a deletion, and none
		for number := 1; number <= calls; number++ {
			for _, unsent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d ranges, call %d, unsent %t", ranges, number, unsent), func(t *testing.T) {
					n, client := newNeutron(t)
					n.cut, n.unsent = number, unsent
					reach := func(deleted bool, want map[string]int) {
						t.Helper()
						for range 6 {
							if stepOf(t, client(), req, deleted) {
								break
							}
						}
						if diff := cmp.Diff(want, n.counts()); diff != "" {
							t.Errorf("deleted %t (-want +got):\n%s", deleted, diff)
						}
					}
					reach(false, map[string]int{"networks": 1, "subnets": ranges, "routers": 1, "interfaces": ranges})
					reach(true, map[string]int{"networks": 0, "subnets": 0, "routers": 0, "interfaces": 0})
				})
			}
		}
	}
}

// Only a lost answer to the deletion of the network itself leaves open whether that is gone.
func TestLostAnswerToADeletion(t *testing.T) {
	for number, uncertain := range []bool{false, false, true} { // to detach the router, to delete it, and to delete the network
		n, client := newNeutron(t)
		c := client()
		made, err := c.CreateNetwork(t.Context(), routed())
		if err != nil {
			t.Fatal(err)
		}
		n.cut = n.changes + number + 1
		err = c.DeleteNetwork(t.Context(), made.ID)
		if err == nil || cloud.Uncertain(err) != uncertain {
			t.Errorf("change %d: %v, uncertain %t, want %t", number+1, err, cloud.Uncertain(err), uncertain)
		}
	}
}

func TestDeletionOfANetworkWithoutItsRouterMade(t *testing.T) {
	for number := 1; number <= 4; number++ {
		for _, unsent := range []bool{false, true} {
			n, client := newNeutron(t)
			n.cut, n.unsent = number, unsent
			stepOf(t, client(), routed(), false)
			for range 5 {
				if stepOf(t, client(), routed(), true) {
					break
				}
			}
			if diff := cmp.Diff(map[string]int{"networks": 0, "subnets": 0, "routers": 0, "interfaces": 0}, n.counts()); diff != "" {
				t.Errorf("killed at call %d, unsent %t: left (-want +got):\n%s", number, unsent, diff)
			}
		}
	}
}

func TestRouterThatOthersUseIsNotDeleted(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	n.attachAnother()
	err = c.DeleteNetwork(t.Context(), made.ID)
	if !cloud.Is(err, cloud.Conflict) || cloud.CodeOf(err) != cloud.CodeRouterInUse || !strings.Contains(err.Error(), "router "+made.Router.ID+" of the network is attached to network ") {
		t.Errorf("DeleteNetwork: %v, want Conflict with the router", err)
	}
	if got := n.counts(); got["interfaces"] != 2 || got["routers"] != 1 {
		t.Errorf("left %v, want all as it was", got)
	}
	n.all["ports"] = n.all["ports"][:1]
	if err := c.DeleteNetwork(t.Context(), made.ID); err != nil {
		t.Errorf("DeleteNetwork after the others left: %v", err)
	}
	if got := n.counts(); got["routers"] != 0 {
		t.Errorf("left %v, want no router", got)
	}
}

// Two creates of one object may have made two networks of one name, each with a router.
func TestRouterOfATwinStays(t *testing.T) {
	for name, ignores := range ignored() {
		t.Run(name, func(t *testing.T) { testRouterOfATwin(t, ignores) })
	}
}

// ignored are the kinds of which a service ignores the queries.
func ignored() map[string]map[string]bool {
	return map[string]map[string]bool{"none": {}, "routers": {"routers": true}, "ports": {"ports": true}, "all": {"routers": true, "ports": true}}
}

func testRouterOfATwin(t *testing.T, ignores map[string]bool) {
	n, client := newNeutron(t)
	n.ignores = ignores
	c := client()
	first, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.CreateNetwork(t.Context(), routed())
	if err != nil || second.Router.ID == first.Router.ID {
		t.Fatalf("%+v, %v, want a router of its own", second, err)
	}
	if err := c.DeleteNetwork(t.Context(), second.ID); err != nil {
		t.Fatalf("DeleteNetwork: %v", err)
	}
	got, err := c.GetNetwork(t.Context(), first.ID)
	if diff := cmp.Diff(first, got); diff != "" || err != nil {
		t.Errorf("the other network: %v (-want +got):\n%s", err, diff)
	}
	if left := n.counts(); left["routers"] != 1 {
		t.Errorf("left %v, want one router", left)
	}
}

func TestRouterOfSomebodyElseIsNotTouched(t *testing.T) {
	for name, ignores := range ignored() {
		t.Run(name, func(t *testing.T) { testRouterOfSomebodyElse(t, ignores) })
	}
}

func testRouterOfSomebodyElse(t *testing.T, ignores map[string]bool) {
	n, client := newNeutron(t)
	n.ignores = ignores
	c := client()
	theirs := n.add("routers", object{"name": "net", "description": "of a person", "external_gateway_info": object{"network_id": externalID}})
	s := n.add("subnets", object{"network_id": n.add("networks", object{"name": "theirs"}).text("id"), "cidr": "10.8.0.0/24"})
	n.act(theirs, "add_router_interface", object{"subnet_id": s.text("id")})
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil || made.Router.ID == n.all["routers"][0].text("id") {
		t.Fatalf("%+v, %v, want a router of its own", made, err)
	}
	if err := c.DeleteNetwork(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if left := n.counts(); left["routers"] != 1 || left["interfaces"] != 1 {
		t.Errorf("left %v, want the router of the person", left)
	}
}

func TestRouterIsCorrected(t *testing.T) {
	for name, change := range map[string]func(*neutron){
		"no external network": func(n *neutron) { n.all["routers"][0]["external_gateway_info"] = nil },
		"another one":         func(n *neutron) { n.all["routers"][0]["external_gateway_info"] = object{"network_id": "other"} },
		"renamed, detached":   func(n *neutron) { n.all["ports"], n.all["routers"][0]["name"] = nil, "renamed" },
		"detached":            func(n *neutron) { n.all["ports"] = nil },
		"deleted":             func(n *neutron) { n.all["ports"], n.all["routers"] = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			n, client := newNeutron(t)
			c := client()
			made, err := c.CreateNetwork(t.Context(), routed())
			if err != nil {
				t.Fatal(err)
			}
			change(n)
			if got, err := c.GetNetwork(t.Context(), made.ID); err != nil || got.Router.ConnectedTo("ext-net") {
				t.Errorf("%+v, %v, want it not connected", got.Router, err)
			}
			got, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: externalID})
			if err != nil || !got.Router.ConnectedTo("ext-net") {
				t.Errorf("%+v, %v, want it connected", got.Router, err)
			}
			if diff := cmp.Diff(map[string]int{"networks": 1, "subnets": 1, "routers": 1, "interfaces": 1}, n.counts()); diff != "" {
				t.Errorf("made (-want +got):\n%s", diff)
			}
		})
	}
}
