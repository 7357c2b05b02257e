package openstack

import "net/netip"

// pool is a range of addresses that the network service gives to servers.
type pool struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// poolsFor returns the pools of a subnet with another gateway: the service refuses a
// gateway inside a pool. Pools that a person chose are kept but for the new gateway;
// pools of all addresses stay such.
func poolsFor(s subnet, gateway netip.Addr) []pool {
	cidr, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return s.Pools
	}
	all := []pool{allOf(cidr)}
	if before, err := netip.ParseAddr(s.Gateway); err == nil && samePools(without(all, before), s.Pools) {
		return without(all, gateway)
	}
	return without(s.Pools, gateway)
}

// without returns pools that do not have an address.
func without(pools []pool, addr netip.Addr) []pool {
	left := []pool{}
	for _, p := range pools {
		start, errStart := netip.ParseAddr(p.Start)
		end, errEnd := netip.ParseAddr(p.End)
		if errStart != nil || errEnd != nil || addr.Less(start) || end.Less(addr) {
			left = append(left, p)
			continue
		}
		if start.Less(addr) {
			left = append(left, pool{start.String(), addr.Prev().String()})
		}
		if addr.Less(end) {
			left = append(left, pool{addr.Next().String(), end.String()})
		}
	}
	return left
}

// allOf returns the addresses that servers of a network can have: all but the network's
// own and, of IPv4, the one for broadcasts. Networks of one or two addresses have
// neither.
func allOf(cidr netip.Prefix) pool {
	cidr = cidr.Masked()
	first, last := cidr.Addr(), lastOf(cidr)
	const smallest = 2 // bits
	if cidr.Addr().BitLen()-cidr.Bits() >= smallest {
		first = first.Next()
		if cidr.Addr().Is4() {
			last = last.Prev()
		}
	}
	return pool{first.String(), last.String()}
}

func lastOf(cidr netip.Prefix) netip.Addr {
	bytes := cidr.Addr().AsSlice()
	for bit := cidr.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// samePools compares pools, which the service may return in any order.
func samePools(a, b []pool) bool {
	if len(a) != len(b) {
		return false
	}
	known := make(map[pool]bool, len(a))
	for _, p := range a {
		known[p] = true
	}
	for _, p := range b {
		if !known[p] {
			return false
		}
	}
	return true
}
