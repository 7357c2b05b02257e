package openstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// UpdateNetwork changes the gateway, the DNS servers and the router, and adds the second range. It fails with Busy if
// somebody else changes the subnet at the same time.
func (c *networkClient) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	op := "update network " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Network{}, err
	}
	defer end()
	n, subnets, err := c.getNetwork(ctx, op, id)
	if err != nil {
		return cloud.Network{}, err
	}
	first, found := firstOf(subnets)
	if !found {
		return cloud.Network{}, refuse(op, cloud.Busy, "the network has no subnet yet")
	}
	var to neutronNetwork
	if change.ExternalNetwork != "" {
		if to, err = c.externalNetwork(ctx, op, change.ExternalNetwork); err != nil {
			return cloud.Network{}, err
		}
	}
	var own, others []string // nil for no change
	if len(change.DNSNameservers) > 0 {
		second, both := secondOf(subnets)
		own, others = byRange(change.DNSNameservers, change.IPv6CIDR != "" || both && second.ours())
	}
	changed, err := c.updateSubnet(ctx, op, first, change.Gateway, own)
	if err != nil {
		return cloud.Network{}, err
	}
	subnets[slices.IndexFunc(subnets, func(s subnet) bool { return s.ID == first.ID })] = changed
	if subnets, err = c.updateSecond(ctx, op, n, subnets, change.IPv6CIDR, others); err != nil {
		return cloud.Network{}, err
	}
	got := networkOf(n, subnets)
	if to.ID != "" {
		got.Router, err = c.connect(ctx, op, n, subnets, to)
	} else {
		got.Router, err = c.routerOf(ctx, op, n, subnets)
	}
	if err != nil {
		return cloud.Network{}, err
	}
	return got, nil
}

// updateSecond adds the second range to the subnets of a network, or changes its DNS servers.
func (c *networkClient) updateSecond(ctx context.Context, op string, n neutronNetwork, subnets []subnet, cidr string, nameservers []string) ([]subnet, *cloud.Error) {
	second, found := secondOf(subnets)
	switch {
	case found && cidr != "":
		return nil, refuse(op, cloud.Rejected, "the network has the IPv6 range %s, which cannot be changed", quote(second.CIDR))
	case cidr != "":
		made, err := c.createSecond(ctx, op, n, cidr, nameservers)
		return append(subnets, made), err
	case found && second.ours() && nameservers != nil && !slices.Equal(nameservers, second.Nameservers):
		changed, err := c.putSubnet(ctx, op, second, map[string]any{"dns_nameservers": nameservers})
		subnets[slices.IndexFunc(subnets, func(s subnet) bool { return s.ID == second.ID })] = changed
		return subnets, err
	}
	return subnets, nil
}

// updateSubnet changes the DNS servers and the gateway, in two calls: a gateway that is refused does not keep the others.
func (c *networkClient) updateSubnet(ctx context.Context, op string, s subnet, gateway string, nameservers []string) (subnet, *cloud.Error) {
	var err *cloud.Error
	if nameservers != nil && !slices.Equal(nameservers, s.Nameservers) {
		if s, err = c.putSubnet(ctx, op, s, map[string]any{"dns_nameservers": nameservers}); err != nil {
			return subnet{}, err
		}
	}
	if gateway == "" {
		return s, nil
	}
	addr, err := gatewayIn(op, s.CIDR, gateway)
	if err != nil {
		return subnet{}, err
	}
	changed, err := c.putSubnet(ctx, op, s, map[string]any{"gateway_ip": addr.String(), "allocation_pools": poolsFor(s, addr)})
	if err != nil && err.Code == "GatewayIpInUse" {
		err.Kind, err.Detail = cloud.Rejected, "the gateway "+s.Gateway+" is the address of a router, and cannot be changed while that is attached to the network"
	}
	return changed, err
}

// putSubnet changes a subnet, unless somebody else has changed it since it was read.
func (c *networkClient) putSubnet(ctx context.Context, op string, s subnet, fields map[string]any) (subnet, *cloud.Error) {
	var got struct {
		Subnet subnet `json:"subnet"`
	}
	call := &call{
		about: aboutNetwork, service: network, method: http.MethodPut, route: "network/subnets/{id}", path: "subnets/" + s.ID, op: op, out: &got,
		header: map[string]string{"If-Match": fmt.Sprintf("revision_number=%d", s.Revision)},
		body:   map[string]any{"subnet": fields},
	}
	if err := c.session.do(ctx, call); err != nil {
		if noSuch(err) { // the subnet, not the network
			err.Kind = cloud.Busy
		}
		return subnet{}, err
	}
	if got.Subnet.ID != s.ID {
		return subnet{}, unreadable(call, "the answer is about another subnet")
	}
	return got.Subnet, nil
}

// DeleteNetwork deletes a network with its subnets. The router goes first: the service refuses to delete a network with one. That
// is why the network is deleted also where routers cannot be listed: most networks have none.
func (c *networkClient) DeleteNetwork(ctx context.Context, id string) error {
	op := "delete network " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return err
	}
	defer end()
	routers, unlisted := c.routersOf(ctx, op, id)
	if unlisted != nil && (ctx.Err() != nil || cloud.Is(unlisted, cloud.Throttled, cloud.Unauthorized)) {
		return unlisted
	}
	if err := c.removeRouters(ctx, op, id, routers); err != nil {
		err.Uncertain = false // the deletion of the network was not sent
		return err
	}
	err = c.session.do(ctx, c.networkDeletion(op, id))
	if unlisted != nil && err != nil && err.Kind == cloud.Conflict && !cloud.Is(unlisted, cloud.Unsupported, cloud.Forbidden) {
		return unlisted // the next try may find the router
	}
	return asError(err)
}

func (c *networkClient) networkDeletion(op, id string) *call {
	return &call{about: aboutNetwork, service: network, method: http.MethodDelete, route: "network/networks/{id}", path: "networks/" + id, op: op}
}
