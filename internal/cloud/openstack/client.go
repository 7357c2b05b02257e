package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// Client is one project in one region. It is safe for concurrent use.
type Client struct {
	cfg       Config
	session   *session
	images    *imageClient
	flavors   *flavorClient
	networks  *networkClient
	groups    *serverGroupClient
	security  *securityGroupClient
	allowed   *allowedAddressClient
	floating  *floatingIPClient
	snapshots *snapshotClient
	volumes   *volumeClient
	pace      pace
}

var (
	_ cloud.Client               = (*Client)(nil)
	_ cloud.LoadReporter         = (*Client)(nil)
	_ cloud.PublicAddressRemover = (*Client)(nil)
	_ cloud.RouterRemover        = (*Client)(nil)
	_ cloud.ServerStreamer       = (*Client)(nil)
)

// New returns a client of the project that cfg describes. It makes no call. Its errors
// say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := newSession(cfg)
	if err != nil {
		return nil, err
	}
	networks := newNetworkClient(s, cfg.Network)
	return &Client{
		cfg: cfg, session: s, pace: defaultPace,
		images: newImageClient(s, cfg.Image), flavors: newFlavorClient(s, cfg), networks: networks,
		groups: newServerGroupClient(s), security: newSecurityGroupClient(s, cfg.SecurityGroups), allowed: newAllowedAddressClient(s, cfg.AllowedAddresses), floating: &floatingIPClient{session: s, networks: networks},
		snapshots: &snapshotClient{session: s}, volumes: newVolumeClient(s),
	}, nil
}

// ListNetworks returns the networks of the project, and those of others that it may use.
func (c *Client) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return c.networks.ListNetworks(ctx)
}

// GetNetwork returns the network of this id.
func (c *Client) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	return c.networks.GetNetwork(ctx, id)
}

// CreateNetwork makes a network and its subnet.
func (c *Client) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	return c.networks.CreateNetwork(ctx, req)
}

// UpdateNetwork changes a network.
func (c *Client) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	return c.networks.UpdateNetwork(ctx, id, change)
}

// DeleteNetwork deletes a network with its subnets.
func (c *Client) DeleteNetwork(ctx context.Context, id string) error {
	return c.networks.DeleteNetwork(ctx, id)
}

// DeleteRouters deletes the routers that were made for a network which is gone.
func (c *Client) DeleteRouters(ctx context.Context, networkID string) error {
	return c.networks.DeleteRouters(ctx, networkID)
}

// DeletePublicAddresses deletes the floating addresses that were made for a server.
func (c *Client) DeletePublicAddresses(ctx context.Context, serverID string) error {
	return c.floating.DeletePublicAddresses(ctx, serverID)
}

// Close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. It ends with ctx, of which it leaves five seconds for the session,
// and ignores the cloud's answer. Later calls fail with Unavailable. The second Close
// does nothing.
func (c *Client) Close(ctx context.Context) { c.session.close(ctx) }

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.session.exchange.transport.Load() }
