package mockcloud

import (
	"net/netip"
	"testing"
	"time"
)

func TestServersHaveDifferentAddressesOfTheirNetwork(t *testing.T) {
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"n","cidr":"192.0.2.0/29","gateway":"192.0.2.1"}`).body)
	in, seen := netip.MustParsePrefix(n.CIDR), map[string]bool{n.Gateway: true, "192.0.2.0": true, "192.0.2.7": true}
	create := func(name string) Server {
		return decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"`+name+`","networkId":"`+n.ID+`"}`).body)
	}
	var last Server
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		last = create(name)
		address := last.Interfaces[0].Addresses[0]
		if seen[address] || !in.Contains(netip.MustParseAddr(address)) {
			t.Errorf("server %s has %s, want a free address of %s", name, address, n.CIDR)
		}
		seen[address] = true
	}
	if full := create("f"); len(full.Interfaces) != 1 || len(full.Interfaces[0].Addresses) > 0 {
		t.Errorf("interfaces %v of a server on a network without free addresses, want one without addresses", full.Interfaces)
	}
	h.call(204, "DELETE", "/servers/"+last.ID, "")
	if got := create("g").Interfaces[0].Addresses[0]; got != last.Interfaces[0].Addresses[0] {
		t.Errorf("address %s, want %s, the only free one", got, last.Interfaces[0].Addresses[0])
	}
}

func TestServerHasNoAddressWhileItIsBuilt(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute)}})
	built := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"web"}`).body)
	if len(built.Interfaces) > 0 {
		t.Errorf("BUILDING: interfaces %v, want none", built.Interfaces)
	}
	h.clock.Advance(time.Hour)
	ready := decodeInto[Server](t, h.call(200, "GET", "/servers/"+built.ID, "").body)
	if len(ready.Interfaces) != 1 || !netip.MustParsePrefix(defaultRange).Contains(netip.MustParseAddr(ready.Interfaces[0].Addresses[0])) {
		t.Errorf("ACTIVE: interfaces %v, want one in %s", ready.Interfaces, defaultRange)
	}
}
