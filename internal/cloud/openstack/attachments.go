package openstack

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/privatecloud/operator/internal/cloud"
)

// attachment returns the networks of a new server with these interfaces, in the form of a
// create; without any, those of the default.
func (c *networkClient) attachment(ctx context.Context, op string, interfaces []cloud.Attachment) (any, *cloud.Error) {
	if len(interfaces) == 0 {
		switch c.defaultNetwork {
		case noNetwork, autoNetwork:
			return c.defaultNetwork, nil
		}
		id, err := c.defaultID(ctx, op)
		if err != nil {
			return nil, misconfigured("network.default", err)
		}
		interfaces = []cloud.Attachment{{NetworkID: id}}
	}
	attached := make([]servers.Network, 0, len(interfaces))
	for _, a := range interfaces {
		if !isID(a.NetworkID) {
			return nil, refuse(op, cloud.Rejected, "the id of the network is no id of this cloud")
		}
		one := servers.Network{UUID: a.NetworkID}
		switch len(a.Addresses) {
		case 0:
		case 1:
			one.FixedIP = a.Addresses[0]
		default:
			return nil, refuse(op, cloud.Unsupported, "this cloud gives an interface of a new server one address")
		}
		attached = append(attached, one)
	}
	return attached, nil
}

// defaultID returns the id of the network that the Cloud names for servers without one.
func (c *networkClient) defaultID(ctx context.Context, op string) (string, *cloud.Error) {
	var got struct {
		Networks []named `json:"networks"`
	}
	call := &call{
		about: aboutCloud, service: network, method: http.MethodGet, route: "network/networks", path: "networks",
		query: url.Values{"name": {c.defaultNetwork}}, op: op, out: &got, limit: maxList,
	}
	return c.ids.idOf(ctx, call, c.defaultNetwork, func() []named { return got.Networks })
}
