package network

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// anotherRange returns the field of the spec, and the range of the network, that differ and cannot be changed.
func anotherRange(net *pcapi.Network, n cloud.Network) (field, has, want string) {
	switch spec := &net.Spec; {
	case !cloud.SameRange(spec.CIDR, n.CIDR):
		return "cidr", n.CIDR, spec.CIDR
	case spec.IPv6CIDR != "" && n.IPv6CIDR != "" && !cloud.SameRange(spec.IPv6CIDR, n.IPv6CIDR):
		return "ipv6CIDR", n.IPv6CIDR, spec.IPv6CIDR
	}
	return "", "", ""
}

func sameGateway(net *pcapi.Network, n cloud.Network) bool {
	return sameAddress(net.Spec.Gateway, n.Gateway)
}

// sameAddress compares values, not text: a cloud may shorten an IPv6 address.
func sameAddress(a, b string) bool {
	want, wantErr := netip.ParseAddr(a)
	have, haveErr := netip.ParseAddr(b)
	if wantErr != nil || haveErr != nil {
		return a == b
	}
	return want == have
}

// sameNameservers compares values in their order, in which guests ask. Without any in the
// spec, those of the cloud stay.
func sameNameservers(net *pcapi.Network, n cloud.Network) bool {
	want, have := nameservers(net), n.DNSNameservers
	if n.IPv6CIDR != "" { // the cloud may keep those of the two ranges apart
		want, have = byVersion(want), byVersion(have)
	}
	return len(want) == 0 || slices.EqualFunc(want, have, sameAddress)
}

// byVersion returns the IPv6 addresses after all others.
func byVersion(addresses []string) []string {
	sorted := slices.Clone(addresses)
	is6 := func(text string) int {
		if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return is6(a) - is6(b) })
	return sorted
}

func nameservers(net *pcapi.Network) []string {
	var servers []string
	for _, server := range net.Spec.DNSNameservers {
		servers = append(servers, string(server))
	}
	return servers
}

// difference returns the changes by which a network becomes what the spec says.
func difference(net *pcapi.Network, n cloud.Network) cloud.UpdateNetwork {
	var change cloud.UpdateNetwork
	if n.IPv6CIDR == "" {
		change.IPv6CIDR = net.Spec.IPv6CIDR
	}
	if !sameGateway(net, n) {
		change.Gateway = net.Spec.Gateway
	}
	if !sameNameservers(net, n) {
		change.DNSNameservers = nameservers(net)
	}
	return change
}

// asked returns for each field of a change what it asks for, and what the network has.
func asked(change cloud.UpdateNetwork, n cloud.Network) []setting {
	var settings []setting
	if change.IPv6CIDR != "" {
		settings = append(settings, setting{"ipv6CIDR", change.IPv6CIDR, n.IPv6CIDR})
	}
	if change.Gateway != "" {
		settings = append(settings, setting{"gateway", change.Gateway, n.Gateway})
	}
	if len(change.DNSNameservers) > 0 {
		settings = append(settings, setting{"dnsNameservers", strings.Join(change.DNSNameservers, ","), strings.Join(n.DNSNameservers, ",")})
	}
	return settings
}

// setting is a field that a change sets.
type setting struct{ field, to, from string }

// externalNetwork returns what the router of a Network connects to, empty without a router.
func externalNetwork(net *pcapi.Network) string {
	if net.Spec.Router == nil {
		return ""
	}
	return net.Spec.Router.ExternalNetwork
}

// requestedID returns the id of the external network that the name in the spec was found to be, empty
// if it was not looked up yet. Names of networks can be changed, and given to others.
func requestedID(net *pcapi.Network) string {
	router := net.Status.Router
	if router == nil || router.RequestedNetwork == "" || router.RequestedNetwork != externalNetwork(net) {
		return ""
	}
	return router.RequestedNetworkID
}

// connected reports whether a network has the router that the spec asks for, if any.
func connected(net *pcapi.Network, n cloud.Network) bool {
	return net.Spec.Router == nil || n.Router.ConnectedTo(cmp.Or(requestedID(net), net.Spec.Router.ExternalNetwork))
}

// inSync reports whether nothing of a network differs that can be changed.
func inSync(net *pcapi.Network, n cloud.Network) bool {
	return len(asked(difference(net, n), n)) == 0 && connected(net, n)
}

// lacking returns the outcome for a spec with fields that the cloud cannot set; nil if there are none.
func lacking(net *pcapi.Network, obs *observation) error {
	if !obs.Available() {
		return nil
	}
	var fields []string
	has := obs.Resource != nil && obs.Resource.IPv6CIDR != "" // it cannot be removed from the spec then
	if net.Spec.IPv6CIDR != "" && !has && !obs.Capabilities().Has(cloud.DualStack) {
		fields = append(fields, "ipv6CIDR")
	}
	if len(net.Spec.DNSNameservers) > 0 && !obs.Capabilities().Has(cloud.NetworkDNS) {
		fields = append(fields, "dnsNameservers")
	}
	if net.Spec.Router != nil && !obs.Capabilities().Has(cloud.Routers) {
		fields = append(fields, "router")
	}
	if len(fields) == 0 {
		return nil
	}
	return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf(
		"Cloud %q cannot set %s: remove it from the spec, or name another Cloud in spec.cloudRef", obs.Cloud, strings.Join(fields, ", ")))
}

// hashed matches the names that operators give to networks, also with a domain; see nameInCloud.
var hashed = regexp.MustCompile(`(?i)-[0-9a-f]{12}($|\.)`)

// named returns the name of a network for a message. That of a network of another
// object contains the namespace and the name of the object, which may be those of
// another tenant.
func named(n cloud.Network) string {
	if hashed.MatchString(n.Name) {
		return "after another Network object"
	}
	return strconv.Quote(n.Name)
}
