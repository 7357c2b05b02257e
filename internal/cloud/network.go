package cloud

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// Network is a network as the cloud reports it.
type Network struct {
	// ID is chosen by the cloud and never changes.
	ID   string
	Name string
	// CIDR is the range of addresses. It never changes. It is empty where the cloud did
	// not say.
	CIDR string
	// IPv6CIDR is a range beside CIDR, of IPv6 addresses that guests choose by themselves. It is empty where the network has none, or
	// the cloud did not say. It needs DualStack.
	IPv6CIDR string
	// Gateway is an address inside CIDR, empty where the cloud did not say.
	Gateway string
	// DNSNameservers are the DNS servers that servers on the network learn, in their
	// order. They are nil where the cloud has none or did not say. It needs NetworkDNS.
	DNSNameservers []string
	// Router is the one that the operator made; zero if there is none. It needs Routers.
	Router Router
	// HalfMade: the cloud makes a network in several calls, and not all of them took
	// effect. CreateNetwork completes the network.
	HalfMade bool
	// Shared: the network belongs to somebody else, who lets servers of this account be
	// created on it.
	Shared bool
	// CreatedAt is zero where the cloud did not say.
	CreatedAt time.Time
}

// SameRange reports whether two texts are the same range of addresses: a cloud may shorten an IPv6 address.
func SameRange(a, b string) bool {
	first, err := netip.ParsePrefix(a)
	second, failed := netip.ParsePrefix(b)
	if err != nil || failed != nil {
		return a == b
	}
	return first.Masked() == second.Masked()
}

// Router connects a network to an external one. The operator makes it with the network, and
// removes it with the network.
type Router struct {
	// ID is empty where routers have none.
	ID string
	// ExternalNetwork is the name of the external network, and ExternalID its id. Both are
	// empty if the router is not connected to one, and one of them may be if the cloud did
	// not say.
	ExternalNetwork, ExternalID string
	// Unknown: the cloud does not show its routers at the moment. The other fields are empty.
	Unknown bool
}

// ConnectedTo reports whether the router connects to an external network of this name or id.
func (r Router) ConnectedTo(external string) bool {
	return external != "" && (r.ExternalNetwork == external || strings.EqualFold(r.ExternalID, external))
}

// CodeExternalNetworkUnknown is the code of a refusal because the cloud has no external network of a name or id.
const CodeExternalNetworkUnknown = "externalNetworkUnknown"

// CodeRouterInUse is the code of a Conflict in which a router keeps a network from being deleted. Its text says what to do.
const CodeRouterInUse = "routerInUse"

// RouterRemover is a client of a cloud in which the router of a network outlives the network, if
// somebody else deletes that.
type RouterRemover interface {
	// DeleteRouters deletes the routers that were made for a network which is gone; it may be
	// repeated. It fails with Conflict while others use one.
	DeleteRouters(ctx context.Context, networkID string) error
}

// CreateNetwork describes a new network. The first three fields are required.
type CreateNetwork struct {
	Name    string
	CIDR    string
	Gateway string
	// IPv6CIDR is a range beside CIDR, with a prefix of 64 bits, and CIDR is of IPv4 then. It needs DualStack.
	IPv6CIDR string
	// DNSNameservers are addresses, at most MaxNameservers. They need NetworkDNS.
	DNSNameservers []string
	// ExternalNetwork is the name or id of the external network that a router connects the
	// network to. It needs Routers.
	ExternalNetwork string

	// IdempotencyKey makes the call safe to send again, as with CreateServer.
	IdempotencyKey string
}

// MaxNameservers bounds the DNS servers of a network.
const MaxNameservers = 5

// Needs returns the capabilities beside Networks that a create needs.
func (r CreateNetwork) Needs() []Capability {
	return networkNeeds(r.IPv6CIDR, r.DNSNameservers, r.ExternalNetwork)
}

func networkNeeds(ipv6 string, nameservers []string, external string) []Capability {
	var needs []Capability
	if ipv6 != "" {
		needs = append(needs, DualStack)
	}
	if len(nameservers) > 0 {
		needs = append(needs, NetworkDNS)
	}
	if external != "" {
		needs = append(needs, Routers)
	}
	return needs
}

// UpdateNetwork describes changes of a network. What is zero stays as it is.
type UpdateNetwork struct {
	Gateway string
	// IPv6CIDR is added as the IPv6 range of a network that has none. To ask for the range that the network has changes nothing.
	// It needs DualStack.
	IPv6CIDR string
	// DNSNameservers replace those of the network. They need NetworkDNS.
	DNSNameservers []string
	// ExternalNetwork is the name or id of the external network that the router of the
	// network connects to. The router is made if there is none. It needs Routers.
	ExternalNetwork string
}

// Needs returns the capabilities beside Networks that a change needs.
func (u UpdateNetwork) Needs() []Capability {
	return networkNeeds(u.IPv6CIDR, u.DNSNameservers, u.ExternalNetwork)
}

// NetworkReader reads networks. Its calls need Networks or NetworkAttach.
type NetworkReader interface {
	// ListNetworks returns all networks that servers can be created on, each of them
	// valid: it has an id, a name and, unless the cloud does not say or it is half-made,
	// a CIDR and a gateway.
	ListNetworks(ctx context.Context) ([]Network, error)
	// GetNetwork fails with NotFound only when the cloud itself says so.
	GetNetwork(ctx context.Context, id string) (Network, error)
}

// NetworkWriter changes networks. Its calls need Networks.
type NetworkWriter interface {
	// CreateNetwork is sent more than once only with a key that the cloud
	// honours. It completes the half-made network of the name, if there is one. On an
	// error with Uncertain set, a network may have been created, also half.
	CreateNetwork(ctx context.Context, req CreateNetwork) (Network, error)
	// UpdateNetwork changes the network and returns it as it is then.
	UpdateNetwork(ctx context.Context, id string, change UpdateNetwork) (Network, error)
	// DeleteNetwork deletes a network with its router. It fails with NotFound when there is
	// nothing to delete, and with Conflict while servers are attached, or others use the
	// router.
	DeleteNetwork(ctx context.Context, id string) error
}
