package openstack

import (
	"net/netip"
	"strings"
)

// thisHost is a range that reaches this host on some systems.
var thisHost = netip.MustParsePrefix("0.0.0.0/8")

// isLocal reports whether a host of a URL is the operator's own or one of its link, as far as
// the URL itself says: loopback, link-local and unspecified addresses, and localhost. A number
// that is no address counts as one, because some resolvers read 127.1 as 127.0.0.1.
func isLocal(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		return strings.HasPrefix(last, "0x") || last != "" && strings.Trim(last, "0123456789") == ""
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified() || thisHost.Contains(address)
}
