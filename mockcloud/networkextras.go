package mockcloud

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// networkExtras are the fields of a network that need capabilities of their own. Nil is
// that a request has no such field.
type networkExtras struct {
	IPv6CIDR       *string  `json:"ipv6CIDR"`
	DNSNameservers []string `json:"dnsNameservers"`
	Router         *Router  `json:"router"`
}

// maxNameservers bounds the DNS servers of a network.
const maxNameservers = 5

// check returns an error if a network cannot have these fields.
func (e networkExtras) check(c *core, n Network) error {
	if e.IPv6CIDR != nil {
		if !c.has(DualStack) {
			return unsupported("ipv6CIDR")
		}
		if err := checkIPv6(*e.IPv6CIDR, n); err != nil {
			return err
		}
	}
	if e.DNSNameservers != nil && !c.has(NetworkDNS) {
		return unsupported("dnsNameservers")
	}
	if len(e.DNSNameservers) > maxNameservers {
		return invalid("dnsNameservers: at most %d", maxNameservers)
	}
	for _, server := range e.DNSNameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			return invalid("dnsNameservers: %v", err)
		}
	}
	switch {
	case e.Router == nil:
	case !c.has(Routers):
		return unsupported("router")
	default:
		return c.checkExternal(e.Router.ExternalNetwork)
	}
	return nil
}

// checkExternal returns an error if there is no external network of a name.
func (c *core) checkExternal(name string) error {
	if slices.Contains(c.external, name) {
		return nil
	}
	return problem(http.StatusUnprocessableEntity, CodeExternalNetworkUnknown, "no external network is named %q; there are: %s", name, strings.Join(c.external, ", "))
}

// checkIPv6 returns an error if a network cannot have an IPv6 range.
func checkIPv6(cidr string, n Network) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return invalid("ipv6CIDR: %v", err)
	}
	first, _ := netip.ParsePrefix(n.CIDR) // was checked before
	switch {
	case !prefix.Addr().Is6() || prefix.Bits() != 64 || prefix != prefix.Masked():
		return invalid("ipv6CIDR: %s is not an IPv6 range with a prefix of 64 bits", cidr)
	case first.Addr().Is6():
		return invalid("ipv6CIDR: cidr has IPv6 addresses already")
	case n.IPv6CIDR != "" && n.IPv6CIDR != cidr:
		return invalid("ipv6CIDR: the network has the range %s, which cannot be changed", n.IPv6CIDR)
	}
	return nil
}

// apply sets the fields that a request has.
func (e networkExtras) apply(n *Network) {
	if e.IPv6CIDR != nil {
		n.IPv6CIDR = *e.IPv6CIDR
	}
	if e.DNSNameservers != nil {
		n.DNSNameservers = e.DNSNameservers
	}
	if e.Router != nil {
		n.Router = e.Router
	}
}

// shown returns a network as answers have it: without fields of capabilities that are off.
func (ns *networks) shown(n *Network) any { return ns.core.shownNetwork(n) }

func (c *core) shownNetwork(n *Network) any {
	shown := *n
	if !c.has(DualStack) {
		shown.IPv6CIDR = ""
	}
	if !c.has(NetworkDNS) {
		shown.DNSNameservers = nil
	}
	if !c.has(Routers) {
		shown.Router = nil
	}
	return c.quirks.Load().shapeNetwork(&shown)
}
