package vsphere

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// A port group has no range of addresses, so vSphere has no networks in the sense of
// the capability Networks.
func noNetworks(op string) error {
	return refuse(op, cloud.Unsupported, "a vCenter has no networks with a range of addresses: use the network of the template or of the Cloud")
}

// ListNetworks fails with Unsupported.
func (c *Client) ListNetworks(context.Context) ([]cloud.Network, error) {
	return nil, noNetworks("list networks")
}

// GetNetwork fails with Unsupported.
func (c *Client) GetNetwork(context.Context, string) (cloud.Network, error) {
	return cloud.Network{}, noNetworks("get network")
}

// CreateNetwork fails with Unsupported.
func (c *Client) CreateNetwork(context.Context, cloud.CreateNetwork) (cloud.Network, error) {
	return cloud.Network{}, noNetworks("create network")
}

// UpdateNetwork fails with Unsupported.
func (c *Client) UpdateNetwork(context.Context, string, string) (cloud.Network, error) {
	return cloud.Network{}, noNetworks("update network")
}

// DeleteNetwork fails with Unsupported.
func (c *Client) DeleteNetwork(context.Context, string) error { return noNetworks("delete network") }
