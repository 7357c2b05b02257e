package probe

import (
	"fmt"
	"net/netip"
	"strings"
)

// Networks are the networks whose addresses may be dialled. The zero value allows none.
type Networks struct {
	prefixes []netip.Prefix
	excluded *Exclusion
}

// never are ranges whose addresses are dialled in no network. The first reaches this host on
// some systems. The others contain IPv4 addresses, which gateways may translate to: to those of
// a link, for example.
var never = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("::/96"),          // IPv4-compatible
	netip.MustParsePrefix("64:ff9b::/96"),   // NAT64
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 of a network of its own
	netip.MustParsePrefix("2001::/32"),      // Teredo
	netip.MustParsePrefix("2002::/16"),      // 6to4
}

// ParseNetworks reads networks in CIDR notation, separated by commas. An empty text is none.
func ParseNetworks(text string) (Networks, error) {
	var networks Networks
	if strings.TrimSpace(text) == "" {
		return networks, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		prefix, err := netip.ParsePrefix(part)
		switch {
		case err != nil:
			return Networks{}, fmt.Errorf("%q is not a network in CIDR notation, such as 10.20.0.0/16", part)
		case prefix.Addr().Is4In6():
			return Networks{}, fmt.Errorf("%q is an IPv4 network in the form of IPv6: write it as IPv4, such as 10.20.0.0/16", part)
		case prefix != prefix.Masked():
			return Networks{}, fmt.Errorf("%q is not the first address of its network: write %s", part, prefix.Masked())
		}
		networks.prefixes = append(networks.prefixes, prefix)
	}
	return networks, nil
}

// Except returns the networks without what is excluded.
func (n Networks) Except(e *Exclusion) Networks {
	n.excluded = e
	return n
}

// Empty reports whether there are no networks.
func (n Networks) Empty() bool { return len(n.prefixes) == 0 }

// Complete reports whether all is known that is excluded. Until then, Allows may report addresses
// as allowed that are not.
func (n Networks) Complete() bool {
	select {
	case <-n.excluded.completed():
		return true
	default:
		return false
	}
}

// Allows reports whether an address may be dialled: it is in one of the networks, and not
// excluded. Addresses that are unspecified, loopback, link-local or multicast, the broadcast address, addresses with a zone
// and those that contain an IPv4 address are never allowed, whatever the networks are.
func (n Networks) Allows(address netip.Addr) bool {
	return n.inside(address) && !n.excluded.Contains(address)
}

// inside is Allows without the exclusion.
func (n Networks) inside(address netip.Addr) bool {
	if !address.IsGlobalUnicast() || address.Is4In6() || address.Zone() != "" || anyContains(never, address) {
		return false
	}
	return anyContains(n.prefixes, address)
}

func anyContains(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
