package openstack

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkClient makes calls about networks and their subnets, and finds the networks of new servers.
type networkClient struct {
	session *session
	// defaultNetwork is Config.Network.
	defaultNetwork string
	ids            *lookup
	// externalIDs are those of external networks.
	externalIDs *lookup
}

func newNetworkClient(s *session, defaultNetwork string) *networkClient {
	return &networkClient{session: s, defaultNetwork: defaultNetwork, ids: newLookup(s, "network"), externalIDs: newLookup(s, "external network")}
}

// neutronNetwork is a network in the JSON of the network service.
type neutronNetwork struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	CreatedAt   stamp  `json:"created_at"`
	ProjectID   string `json:"project_id"`
	Shared      bool   `json:"shared"`
	// External is nil if the account lacks the right get_network:router:external.
	External *bool `json:"router:external"`
}

// external reports whether the service shows that a network is external.
func (n neutronNetwork) external() bool { return n.External != nil && *n.External }

// internal reports whether the service shows that a network is not external.
func (n neutronNetwork) internal() bool { return n.External != nil && !*n.External }

// subnet is a range of addresses of a network.
type subnet struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	NetworkID   string `json:"network_id"`
	CIDR        string `json:"cidr"`
	Gateway     string `json:"gateway_ip"`
	// Nameservers are in the order in which servers ask them.
	Nameservers []string `json:"dns_nameservers"`
	Pools       []pool   `json:"allocation_pools"`
	CreatedAt   stamp    `json:"created_at"`
	Revision    int      `json:"revision_number"`
}

func (n neutronNetwork) marker() string { return idOrNone(n.ID) }

func (s subnet) marker() string { return idOrNone(s.ID) }

// idOrNone returns an id, empty if the text is none.
func idOrNone(text string) string {
	if isID(text) {
		return text
	}
	return ""
}

// networkOf joins a network and its subnets. Of several subnets the oldest counts, which
// is the one that was created with the network, and beside it the one of its IPv6 range.
func networkOf(n neutronNetwork, subnets []subnet) cloud.Network {
	joined := cloud.Network{ID: n.ID, Name: n.Name, CreatedAt: n.CreatedAt.Time}
	first, found := firstOf(subnets)
	if !found || first.ours() {
		joined.HalfMade = true
		return joined
	}
	joined.CIDR, joined.Gateway = first.CIDR, first.Gateway
	if len(first.Nameservers) > 0 {
		joined.DNSNameservers = first.Nameservers
	}
	if has, found := ipv6Of(subnets); found {
		joined.IPv6CIDR = has.CIDR
		if has.ours() {
			joined.DNSNameservers = slices.Concat(joined.DNSNameservers, has.Nameservers)
		}
	}
	return joined
}

// firstOf returns the oldest subnet, and that of ipv6CIDR only if there is no other: the service shows times in seconds, and both may be
// made in one.
func firstOf(subnets []subnet) (subnet, bool) {
	if len(subnets) == 0 {
		return subnet{}, false
	}
	if others := slices.DeleteFunc(slices.Clone(subnets), subnet.ours); len(others) > 0 {
		subnets = others
	}
	return slices.MinFunc(subnets, func(a, b subnet) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), strings.Compare(a.ID, b.ID))
	}), true
}

// is6 reports whether the subnet has IPv6 addresses.
func (s subnet) is6() bool {
	prefix, err := netip.ParsePrefix(s.CIDR)
	return err == nil && prefix.Addr().Is6()
}

// ours reports whether the operator made the subnet as the IPv6 range of a network.
func (s subnet) ours() bool { return s.Description == ipv6Mark }

// ipv6Of returns the IPv6 subnet beside the first one, if that is of IPv4: the one that the operator made, else the oldest.
func ipv6Of(subnets []subnet) (subnet, bool) {
	first, found := firstOf(subnets)
	if !found || first.is6() {
		return subnet{}, false
	}
	others := slices.DeleteFunc(slices.Clone(subnets), func(s subnet) bool { return !s.is6() })
	if ours := slices.DeleteFunc(slices.Clone(others), func(s subnet) bool { return !s.ours() }); len(ours) > 0 {
		return firstOf(ours)
	}
	return firstOf(others)
}

// toRoute returns the subnets that the router of a network is attached to: the first, and the IPv6 range that the operator made.
// Subnets that others added are left to them.
func toRoute(subnets []subnet) []subnet {
	var wanted []subnet
	if first, found := firstOf(subnets); found {
		wanted = append(wanted, first)
	}
	if has, found := ipv6Of(subnets); found && has.ours() {
		wanted = append(wanted, has)
	}
	return wanted
}

// ListNetworks returns the networks of the project, and those of others that it may use:
// shared and external ones.
func (c *networkClient) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	const op = "list networks"
	ctx, end, err := c.session.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer end()
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	networks, err := c.listPagesOfNetworks(ctx, op, url.Values{})
	if err != nil {
		return nil, err
	}
	// Subnets are listed after networks: a network that is made meanwhile is missing,
	// not half-made.
	subnets, err := c.listSubnets(ctx, op, aboutCloud, url.Values{})
	if err != nil {
		return nil, err
	}
	routing, err := c.routingOfAll(ctx, op, networks)
	if err != nil {
		return nil, err
	}
	byNetwork := map[string][]subnet{}
	for _, s := range subnets {
		byNetwork[s.NetworkID] = append(byNetwork[s.NetworkID], s)
	}
	all := make([]cloud.Network, 0, len(networks))
	for _, n := range networks {
		own := n.ProjectID == "" || n.ProjectID == project
		if !own && !n.Shared && !n.external() {
			continue // an administrator sees those of all projects
		}
		joined := networkOf(n, byNetwork[n.ID])
		if !own { // its subnets may not be shown
			joined.Shared, joined.HalfMade = true, false
		} else {
			joined.Router = routing.of(n, byNetwork[n.ID])
		}
		all = append(all, joined)
	}
	return all, nil
}

// GetNetwork returns the network of this id.
func (c *networkClient) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	op := "get network " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Network{}, err
	}
	defer end()
	n, subnets, err := c.getNetwork(ctx, op, id)
	if err != nil {
		return cloud.Network{}, err
	}
	got := networkOf(n, subnets)
	if got.Router, err = c.routerOf(ctx, op, n, subnets); err != nil {
		return cloud.Network{}, err
	}
	return got, nil
}

// getNetwork returns a network with its subnets.
func (c *networkClient) getNetwork(ctx context.Context, op, id string) (neutronNetwork, []subnet, *cloud.Error) {
	n, err := c.readNetwork(ctx, op, id)
	if err != nil {
		return neutronNetwork{}, nil, err
	}
	subnets, err := c.listSubnets(ctx, op, aboutNetwork, url.Values{"network_id": {id}})
	return n, subnets, err
}

// readNetwork returns a network without its subnets.
func (c *networkClient) readNetwork(ctx context.Context, op, id string) (neutronNetwork, *cloud.Error) {
	var got struct {
		Network neutronNetwork `json:"network"`
	}
	call := &call{
		about: aboutNetwork, service: network, method: http.MethodGet, route: "network/networks/{id}", path: "networks/" + id, op: op, out: &got,
	}
	if err := c.session.do(ctx, call); err != nil {
		return neutronNetwork{}, err
	}
	if got.Network.ID != id {
		return neutronNetwork{}, unreadable(call, cloud.OfAnotherID("network", id, got.Network.ID))
	}
	return got.Network, nil
}

// gatewayIn returns the gateway, if it is an address of the range.
func gatewayIn(op, cidr, gateway string) (netip.Addr, *cloud.Error) {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Addr{}, refuse(op, cloud.Rejected, "%s is no range of addresses", quote(cidr))
	}
	addr, err := netip.ParseAddr(gateway)
	if err != nil || !prefix.Contains(addr) {
		return netip.Addr{}, refuse(op, cloud.Rejected, "the gateway %s is no address of %s", quote(gateway), prefix)
	}
	return addr, nil
}

// listNetworks lists the networks of the project that match a query.
func (c *networkClient) listNetworks(ctx context.Context, op string, query url.Values) ([]neutronNetwork, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	query.Set("project_id", project)
	return c.listPagesOfNetworks(ctx, op, query)
}

func (c *networkClient) listPagesOfNetworks(ctx context.Context, op string, query url.Values) ([]neutronNetwork, *cloud.Error) {
	call := &call{about: aboutCloud, service: network, method: http.MethodGet, route: "network/networks", path: "networks", op: op}
	return listPages(ctx, c.session, call, query, "networks", neutronNetwork.marker)
}

func (c *networkClient) listSubnets(ctx context.Context, op string, about subject, query url.Values) ([]subnet, *cloud.Error) {
	call := &call{about: about, service: network, method: http.MethodGet, route: "network/subnets", path: "subnets", op: op}
	subnets, err := listPages(ctx, c.session, call, query, "subnets", subnet.marker)
	if err != nil && (err.Kind == cloud.NotFound || err.Kind == cloud.NotFoundUnproven) {
		err.Kind = cloud.Unreadable // of a listing, it says nothing about a network
	}
	return subnets, err
}
