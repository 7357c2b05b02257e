package openstack

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// has is what a member of a project can do, whichever OpenStack it is.
var has = cloud.NewCapabilities(
	cloud.Async, cloud.Events, cloud.Labels, cloud.Networks, cloud.NoStatus, cloud.Operations, cloud.Power, cloud.Resize, cloud.Sessions, cloud.Sizing,
	cloud.WithUserData, cloud.Addresses, cloud.Zones, cloud.WithAntiAffinity, cloud.Snapshots, cloud.Revert, cloud.Suspend, cloud.WithInterfaces, cloud.StaticAddresses, cloud.Flavors,
	cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.NetworkDNS, cloud.Routers, cloud.DualStack, cloud.Console,
)

// Capabilities proves that the identity and the compute service accept the credentials,
// and that the default image, flavor, security groups and network, and the key pair, exist.
func (c *Client) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	const op = "get capabilities"
	ctx, end, err := c.session.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.probe(ctx, op); err != nil {
		return nil, err
	}
	c.volumes.probe(ctx, op)
	disks, err := c.volumes.hasDisks(ctx, op)
	switch {
	case err != nil:
		return nil, err
	case disks:
		all := append(slices.Clone(has), cloud.WithDisks, cloud.WithRootDisk, cloud.DiskTypes)
		if kept, _ := c.volumes.canKeep(ctx, op); kept {
			all = append(all, cloud.KeepDisks)
		}
		return cloud.NewCapabilities(all...), nil
	}
	return cloud.NewCapabilities(has...), nil
}

func (c *Client) probe(ctx context.Context, op string) *cloud.Error {
	call := &call{
		about: aboutCloud, service: compute, method: http.MethodGet, route: "compute/servers", path: "servers",
		query: url.Values{"limit": {"1"}}, op: op, limit: maxBody,
	}
	call.stream = func(body io.Reader) *cloud.Error {
		_, err := readList(call, body, "servers", func([]byte) error { return nil })
		return err
	}
	if err := c.session.do(ctx, call); err != nil {
		return err
	}
	if c.images.defaultImage != "" {
		if _, err := c.images.imageFor(ctx, op, ""); err != nil {
			return err
		}
	}
	if c.flavors.defaultFlavor != "" {
		if _, err := c.flavors.flavorFor(ctx, op, wish{}); err != nil {
			return err
		}
	}
	if _, err := c.security.forNew(ctx, op, ""); err != nil {
		return err
	}
	if err := c.findKeyPair(ctx, op); err != nil {
		return err
	}
	_, err := c.networks.attachment(ctx, op, nil)
	return err
}

// findKeyPair fails if the account does not have the key pair of new Windows servers.
func (c *Client) findKeyPair(ctx context.Context, op string) *cloud.Error {
	if c.cfg.KeyPair == "" {
		return nil
	}
	err := c.session.do(ctx, &call{
		about: aboutServer, service: compute, method: http.MethodGet, route: "compute/os-keypairs/{name}", path: "os-keypairs/" + url.PathEscape(c.cfg.KeyPair), op: op,
	})
	if err != nil && err.Kind == cloud.NotFound {
		err = refuse(op, cloud.Rejected, "the operator's account has no key pair %s: create it with this account", quote(c.cfg.KeyPair))
	}
	return misconfigured("keyPair", err)
}

// ListHosts is for administrators of the cloud.
func (c *Client) ListHosts(context.Context) ([]cloud.Host, error) {
	return nil, refuse("list hosts", cloud.Unsupported, "this cloud lacks hosts")
}
