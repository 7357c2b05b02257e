package network

import (
	"fmt"
	"net/netip"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// refusedGateway returns the outcome for a gateway that is no address of a router: that of the
// network itself, which in IPv6 is an anycast address of all routers, or in IPv4 the broadcast
// address; nil for any other. Networks with one or two addresses have neither.
func refusedGateway(net *pcapi.Network) error {
	within, _ := netip.ParsePrefix(net.Spec.CIDR)
	gateway, _ := netip.ParseAddr(net.Spec.Gateway)
	if !within.IsValid() || !gateway.IsValid() || within.Addr().BitLen()-within.Bits() <= 1 {
		return nil
	}
	what := ""
	switch {
	case gateway == within.Masked().Addr():
		what = "the address of the network itself"
	case gateway.Is4() && within.Contains(gateway) && !within.Contains(gateway.Next()):
		what = "the broadcast address of the network"
	default:
		return nil
	}
	return reconciler.Stalled(pcapi.RejectedReason, controller.RecheckRefused, fmt.Errorf(
		"gateway %s is %s %s: set spec.gateway to another address of it, such as %s", gateway, what, within.Masked(), within.Masked().Addr().Next()))
}
