package network

import (
	"net/netip"
	"regexp"
	"strconv"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// sameRange and sameGateway compare values, not text: a cloud may shorten an
// IPv6 address.
func sameRange(net *pcapi.Network, n cloud.Network) bool {
	want, wantErr := netip.ParsePrefix(net.Spec.CIDR)
	have, haveErr := netip.ParsePrefix(n.CIDR)
	if wantErr != nil || haveErr != nil {
		return net.Spec.CIDR == n.CIDR
	}
	return want.Masked() == have.Masked()
}

func sameGateway(net *pcapi.Network, n cloud.Network) bool {
	want, wantErr := netip.ParseAddr(net.Spec.Gateway)
	have, haveErr := netip.ParseAddr(n.Gateway)
	if wantErr != nil || haveErr != nil {
		return net.Spec.Gateway == n.Gateway
	}
	return want == have
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
