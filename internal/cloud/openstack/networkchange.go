package openstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// UpdateNetwork changes the gateway, the DNS servers and the router, and adds the IPv6 range. It fails with Busy if
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
	var own, ofIPv6 []string // nil for no change
	if len(change.DNSNameservers) > 0 {
		has, found := ipv6Of(subnets)
		if _, theirs := byRange(change.DNSNameservers, true); found && !has.ours() && len(theirs) > 0 {
			return cloud.Network{}, refuse(op, cloud.Rejected,
				"subnet %s of the IPv6 range is not that of the operator, which gives it no DNS servers: its description is not %q", has.ID, ipv6Mark)
		}
		own, ofIPv6 = byRange(change.DNSNameservers, change.IPv6CIDR != "" || found && has.ours())
	}
	if subnets, err = c.updateNameservers(ctx, op, subnets, first, own); err != nil {
		return cloud.Network{}, err
	}
	if subnets, err = c.updateIPv6(ctx, op, n, subnets, change.IPv6CIDR, ofIPv6); err != nil {
		return cloud.Network{}, err
	}
	if subnets, err = c.updateGateway(ctx, op, subnets, change.Gateway); err != nil {
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

// updateIPv6 adds the IPv6 range to the subnets of a network, or changes its DNS servers. That a network has the range already is no
// failure: an earlier call may have added it.
func (c *networkClient) updateIPv6(ctx context.Context, op string, n neutronNetwork, subnets []subnet, cidr string, nameservers []string) ([]subnet, *cloud.Error) {
	has, found := ipv6Of(subnets)
	switch {
	case found && cidr != "" && !cloud.SameRange(has.CIDR, cidr):
		return nil, refuse(op, cloud.Rejected, "the network has the IPv6 range %s, which cannot be changed", quote(has.CIDR))
	case found && has.ours():
		return c.updateNameservers(ctx, op, subnets, has, nameservers)
	case found || cidr == "":
		return subnets, nil
	}
	made, err := c.createIPv6(ctx, op, n, cidr, nameservers)
	return append(subnets, made), err
}

// updateNameservers changes the DNS servers of one of some subnets, unless there is no change. It returns the subnets as they are then.
func (c *networkClient) updateNameservers(ctx context.Context, op string, subnets []subnet, s subnet, nameservers []string) ([]subnet, *cloud.Error) {
	if nameservers == nil || slices.Equal(nameservers, s.Nameservers) {
		return subnets, nil
	}
	changed, err := c.putSubnet(ctx, op, s, map[string]any{"dns_nameservers": nameservers})
	return replaced(subnets, changed), err
}

// updateGateway changes the gateway of the first subnet. It comes last: a gateway that is refused does not keep other changes.
func (c *networkClient) updateGateway(ctx context.Context, op string, subnets []subnet, gateway string) ([]subnet, *cloud.Error) {
	if gateway == "" {
		return subnets, nil
	}
	s, _ := firstOf(subnets)
	addr, err := gatewayIn(op, s.CIDR, gateway)
	if err != nil {
		return nil, err
	}
	changed, err := c.putSubnet(ctx, op, s, map[string]any{"gateway_ip": addr.String(), "allocation_pools": poolsFor(s, addr)})
	if err != nil && err.Code == "GatewayIpInUse" {
		err.Kind, err.Detail = cloud.Rejected, "the gateway "+s.Gateway+" is the address of a router, and cannot be changed while that is attached to the network"
	}
	return replaced(subnets, changed), err
}

// replaced returns the subnets with one as it was changed.
func replaced(subnets []subnet, changed subnet) []subnet {
	all := slices.Clone(subnets)
	for i := range all {
		if all[i].ID == changed.ID {
			all[i] = changed
		}
	}
	return all
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
