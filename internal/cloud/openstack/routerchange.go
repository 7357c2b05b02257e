package openstack

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// externalNetwork returns the external network of a name or an id.
func (c *networkClient) externalNetwork(ctx context.Context, op, nameOrID string) (neutronNetwork, *cloud.Error) {
	if looksLikeID.MatchString(nameOrID) {
		n, err := c.readNetwork(ctx, op, nameOrID)
		if err != nil && noSuch(err) || err == nil && !n.External {
			return neutronNetwork{}, refuse(op, cloud.Rejected, "no external network has the id %s", quote(nameOrID))
		}
		return n, err
	}
	var got struct {
		Networks []named `json:"networks"`
	}
	call := &call{
		about: aboutCloud, service: network, method: http.MethodGet, route: "network/networks", path: "networks",
		query: url.Values{"name": {nameOrID}, "router:external": {"true"}}, op: op, out: &got, limit: maxList,
	}
	id, err := c.externalIDs.idOf(ctx, call, nameOrID, func() []named { return got.Networks })
	return neutronNetwork{ID: id, Name: nameOrID}, err
}

// connect attaches a network to a router of its own, which connects it to the external one. It
// makes the router unless an earlier call has.
func (c *networkClient) connect(ctx context.Context, op string, n neutronNetwork, s subnet, to neutronNetwork, key string) (cloud.Router, *cloud.Error) {
	r, attached, err := c.ownRouter(ctx, op, n, s)
	switch {
	case err != nil:
	case r == nil:
		r, err = c.createRouter(ctx, op, n.Name, to.ID, key)
	case r.externalID() != to.ID:
		err = c.routerCall(ctx, op, r.ID, "", map[string]any{"router": map[string]any{"external_gateway_info": map[string]any{"network_id": to.ID}}})
	}
	if err == nil && !attached {
		err = c.routerCall(ctx, op, r.ID, "/add_router_interface", map[string]any{"subnet_id": s.ID})
	}
	if err != nil {
		if err.Kind == cloud.Rejected {
			c.externalIDs.forget()
		}
		return cloud.Router{}, err
	}
	return cloud.Router{ID: r.ID, ExternalNetwork: to.Name, ExternalID: to.ID}, nil
}

// ownRouter returns the router that is attached to the subnet, or else the oldest that is
// attached to none: an interrupted call has left it. One with the subnet of another network
// belongs to that one. It returns nil if there is none.
func (c *networkClient) ownRouter(ctx context.Context, op string, n neutronNetwork, s subnet) (own *router, attached bool, err *cloud.Error) {
	routers, err := c.listRouters(ctx, op, url.Values{"name": {n.Name}})
	if err != nil && noSuch(err) {
		return nil, false, refuse(op, cloud.Unsupported, "the network service of this cloud has no routers")
	}
	for _, r := range routers {
		if !r.madeFor(n.Name) {
			continue
		}
		ports, err := c.interfaces(ctx, op, r.ID)
		switch {
		case err != nil:
			return nil, false, err
		case slices.ContainsFunc(ports, func(p port) bool { return p.on([]subnet{s}) }):
			return &r, true, nil
		case len(ports) == 0 && own == nil:
			own = &r
		}
	}
	return own, false, err
}

// createRouter makes a router. It is never sent twice.
func (c *networkClient) createRouter(ctx context.Context, op, name, external, key string) (*router, *cloud.Error) {
	var got struct {
		Router router `json:"router"`
	}
	call := &call{
		about: aboutCreate, service: network, method: http.MethodPost, route: "network/routers", path: "routers", op: op, out: &got,
		body: map[string]any{"router": map[string]any{
			"name": name, "description": strings.TrimSpace(ownerMark + " " + key), "external_gateway_info": map[string]any{"network_id": external},
		}},
	}
	if err := c.session.do(ctx, call); err != nil {
		return nil, err
	}
	if !isID(got.Router.ID) {
		return nil, unreadable(call, "the answer has no id of a router")
	}
	return &got.Router, nil
}

// routerCall changes a router. That it is gone says nothing of the network: the next call
// makes another one.
func (c *networkClient) routerCall(ctx context.Context, op, id, action string, body map[string]any) *cloud.Error {
	err := c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodPut, route: "network/routers/{id}" + action, path: "routers/" + id + action, op: op, body: body,
	})
	if err != nil && noSuch(err) {
		err.Kind = cloud.Busy
	}
	return err
}

// removeRouters removes the routers that were made for a network: those that are attached to
// its subnets, and those that an interrupted call has left without a subnet. It fails with
// Conflict if others use one.
func (c *networkClient) removeRouters(ctx context.Context, op string, n neutronNetwork) *cloud.Error {
	routers, err := c.visibleRouters(ctx, op, url.Values{"name": {n.Name}})
	if err != nil {
		return err
	}
	routers = slices.DeleteFunc(routers, func(r router) bool { return !r.madeFor(n.Name) })
	if len(routers) == 0 {
		return nil
	}
	subnets, err := c.listSubnets(ctx, op, aboutNetwork, url.Values{"network_id": {n.ID}})
	if err != nil {
		return err
	}
	for _, r := range routers {
		if err := c.removeRouter(ctx, op, r, subnets); err != nil {
			return err
		}
	}
	return nil
}

func (c *networkClient) removeRouter(ctx context.Context, op string, r router, subnets []subnet) *cloud.Error {
	ports, err := c.interfaces(ctx, op, r.ID)
	if err != nil {
		return err
	}
	own, others := []port{}, 0
	for _, p := range ports {
		if p.on(subnets) {
			own = append(own, p)
		} else {
			others++
		}
	}
	switch {
	case others > 0 && len(own) == 0:
		return nil // it is that of another network
	case others > 0:
		return refuse(op, cloud.Conflict, "router %s of the network has interfaces on %d other subnets: detach it from them in the cloud, and it is deleted with the network", r.ID, others)
	}
	for _, p := range own {
		err := c.session.do(ctx, &call{
			about: aboutNetwork, service: network, method: http.MethodPut, route: "network/routers/{id}/remove_router_interface",
			path: "routers/" + r.ID + "/remove_router_interface", op: op, body: map[string]any{"port_id": p.ID},
		})
		if err := unlessGone(err); err != nil {
			return err
		}
	}
	return unlessGone(c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodDelete, route: "network/routers/{id}", path: "routers/" + r.ID, op: op,
	}))
}

// unlessGone returns the error of a removal, nil if there is nothing to remove. What does not
// prove that says nothing of the network either.
func unlessGone(err *cloud.Error) *cloud.Error {
	switch {
	case err == nil, err.Kind == cloud.NotFound:
		return nil
	case err.Kind == cloud.NotFoundUnproven:
		err.Kind = cloud.Unreadable
	}
	return err
}
