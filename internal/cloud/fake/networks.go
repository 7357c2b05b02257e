package fake

import (
	"context"
	"net/netip"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkCall is a call that needs networks.
func networkCall(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{cloud.Networks}}
}

// networkRead is a call that needs networks which servers can be created on.
func (c *Cloud) networkRead(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{c.attaches()}}
}

// attaches returns the capability that a server on a network needs.
func (c *Cloud) attaches() cloud.Capability {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caps.Has(cloud.NetworkAttach) {
		return cloud.NetworkAttach
	}
	return cloud.Networks
}

// ListNetworks returns all networks, in the order in which they were added.
func (c *Cloud) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return do(ctx, c, c.networkRead(ListNetworks, "", "list networks"), func() ([]cloud.Network, error) {
		return c.networks.all(), nil
	})
}

// GetNetwork returns the network of this id.
func (c *Cloud) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	op := "get network " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Network{}, err
	}
	return do(ctx, c, c.networkRead(GetNetwork, id, op), func() (cloud.Network, error) {
		return c.network(op, id)
	})
}

// CreateNetwork creates a network, or returns the one that the key created before.
func (c *Cloud) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	op := "create network " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Network{}, err
	}
	return do(ctx, c, networkCall(CreateNetwork, req.Name, op), func() (cloud.Network, error) {
		return c.createNetwork(op, req)
	})
}

// createNetwork creates a network. The caller holds mu.
func (c *Cloud) createNetwork(op string, req cloud.CreateNetwork) (cloud.Network, error) {
	if !c.caps.Has(cloud.Idempotency) {
		req.IdempotencyKey = ""
	}
	switch made, found, reused := c.networkKeys.find(req.IdempotencyKey, req); {
	case reused:
		return cloud.Network{}, failure(op, cloud.KeyReused, "the key belongs to a create with another request")
	case found:
		if n, ok := c.networks.get(made.id); ok && c.networks.place(made.id) == made.at {
			return n, nil
		}
		return made.res, nil
	}
	if err := checkGateway(op, req.CIDR, req.Gateway); err != nil {
		return cloud.Network{}, err
	}
	if n, ok := c.halfMade(req.Name); ok {
		n.CIDR, n.Gateway, n.HalfMade = req.CIDR, req.Gateway, false
		c.networks.put(n.ID, n)
		c.networkKeys.put(req.IdempotencyKey, req, n.ID, c.networks.place(n.ID), n)
		return n, nil
	}
	if err := nameOf(c, op, req.Name, req.Name, c.networks, func(n cloud.Network) string { return n.Name }); err != nil {
		return cloud.Network{}, err
	}
	n := cloud.Network{ID: c.networks.newID(), Name: req.Name, CIDR: req.CIDR, Gateway: req.Gateway, CreatedAt: c.clock()}
	if c.alterNetwork != nil {
		c.alterNetwork(&n)
	}
	c.networks.put(n.ID, n)
	c.networkKeys.put(req.IdempotencyKey, req, n.ID, c.networks.place(n.ID), n)
	return n, nil
}

// UpdateNetwork sets the gateway of the network of this id.
func (c *Cloud) UpdateNetwork(ctx context.Context, id, gateway string) (cloud.Network, error) {
	op := "update network " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Network{}, err
	}
	return do(ctx, c, networkCall(UpdateNetwork, id, op), func() (cloud.Network, error) {
		n, err := c.network(op, id)
		if err != nil {
			return cloud.Network{}, err
		}
		if err := checkGateway(op, n.CIDR, gateway); err != nil {
			return cloud.Network{}, err
		}
		if !c.faults.ignored[UpdateNetwork] {
			n.Gateway = gateway
			c.networks.put(id, n)
		}
		return n, nil
	})
}

// DeleteNetwork deletes the network of this id, unless servers are attached.
func (c *Cloud) DeleteNetwork(ctx context.Context, id string) error {
	op := "delete network " + quote(id)
	if err := checkID(op, id); err != nil {
		return err
	}
	_, err := do(ctx, c, networkCall(DeleteNetwork, id, op), func() (struct{}, error) {
		if _, err := c.network(op, id); err != nil {
			return struct{}{}, err
		}
		if n := c.attached(id); n > 0 {
			return struct{}{}, failure(op, cloud.Conflict, "%d servers are attached", n)
		}
		if !c.faults.ignored[DeleteNetwork] {
			c.networks.remove(id)
		}
		return struct{}{}, nil
	})
	return err
}

// halfMade returns the half-made network of this name. The caller holds mu.
func (c *Cloud) halfMade(name string) (cloud.Network, bool) {
	for _, n := range c.networks.all() {
		if n.Name == name && n.HalfMade {
			return n, true
		}
	}
	return cloud.Network{}, false
}

// network returns a network. The caller holds mu.
func (c *Cloud) network(op, id string) (cloud.Network, error) {
	n, ok := c.networks.get(id)
	if !ok {
		return cloud.Network{}, failure(op, cloud.NotFound, "no such network")
	}
	return n, nil
}

// attached returns how many servers are attached to a network. The caller holds mu.
func (c *Cloud) attached(id string) int {
	n := 0
	for _, s := range c.servers.items {
		if s.item.NetworkID == id || c.joined(s.item.ID, id) {
			n++
		}
	}
	return n
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
