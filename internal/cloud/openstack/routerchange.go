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
		id := strings.ToLower(nameOrID) // as the service shows it
		n, err := c.readNetwork(ctx, op, id)
		switch {
		case err != nil && err.Kind == cloud.NotFoundUnproven:
			err.Kind = cloud.Unreadable // it says nothing about the network that is to be connected either
		case err != nil && err.Kind == cloud.NotFound, err == nil && n.internal():
			err = refuse(op, cloud.Rejected, "no external network has the id %s", quote(nameOrID))
			err.Code = cloud.CodeExternalNetworkUnknown
		}
		return n, err
	}
	var got struct {
		Networks []named `json:"networks"`
	}
	call := &call{
		about: aboutCloud, service: network, method: http.MethodGet, route: "network/networks", path: "networks",
		query: url.Values{"name": {nameOrID}, "router:external": {"true"}, "fields": {"id", "name"}}, op: op, out: &got, limit: maxList,
	}
	id, err := c.externalIDs.idOf(ctx, call, nameOrID, func() []named { return got.Networks })
	return neutronNetwork{ID: id, Name: nameOrID, External: new(true)}, err
}

// connect attaches a network to a router of its own, which connects it to the external one. It
// makes the router unless an earlier call has.
func (c *networkClient) connect(ctx context.Context, op string, n neutronNetwork, subnets []subnet, to neutronNetwork) (cloud.Router, *cloud.Error) {
	r, detached, err := c.ownRouter(ctx, op, n.ID, toRoute(subnets))
	made := err == nil && r == nil
	switch {
	case err != nil:
	case made:
		if err = c.gatewayFree(ctx, op, n, detached); err == nil {
			r, err = c.createRouter(ctx, op, n, to.ID)
		}
	case r.externalID() != to.ID:
		err = c.routerCall(ctx, op, r.ID, "", map[string]any{"router": map[string]any{"external_gateway_info": map[string]any{"network_id": to.ID}}})
	}
	for i, s := range detached {
		if err == nil {
			err = c.attach(ctx, op, *r, s, made && i == 0)
		}
	}
	if err == nil {
		return cloud.Router{ID: r.ID, ExternalNetwork: to.Name, ExternalID: to.ID}, nil
	}
	internal := strings.HasSuffix(err.Detail, "is not an external network.")
	switch {
	case internal && !to.external(): // the service did not show whether it is
		err.Code = cloud.CodeExternalNetworkUnknown
	case internal, err.Code == "NetworkNotFound": // it may have been replaced since it was looked up
		c.externalIDs.forget()
		err.Kind = cloud.Busy
	}
	return cloud.Router{}, err
}

// ownRouter returns the router of a network that is attached to most of the subnets, the oldest of several: an interrupted call may have
// left one. It also returns the subnets that the router is not attached to. The router is nil if there is none.
func (c *networkClient) ownRouter(ctx context.Context, op, networkID string, subnets []subnet) (own *router, detached []subnet, err *cloud.Error) {
	routers, err := c.routersOf(ctx, op, networkID)
	if err != nil || len(routers) == 0 {
		return nil, subnets, err
	}
	ports, err := c.interfaces(ctx, op, routers)
	if err != nil {
		return nil, nil, err
	}
	for i, r := range routers {
		if left := r.detachedFrom(subnets, ports); own == nil || len(left) < len(detached) {
			own, detached = &routers[i], left
		}
	}
	return own, detached, nil
}

// gatewayFree returns Conflict if a port has the address of the gateway. A router that is made then could not be attached, and
// would be made and deleted with each try.
func (c *networkClient) gatewayFree(ctx context.Context, op string, n neutronNetwork, subnets []subnet) *cloud.Error {
	ports, err := c.listPorts(ctx, op, url.Values{"network_id": {n.ID}})
	if err != nil {
		return err
	}
	for _, p := range ports {
		for _, s := range subnets {
			if slices.Contains(p.FixedIPs, fixedIP{Address: s.Gateway, SubnetID: s.ID}) {
				return refuse(op, cloud.Conflict, "the address %s of the gateway is in use%s: port %s has it", s.Gateway, p.byWhom(), p.ID)
			}
		}
	}
	return nil
}

// createRouter makes a router. It is never sent twice. An account that may make routers and not see them would make another one
// with each try: what it makes is deleted. One that is only not listed yet is used: a listing may lag behind.
func (c *networkClient) createRouter(ctx context.Context, op string, n neutronNetwork, external string) (*router, *cloud.Error) {
	var got struct {
		Router router `json:"router"`
	}
	call := &call{
		about: aboutCreate, service: network, method: http.MethodPost, route: "network/routers", path: "routers", op: op, out: &got,
		body: map[string]any{"router": map[string]any{
			"name": n.Name, "description": routerMark + n.ID, "external_gateway_info": map[string]any{"network_id": external},
		}},
	}
	if err := c.session.do(ctx, call); err != nil {
		return nil, err
	}
	made := got.Router
	if !isID(made.ID) {
		return nil, unreadable(call, "the answer has no id of a router")
	}
	visible, err := c.routersOf(ctx, op, n.ID)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(visible, func(r router) bool { return r.ID == made.ID }) {
		return &made, nil
	}
	switch got, err := c.readRouter(ctx, op, made.ID); {
	case err == nil && got.networkID() == n.ID:
		return &made, nil
	case err != nil && !noSuch(err) && err.Kind != cloud.Forbidden:
		return nil, err
	}
	err = refuse(op, cloud.Forbidden, "router %s was created, but the service does not show it to this account: grant it the right get_router", made.ID)
	if left := c.deleteRouter(ctx, op, made.ID); left != nil {
		err.Detail += "; the router is left: " + left.Detail
	}
	return nil, err
}

func (c *networkClient) readRouter(ctx context.Context, op, id string) (router, *cloud.Error) {
	var got struct {
		Router router `json:"router"`
	}
	err := c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodGet, route: "network/routers/{id}", path: "routers/" + id, op: op, out: &got,
	})
	return got.Router, err
}

// attach attaches a router to a subnet. A router that this call made is deleted if the service refuses that: somebody else's
// router may have the address of the gateway for as long as the network exists.
func (c *networkClient) attach(ctx context.Context, op string, r router, s subnet, made bool) *cloud.Error {
	err := c.routerCall(ctx, op, r.ID, "/add_router_interface", map[string]any{"subnet_id": s.ID})
	if err != nil && strings.Contains(err.Detail, "already has a port on subnet") { // by a call whose answer was lost
		return c.shown(ctx, op, r, s)
	}
	if err != nil && made && !err.Uncertain && err.Kind != cloud.Throttled {
		_ = c.deleteRouter(ctx, op, r.ID) // one that is left is found by its description
	}
	return err
}

// shown returns an error if the service does not show the port by which a router is attached to a subnet: otherwise the router
// would look detached, and be attached again and again.
func (c *networkClient) shown(ctx context.Context, op string, r router, s subnet) *cloud.Error {
	ports, err := c.interfaces(ctx, op, []router{r})
	if err != nil || slices.ContainsFunc(ports, func(p port) bool { return p.on([]subnet{s}) }) {
		return err
	}
	return refuse(op, cloud.Forbidden, "the service does not show the ports of router %s, or not yet: grant the account the right get_port", r.ID)
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

// DeleteRouters deletes the routers that were made for a network which is gone.
func (c *networkClient) DeleteRouters(ctx context.Context, networkID string) error {
	op := "delete the router of network " + quote(networkID)
	ctx, end, err := c.session.beginAbout(ctx, op, networkID)
	if err != nil {
		return err
	}
	defer end()
	routers, err := c.routersOf(ctx, op, networkID)
	if err == nil {
		err = c.removeRouters(ctx, op, networkID, routers)
	}
	return asError(err)
}

// removeRouters removes the routers that were made for a network. It fails with Conflict, and changes nothing, if something else
// is on the network, which the service would not delete then, or if others use a router.
func (c *networkClient) removeRouters(ctx context.Context, op, networkID string, routers []router) *cloud.Error {
	if len(routers) == 0 {
		return nil
	}
	ports, err := c.listPorts(ctx, op, url.Values{"network_id": {networkID}})
	if err != nil {
		return err
	}
	for _, p := range ports {
		if p.keepsNetwork(networkID, routers) {
			return routerInUse(op, "port %s of the network is in use%s: its router stays as well; delete in the cloud what is on the network", p.ID, p.byWhom())
		}
	}
	attached, err := c.interfaces(ctx, op, routers)
	if err != nil {
		return err
	}
	for _, p := range attached {
		if p.NetworkID != networkID {
			return routerInUse(op,
				"router %s of the network is attached to network %s too: detach it from that network, and the operator deletes it", p.DeviceID, p.NetworkID)
		}
	}
	for _, p := range attached {
		err := c.session.do(ctx, &call{
			about: aboutNetwork, service: network, method: http.MethodPut, route: "network/routers/{id}/remove_router_interface",
			path: "routers/" + p.DeviceID + "/remove_router_interface", op: op, body: map[string]any{"port_id": p.ID},
		})
		if err := unlessGone(err); err != nil {
			return err
		}
	}
	for _, r := range routers {
		if err := c.deleteRouter(ctx, op, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// routerInUse is the error of a router that stays. It says what to do about that.
func routerInUse(op, format string, args ...any) *cloud.Error {
	err := refuse(op, cloud.Conflict, format, args...)
	err.Code = cloud.CodeRouterInUse
	return err
}

// keepsNetwork reports whether a port keeps the service from deleting the network. Those of the service itself go with it.
func (p port) keepsNetwork(networkID string, routers []router) bool {
	if p.NetworkID != networkID {
		return false
	}
	if p.attaches() {
		return !p.of(routers)
	}
	return !strings.HasPrefix(p.Owner, "network:")
}

// byWhom says what uses a port.
func (p port) byWhom() string {
	if !isID(p.DeviceID) {
		return ""
	}
	switch {
	case strings.HasPrefix(p.Owner, "compute:"):
		return " by server " + p.DeviceID
	case p.attaches():
		return " by router " + p.DeviceID
	}
	return " by " + p.DeviceID
}

func (c *networkClient) deleteRouter(ctx context.Context, op, id string) *cloud.Error {
	return unlessGone(c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodDelete, route: "network/routers/{id}", path: "routers/" + id, op: op,
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
