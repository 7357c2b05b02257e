package fake

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkCall is a call that needs networks.
func networkCall(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{cloud.Networks}}
}

// networkClient has the networks, and makes the calls about them.
type networkClient struct {
	calls    *calls
	settings *settings
	servers  *serverClient
	store    *store[cloud.Network]
	keys     keys[cloud.CreateNetwork, cloud.Network]
	// alter changes each new network.
	alter func(*cloud.Network)
}

// networkRead is a call that needs networks which servers can be created on.
func (c *networkClient) networkRead(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{c.calls.attaches()}}
}

// ListNetworks returns all networks, in the order in which they were added.
func (c *networkClient) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return do(ctx, c.calls, c.networkRead(ListNetworks, "", "list networks"), func() ([]cloud.Network, error) {
		return c.store.all(), nil
	})
}

// GetNetwork returns the network of this id.
func (c *networkClient) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	op := "get network " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Network{}, err
	}
	return do(ctx, c.calls, c.networkRead(GetNetwork, id, op), func() (cloud.Network, error) {
		return c.network(op, id)
	})
}

// CreateNetwork creates a network, or returns the one that the key created before.
func (c *networkClient) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	op := "create network " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Network{}, err
	}
	send := networkCall(CreateNetwork, req.Name, op)
	send.needs = append(send.needs, req.Needs()...)
	return do(ctx, c.calls, send, func() (cloud.Network, error) {
		return c.createNetwork(op, req)
	})
}

// createNetwork creates a network. The caller holds mu.
func (c *networkClient) createNetwork(op string, req cloud.CreateNetwork) (cloud.Network, error) {
	if !c.settings.caps.Has(cloud.Idempotency) {
		req.IdempotencyKey = ""
	}
	switch made, found, reused := c.keys.find(req.IdempotencyKey, req); {
	case reused:
		return cloud.Network{}, failure(op, cloud.KeyReused, "the key belongs to a create with another request")
	case found:
		if n, ok := c.store.get(made.id); ok && c.store.place(made.id) == made.at {
			return n, nil
		}
		return made.res, nil
	}
	if err := cmp.Or(checkGateway(op, req.CIDR, req.Gateway), checkNameservers(op, req.DNSNameservers), checkExternal(op, req.ExternalNetwork)); err != nil {
		return cloud.Network{}, err
	}
	if n, ok := c.halfMade(req.Name); ok {
		n.CIDR, n.IPv6CIDR, n.Gateway, n.DNSNameservers, n.Router, n.HalfMade = req.CIDR, req.IPv6CIDR, req.Gateway, req.DNSNameservers, cloud.Router{ExternalNetwork: req.ExternalNetwork}, false
		c.store.put(n.ID, n)
		c.keys.put(req.IdempotencyKey, req, n.ID, c.store.place(n.ID), n)
		return n, nil
	}
	if err := nameOf(c.settings, op, req.Name, req.Name, c.store, func(n cloud.Network) string { return n.Name }); err != nil {
		return cloud.Network{}, err
	}
	n := cloud.Network{ID: c.store.newID(), Name: req.Name, CIDR: req.CIDR, IPv6CIDR: req.IPv6CIDR, Gateway: req.Gateway, DNSNameservers: req.DNSNameservers, Router: cloud.Router{ExternalNetwork: req.ExternalNetwork}, CreatedAt: c.settings.clock()}
	if c.alter != nil {
		c.alter(&n)
	}
	c.store.put(n.ID, n)
	c.keys.put(req.IdempotencyKey, req, n.ID, c.store.place(n.ID), n)
	return n, nil
}

// UpdateNetwork changes the network of this id.
func (c *networkClient) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	op := "update network " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Network{}, err
	}
	send := networkCall(UpdateNetwork, id, op)
	send.needs = append(send.needs, change.Needs()...)
	return do(ctx, c.calls, send, func() (cloud.Network, error) {
		n, err := c.network(op, id)
		if err != nil {
			return cloud.Network{}, err
		}
		next := n
		if change.Gateway != "" {
			next.Gateway = change.Gateway
		}
		if change.IPv6CIDR != "" && n.IPv6CIDR != "" && !cloud.SameRange(change.IPv6CIDR, n.IPv6CIDR) {
			return cloud.Network{}, failure(op, cloud.Rejected, "the network has the range %s", n.IPv6CIDR)
		}
		next.IPv6CIDR = cmp.Or(n.IPv6CIDR, change.IPv6CIDR)
		if len(change.DNSNameservers) > 0 {
			next.DNSNameservers = change.DNSNameservers
		}
		if change.ExternalNetwork != "" {
			next.Router = cloud.Router{ID: n.Router.ID, ExternalNetwork: change.ExternalNetwork}
		}
		if err := cmp.Or(checkGateway(op, next.CIDR, next.Gateway), checkNameservers(op, next.DNSNameservers), checkExternal(op, change.ExternalNetwork)); err != nil {
			return cloud.Network{}, err
		}
		if c.calls.faults.ignored[UpdateNetwork] {
			return n, nil
		}
		c.store.put(id, next)
		return next, nil
	})
}

// DeleteNetwork deletes the network of this id, unless servers are attached.
func (c *networkClient) DeleteNetwork(ctx context.Context, id string) error {
	op := "delete network " + quote(id)
	if err := checkID(op, id); err != nil {
		return err
	}
	_, err := do(ctx, c.calls, networkCall(DeleteNetwork, id, op), func() (struct{}, error) {
		if _, err := c.network(op, id); err != nil {
			return struct{}{}, err
		}
		if n := c.servers.attachedTo(id); n > 0 {
			return struct{}{}, failure(op, cloud.Conflict, "%d servers are attached", n)
		}
		if !c.calls.faults.ignored[DeleteNetwork] {
			c.store.remove(id)
		}
		return struct{}{}, nil
	})
	return err
}

// halfMade returns the half-made network of this name. The caller holds mu.
func (c *networkClient) halfMade(name string) (cloud.Network, bool) {
	for _, n := range c.store.all() {
		if n.Name == name && n.HalfMade {
			return n, true
		}
	}
	return cloud.Network{}, false
}

// network returns a network. The caller holds mu.
func (c *networkClient) network(op, id string) (cloud.Network, error) {
	n, ok := c.store.get(id)
	if !ok {
		return cloud.Network{}, failure(op, cloud.NotFound, "no such network")
	}
	return n, nil
}

func checkNameservers(op string, servers []string) error {
	for _, server := range servers {
		if _, err := netip.ParseAddr(server); err != nil {
			return failure(op, cloud.Rejected, "the DNS server %q is no address", server)
		}
	}
	return nil
}

// ExternalNetwork is the name of the only external network.
const ExternalNetwork = "ext-net"

func checkExternal(op, external string) error {
	if external != "" && external != ExternalNetwork {
		return failure(op, cloud.Rejected, "no external network is named %q; there are: %s", external, ExternalNetwork)
	}
	return nil
}

func checkGateway(op, cidr, gateway string) error {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return failure(op, cloud.Rejected, "%q is not a range of addresses", cidr)
	}
	address, err := netip.ParseAddr(gateway)
	if err != nil || !prefix.Contains(address) {
		return failure(op, cloud.Rejected, "the gateway %q is not inside %s", gateway, cidr)
	}
	return nil
}
