package openstack

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// CreateNetwork makes a network, its subnets and its router, or what follows the network of
// this name if that has no subnet. The name is the first proof of what the network is for, and the
// description, which has the key, the second.
func (c *networkClient) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	op := "create network " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Network{}, err
	}
	gateway, err := gatewayIn(op, req.CIDR, req.Gateway)
	if err != nil {
		return cloud.Network{}, err
	}
	ctx, end, err := c.session.begin(ctx, op)
	if err != nil {
		return cloud.Network{}, err
	}
	defer end()
	var to neutronNetwork
	if req.ExternalNetwork != "" {
		if to, err = c.externalNetwork(ctx, op, req.ExternalNetwork); err != nil {
			return cloud.Network{}, err
		}
		if _, err = c.listRouters(ctx, op, url.Values{"name": {req.Name}}); err != nil {
			return cloud.Network{}, err // else a network would be made that cannot get its router
		}
	}
	made, subnets, err := c.halfMade(ctx, op, req)
	if err != nil {
		return cloud.Network{}, err
	}
	if made != nil {
		s, err := c.createSubnet(ctx, op, *made, req, gateway)
		if err != nil {
			return cloud.Network{}, err
		}
		return c.completed(ctx, op, *made, append(subnets, s), req, to)
	}
	if made, err = c.createBare(ctx, op, req); err != nil {
		return cloud.Network{}, err
	}
	s, err := c.createSubnet(ctx, op, *made, req, gateway)
	if err == nil {
		return c.completed(ctx, op, *made, []subnet{s}, req, to)
	}
	if !err.Uncertain && err.Kind != cloud.Throttled && c.bare(ctx, op, made.ID) && c.session.do(ctx, c.networkDeletion(op, made.ID)) == nil {
		return cloud.Network{}, err // nothing is left of a refused create
	}
	err.Uncertain = true
	return cloud.Network{}, err
}

// completed returns a network with its subnets, and makes its IPv6 range and its router. Where that fails, the
// network exists: a change of it makes what it lacks.
func (c *networkClient) completed(ctx context.Context, op string, n neutronNetwork, subnets []subnet, req cloud.CreateNetwork, to neutronNetwork) (cloud.Network, error) {
	_, ofIPv6 := byRange(req.DNSNameservers, true)
	subnets, failed := c.updateIPv6(ctx, op, n, subnets, req.IPv6CIDR, ofIPv6)
	if failed != nil {
		failed.Uncertain = true
		return cloud.Network{}, failed
	}
	got := networkOf(n, subnets)
	if to.ID == "" {
		return got, nil
	}
	var err *cloud.Error
	if got.Router, err = c.connect(ctx, op, n, subnets, to); err != nil {
		err.Uncertain = true
		return cloud.Network{}, err
	}
	return got, nil
}

// bare reports whether a network has no subnet: another request may have completed it.
func (c *networkClient) bare(ctx context.Context, op, id string) bool {
	subnets, err := c.listSubnets(ctx, op, aboutCloud, url.Values{"network_id": {id}})
	return err == nil && len(subnets) == 0
}

// description marks a network that was made for a create with this key.
func description(key string) string {
	if key == "" {
		return ""
	}
	return ownerMark + " " + key
}

// halfMade returns the network of the request that lacks its first subnet, and the others of it; nil if there is
// none. Of several it is the oldest.
func (c *networkClient) halfMade(ctx context.Context, op string, req cloud.CreateNetwork) (*neutronNetwork, []subnet, *cloud.Error) {
	named, err := c.listNetworks(ctx, op, url.Values{"name": {req.Name}})
	if err != nil || len(named) == 0 {
		return nil, nil, err
	}
	slices.SortFunc(named, func(a, b neutronNetwork) int { return a.CreatedAt.Compare(b.CreatedAt.Time) })
	for _, n := range named {
		if n.Name != req.Name || (n.Description != description(req.IdempotencyKey) && n.Description != "") {
			continue
		}
		subnets, err := c.listSubnets(ctx, op, aboutCloud, url.Values{"network_id": {n.ID}})
		if err != nil {
			return nil, nil, err
		}
		if first, found := firstOf(subnets); !found || first.ours() {
			return &n, subnets, nil
		}
	}
	return nil, nil, nil
}

// createBare makes a network without a subnet. It is never sent twice.
func (c *networkClient) createBare(ctx context.Context, op string, req cloud.CreateNetwork) (*neutronNetwork, *cloud.Error) {
	var got struct {
		Network neutronNetwork `json:"network"`
	}
	call := &call{
		about: aboutCreate, service: network, method: http.MethodPost, route: "network/networks", path: "networks", op: op, out: &got,
		body: map[string]any{"network": map[string]any{"name": req.Name, "description": description(req.IdempotencyKey)}},
	}
	if err := c.session.do(ctx, call); err != nil {
		return nil, err
	}
	if !isID(got.Network.ID) {
		return nil, unreadable(call, "the answer has no id of a network")
	}
	return &got.Network, nil
}

// createSubnet makes the first subnet of a network. A repeated call makes no other one: the service
// refuses ranges that overlap.
func (c *networkClient) createSubnet(ctx context.Context, op string, n neutronNetwork, req cloud.CreateNetwork, gateway netip.Addr) (subnet, *cloud.Error) {
	version := 4
	if gateway.Is6() {
		version = 6
	}
	own, _ := byRange(req.DNSNameservers, req.IPv6CIDR != "")
	return c.postSubnet(ctx, op, n, own, map[string]any{
		"name": req.Name, "ip_version": version, "cidr": req.CIDR, "gateway_ip": gateway.String(), "description": description(req.IdempotencyKey),
	})
}

// createIPv6 makes the subnet of the IPv6 range of a network, whose guests choose their addresses by what the router announces.
func (c *networkClient) createIPv6(ctx context.Context, op string, n neutronNetwork, cidr string, nameservers []string) (subnet, *cloud.Error) {
	return c.postSubnet(ctx, op, n, nameservers, map[string]any{
		"name": n.Name, "ip_version": 6, "cidr": cidr, "description": ipv6Mark, "ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac",
	})
}

// byRange returns the DNS servers of the first and of the IPv6 range, neither of them nil. The service refuses those of the other IP
// version than that of the subnet: without an IPv6 range, all are of the first.
func byRange(nameservers []string, both bool) (first, ofIPv6 []string) {
	first, ofIPv6 = []string{}, []string{}
	for _, text := range nameservers {
		if addr, err := netip.ParseAddr(text); both && err == nil && addr.Is6() {
			ofIPv6 = append(ofIPv6, text)
		} else {
			first = append(first, text)
		}
	}
	return first, ofIPv6
}

// postSubnet makes a subnet. It is never sent twice.
func (c *networkClient) postSubnet(ctx context.Context, op string, n neutronNetwork, nameservers []string, body map[string]any) (subnet, *cloud.Error) {
	var got struct {
		Subnet subnet `json:"subnet"`
	}
	body["network_id"] = n.ID
	if len(nameservers) > 0 {
		body["dns_nameservers"] = nameservers
	}
	call := &call{
		about: aboutCreate, service: network, method: http.MethodPost, route: "network/subnets", path: "subnets", op: op, out: &got,
		body: map[string]any{"subnet": body},
	}
	if err := c.session.do(ctx, call); err != nil {
		return subnet{}, err
	}
	if got.Subnet.NetworkID != n.ID {
		return subnet{}, unreadable(call, "the answer is about the subnet of another network")
	}
	return got.Subnet, nil
}
