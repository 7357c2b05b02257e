package mockcloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNetworkWithAProhibitedNameIsRejected(t *testing.T) {
	h := start(t, Options{})
	if got := codeIn(t, h.call(403, "POST", "/networks", `{"name":"forbidden","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`)); got != CodeNameProhibited {
		t.Errorf("got %s, want %s", got, CodeNameProhibited)
	}
	if got := h.cloud.Networks(); len(got) != 0 {
		t.Errorf("networks %+v, want none", got)
	}
}

func TestNetworksCanBeChangedWithoutTheAPI(t *testing.T) {
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/admin/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`).body)
	h.clock.Advance(time.Second)
	n.CIDR, n.Gateway = "not checked", "either"
	put, err := h.cloud.PutNetwork(n)
	if err != nil {
		t.Fatal(err)
	}
	n.UpdatedAt = epoch.Add(time.Second)
	if diff := cmp.Diff([]Network{n}, []Network{put}); diff != "" {
		t.Errorf("PutNetwork (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Network{n}, h.cloud.Networks()); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	h.call(201, "POST", "/servers", `{"name":"web","networkId":"`+n.ID+`"}`)
	h.call(409, "DELETE", "/networks/"+n.ID, "")
	h.call(204, "DELETE", "/admin/networks/"+n.ID, "")
	h.call(404, "DELETE", "/admin/networks/"+n.ID, "")
	h.call(404, "DELETE", "/networks/"+n.ID, "")

	var ops []string
	for _, e := range h.cloud.Ledger() {
		ops = append(ops, e.By+" "+string(e.Op))
	}
	if diff := cmp.Diff([]string{"admin createNetwork", "client create", "admin deleteNetwork"}, ops); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestServersForNamesOfANetwork(t *testing.T) {
	const create = `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1","dnsNameservers":["10.0.0.53"]}`
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/networks", create).body)
	if diff := cmp.Diff([]string{"10.0.0.53"}, n.DNSNameservers); diff != "" {
		t.Errorf("created with (-want +got):\n%s", diff)
	}
	path := "/networks/" + n.ID
	for body, code := range map[string]string{
		`{"dnsNameservers":["resolver"]}`: CodeInvalid, `{"dnsNameservers":["10.0.0.1","10.0.0.2","10.0.0.3","10.0.0.4","10.0.0.5","10.0.0.6"]}`: CodeInvalid,
		`{"gateway":""}`: CodeInvalid, `{}`: CodeInvalid, `{"router":null}`: CodeInvalid, `{"gateway":null,"dnsNameservers":null}`: CodeInvalid,
	} {
		if got := codeIn(t, h.send("PATCH", path, body)); got != code {
			t.Errorf("%s: got %q, want %s", body, got, code)
		}
	}
	n = decodeInto[Network](t, h.call(200, "PATCH", path, `{"dnsNameservers":["fd00::53","10.0.0.53"]}`).body)
	if diff := cmp.Diff([]string{"fd00::53", "10.0.0.53"}, n.DNSNameservers); diff != "" || n.Gateway != "10.0.0.1" {
		t.Errorf("changed to gateway %s and (-want +got):\n%s", n.Gateway, diff)
	}
	if err := h.cloud.SetCapability(NetworkDNS, false); err != nil {
		t.Fatal(err)
	}
	if n := decodeInto[Network](t, h.call(200, "GET", path, "").body); n.DNSNameservers != nil {
		t.Errorf("without the capability, the network has %v", n.DNSNameservers)
	}
	if got := codeIn(t, h.send("POST", "/networks", create)); got != CodeUnsupported {
		t.Errorf("a create without the capability: got %q, want %s", got, CodeUnsupported)
	}
}

func TestIPv6RangeOfANetwork(t *testing.T) {
	const create = `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/networks", create).body)
	path := "/networks/" + n.ID
	for _, cidr := range []string{"", "fd00::", "10.1.0.0/16", "fd00:10::/48", "fd00:10::1/64", "::ffff:10.0.0.0/64"} {
		if got := codeIn(t, h.send("PATCH", path, fmt.Sprintf(`{"ipv6CIDR":%q}`, cidr))); got != CodeInvalid {
			t.Errorf("%q: got %q, want %s", cidr, got, CodeInvalid)
		}
	}
	for range 2 {
		if n = decodeInto[Network](t, h.call(200, "PATCH", path, `{"ipv6CIDR":"fd00:10::/64"}`).body); n.IPv6CIDR != "fd00:10::/64" || n.CIDR != "10.0.0.0/8" {
			t.Errorf("changed to %+v, want both ranges", n)
		}
	}
	made := decodeInto[Server](t, h.call(201, "POST", "/servers", fmt.Sprintf(`{"name":"s","cpu":1,"memory":1024,"networkId":%q}`, n.ID)).body)
	if got := made.Interfaces[0].Addresses; len(got) != 2 || !strings.HasPrefix(got[0], "10.") || !strings.HasPrefix(got[1], "fd00:10::f816:3eff:fe") {
		t.Errorf("a server on the network has the addresses %q, want one of each range", got)
	}
	if got := codeIn(t, h.send("PATCH", path, `{"ipv6CIDR":"fd00:11::/64"}`)); got != CodeInvalid {
		t.Errorf("another range: got %q, want %s", got, CodeInvalid)
	}
	if got := codeIn(t, h.send("POST", "/networks", `{"name":"v6","cidr":"fd00:1::/64","gateway":"fd00:1::1","ipv6CIDR":"fd00:10::/64"}`)); got != CodeInvalid {
		t.Errorf("beside a range of IPv6: got %q, want %s", got, CodeInvalid)
	}
	if err := h.cloud.SetCapability(DualStack, false); err != nil {
		t.Fatal(err)
	}
	if n := decodeInto[Network](t, h.call(200, "GET", path, "").body); n.IPv6CIDR != "" {
		t.Errorf("without the capability, the network has the range %s", n.IPv6CIDR)
	}
	if got := codeIn(t, h.send("PATCH", path, `{"ipv6CIDR":"fd00:10::/64"}`)); got != CodeUnsupported {
		t.Errorf("a change without the capability: got %q, want %s", got, CodeUnsupported)
	}
}
