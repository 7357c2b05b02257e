package openstack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const ipv6Range = "fd00:10::/64"

func dualStack() cloud.CreateNetwork {
	req := routed()
	req.IPv6CIDR = ipv6Range
	return req
}

func wantMade(t *testing.T, n *neutron, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, n.counts()); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
}

func TestIPv6Range(t *testing.T) {
	for _, sameSecond := range []bool{false, true} {
		t.Run(fmt.Sprintf("made in one second: %t", sameSecond), func(t *testing.T) { testIPv6Range(t, sameSecond) })
	}
}

func testIPv6Range(t *testing.T, sameSecond bool) {
	n, client := newNeutron(t)
	n.sameSecond = sameSecond
	c := client()
	req := dualStack()
	req.DNSNameservers = []string{"192.0.2.1", "fd00::53"}
	made, err := c.CreateNetwork(t.Context(), req)
	if err != nil || made.IPv6CIDR != ipv6Range || !made.Router.ConnectedTo("ext-net") {
		t.Fatalf("CreateNetwork: %+v, %v", made, err)
	}
	s := n.all["subnets"][1]
	want := object{
		"ip_version": 6.0, "cidr": ipv6Range, "ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac", "description": "private-cloud-operator ipv6CIDR",
		"dns_nameservers": []any{"fd00::53"}, "name": "net", "network_id": made.ID,
	}
	for field, value := range want {
		if diff := cmp.Diff(value, s[field]); diff != "" {
			t.Errorf("%s of the subnet (-want +got):\n%s", field, diff)
		}
	}
	if diff := cmp.Diff([]any{"192.0.2.1"}, n.all["subnets"][0]["dns_nameservers"]); diff != "" {
		t.Errorf("DNS servers of the first range (-want +got):\n%s", diff)
	}
	got, err := c.GetNetwork(t.Context(), made.ID)
	if diff := cmp.Diff(made, got); diff != "" || err != nil {
		t.Errorf("GetNetwork: %v (-want +got):\n%s", err, diff)
	}
	for _, servers := range [][]string{{"192.0.2.2"}, {"fd00::54"}, {"192.0.2.2", "fd00::54"}} {
		got, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{DNSNameservers: servers})
		if diff := cmp.Diff(servers, got.DNSNameservers); diff != "" || err != nil || got.IPv6CIDR != ipv6Range || !got.Router.ConnectedTo("ext-net") {
			t.Errorf("UpdateNetwork: %+v, %v, DNS servers (-want +got):\n%s", got, err, diff)
		}
	}
	if _, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{IPv6CIDR: "fd00:11::/64"}); !cloud.Is(err, cloud.Rejected) {
		t.Errorf("another range: %v, want Rejected", err)
	}
}

// The router is attached to a range that is added later.
func TestIPv6RangeIsAddedLater(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	servers := []string{"192.0.2.1", "fd00::53"}
	if got, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{DNSNameservers: servers, IPv6CIDR: ipv6Range}); err != nil || !cmp.Equal(servers, got.DNSNameservers) {
		t.Errorf("UpdateNetwork: %+v, %v, want it with DNS servers of both versions", got, err)
	}
	for range 3 {
		if stepOf(t, c, dualStack(), false) {
			break
		}
	}
	got, err := c.GetNetwork(t.Context(), made.ID)
	if err != nil || got.IPv6CIDR != ipv6Range || got.Router != made.Router {
		t.Errorf("GetNetwork: %+v, %v, want it with the range and the router %+v", got, err, made.Router)
	}
	wantMade(t, n, map[string]int{"networks": 1, "subnets": 2, "routers": 1, "interfaces": 2})
}

// A refused range leaves the network with the first one. A change of the network adds another.
func TestIPv6RangeThatIsRefused(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	n.seen = func(*http.Request) {
		delete(n.refused, "POST subnets")
		if len(n.all["subnets"]) == 1 {
			n.refused["POST subnets"] = http.StatusBadRequest
		}
	}
	if _, err := c.CreateNetwork(t.Context(), dualStack()); !cloud.Is(err, cloud.Rejected) || !cloud.Uncertain(err) {
		t.Errorf("CreateNetwork: %v, want Rejected, and the network may exist", err)
	}
	n.seen = nil
	delete(n.refused, "POST subnets")
	for range 4 {
		if stepOf(t, c, dualStack(), false) {
			break
		}
	}
	wantMade(t, n, map[string]int{"networks": 1, "subnets": 2, "routers": 1, "interfaces": 2})
}

// An IPv6 subnet that a person added is the IPv6 range, and the router is not attached to it.
func TestSubnetOfAPersonIsTheIPv6Range(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	n.add("subnets", object{"network_id": made.ID, "cidr": "fd00:99::/64"})
	got, err := c.GetNetwork(t.Context(), made.ID)
	if err != nil || got.IPv6CIDR != "fd00:99::/64" || got.Router != made.Router {
		t.Errorf("GetNetwork: %+v, %v, want the range and the router %+v", got, err, made.Router)
	}
	if _, err := c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"}); err != nil {
		t.Errorf("UpdateNetwork: %v", err)
	}
	wantMade(t, n, map[string]int{"networks": 1, "subnets": 2, "routers": 1, "interfaces": 1})
}

// A gateway that is refused keeps neither the range nor its DNS servers nor its router.
func TestGatewayThatIsRefusedKeepsNoOtherChange(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), routed())
	if err != nil {
		t.Fatal(err)
	}
	change := cloud.UpdateNetwork{Gateway: "10.0.0.9", IPv6CIDR: ipv6Range, DNSNameservers: []string{"192.0.2.1", "fd00::53"}}
	if _, err := c.UpdateNetwork(t.Context(), made.ID, change); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "is the address of a router") {
		t.Errorf("UpdateNetwork: %v, want the gateway Rejected", err)
	}
	got, err := c.GetNetwork(t.Context(), made.ID)
	if err != nil || got.IPv6CIDR != ipv6Range || !cmp.Equal(change.DNSNameservers, got.DNSNameservers) {
		t.Errorf("GetNetwork: %+v, %v, want the other changes", got, err)
	}
	if want := (cloud.Router{ID: made.Router.ID}); got.Router != want {
		t.Errorf("the router is %+v, want it to be shown as not connected: it lacks the new range", got.Router)
	}
	if got, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{ExternalNetwork: "ext-net"}); err != nil || got.Router != made.Router {
		t.Errorf("UpdateNetwork: %+v, %v, want the router connected", got, err)
	}
	wantMade(t, n, map[string]int{"networks": 1, "subnets": 2, "routers": 1, "interfaces": 2})
}

// A network whose first subnet somebody deleted is completed.
func TestNetworkThatLostItsFirstSubnetIsCompleted(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	req := aNetwork
	req.IPv6CIDR = ipv6Range
	made, err := c.CreateNetwork(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	n.all["subnets"] = n.all["subnets"][1:]
	if got, err := c.GetNetwork(t.Context(), made.ID); err != nil || !got.HalfMade {
		t.Errorf("GetNetwork: %+v, %v, want it half-made", got, err)
	}
	got, err := c.CreateNetwork(t.Context(), req)
	if diff := cmp.Diff(made, got); diff != "" || err != nil {
		t.Errorf("CreateNetwork: %v (-want +got):\n%s", err, diff)
	}
	wantMade(t, n, map[string]int{"networks": 1, "subnets": 2, "routers": 0, "interfaces": 0})
}

// DNS servers that no subnet of the operator can have are refused with the reason.
func TestNameserversOfTheSubnetOfAPerson(t *testing.T) {
	n, client := newNeutron(t)
	c := client()
	made, err := c.CreateNetwork(t.Context(), dualStack())
	if err != nil {
		t.Fatal(err)
	}
	n.all["subnets"][1]["description"] = "edited"
	_, err = c.UpdateNetwork(t.Context(), made.ID, cloud.UpdateNetwork{DNSNameservers: []string{"fd00::53"}})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "its description is not") {
		t.Errorf("UpdateNetwork: %v, want Rejected", err)
	}
}

// A network of IPv6 alone has no IPv6 range.
func TestNetworkOfIPv6HasNoOtherRange(t *testing.T) {
	_, client := newNeutron(t)
	c := client()
	req := aNetwork
	req.CIDR, req.Gateway = "fd00:1::/64", "fd00:1::1"
	made, err := c.CreateNetwork(t.Context(), req)
	if err != nil || made.IPv6CIDR != "" {
		t.Errorf("CreateNetwork: %+v, %v, want one range", made, err)
	}
}
