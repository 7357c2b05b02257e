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
	DNSNameservers []string `json:"dnsNameservers"`
	Router         *Router  `json:"router"`
}

// maxNameservers bounds the DNS servers of a network.
const maxNameservers = 5

// check returns an error if the cloud cannot have such a network.
func (e networkExtras) check(c *core) error {
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

// apply sets the fields that a request has.
func (e networkExtras) apply(n *Network) {
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
	if !c.has(NetworkDNS) {
		shown.DNSNameservers = nil
	}
	if !c.has(Routers) {
		shown.Router = nil
	}
	return c.quirks.Load().shapeNetwork(&shown)
}
