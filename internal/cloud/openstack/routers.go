package openstack

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// ownerMark begins the descriptions of what the operator makes.
const ownerMark = "private-cloud-operator"

// interfaceOwners are the values of device_owner of ports by which routers are attached to
// subnets: of central, distributed and redundant routers.
var interfaceOwners = []string{"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"}

// router is a router in the JSON of the network service.
type router struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	CreatedAt   stamp  `json:"created_at"`
	// External is nil without an external network.
	External *struct {
		NetworkID string `json:"network_id"`
	} `json:"external_gateway_info"`
}

func (r router) marker() string { return idOrNone(r.ID) }

// madeFor reports whether the operator made the router for networks of this name, as far as
// the router says. Names of routers are not unique.
func (r router) madeFor(name string) bool {
	return r.Name == name && strings.HasPrefix(r.Description, ownerMark)
}

// externalID returns the id of the external network of a router, empty if it has none.
func (r router) externalID() string {
	if r.External == nil {
		return ""
	}
	return r.External.NetworkID
}

// on reports whether a port is on one of some subnets.
func (p port) on(subnets []subnet) bool {
	for _, ip := range p.FixedIPs {
		if slices.ContainsFunc(subnets, func(s subnet) bool { return s.ID == ip.SubnetID }) {
			return true
		}
	}
	return false
}

// listRouters lists the routers of the project that match a query and that the operator made,
// oldest first.
func (c *networkClient) listRouters(ctx context.Context, op string, query url.Values) ([]router, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	query.Set("project_id", project)
	call := &call{about: aboutNetwork, service: network, method: http.MethodGet, route: "network/routers", path: "routers", op: op}
	routers, err := listPages(ctx, c.session, call, query, "routers", router.marker)
	if err != nil {
		return nil, err
	}
	routers = slices.DeleteFunc(routers, func(r router) bool { return !strings.HasPrefix(r.Description, ownerMark) })
	slices.SortFunc(routers, func(a, b router) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), strings.Compare(a.ID, b.ID))
	})
	return routers, nil
}

// visibleRouters is listRouters for reads: a network service without routers, and an account
// that may not see any, has none.
func (c *networkClient) visibleRouters(ctx context.Context, op string, query url.Values) ([]router, *cloud.Error) {
	routers, err := c.listRouters(ctx, op, query)
	if err != nil && (noSuch(err) || err.Kind == cloud.Forbidden) {
		return nil, nil
	}
	return routers, err
}

// noSuch reports whether an answer was 404.
func noSuch(err *cloud.Error) bool {
	return err.Kind == cloud.NotFound || err.Kind == cloud.NotFoundUnproven
}

// interfaces lists the ports by which routers are attached to subnets, all or those of one router.
func (c *networkClient) interfaces(ctx context.Context, op, routerID string) ([]port, *cloud.Error) {
	query := url.Values{"device_owner": interfaceOwners}
	if routerID != "" {
		query.Set("device_id", routerID)
	}
	call := &call{about: aboutCloud, service: network, method: http.MethodGet, route: "network/ports", path: "ports", op: op}
	return listPages(ctx, c.session, call, query, "ports", port.marker)
}

// routing is which routers are attached to which subnets.
type routing struct {
	routers []router
	ports   []port
	// names are those of the external networks, by id.
	names map[string]string
}

// of returns the router of a network with these subnets.
func (r routing) of(n neutronNetwork, subnets []subnet) cloud.Router {
	for _, made := range r.routers {
		attached := func(p port) bool { return p.DeviceID == made.ID && p.on(subnets) }
		if made.madeFor(n.Name) && slices.ContainsFunc(r.ports, attached) {
			external := made.externalID()
			return cloud.Router{ID: made.ID, ExternalNetwork: r.names[external], ExternalID: external}
		}
	}
	return cloud.Router{}
}

// routingOfAll returns the routing of the networks of a listing, which has the external ones.
func (c *networkClient) routingOfAll(ctx context.Context, op string, networks []neutronNetwork) (routing, *cloud.Error) {
	routers, err := c.visibleRouters(ctx, op, url.Values{})
	if err != nil || len(routers) == 0 {
		return routing{}, err
	}
	found := routing{routers: routers, names: map[string]string{}}
	for _, n := range networks {
		if n.External {
			found.names[n.ID] = n.Name
		}
	}
	found.ports, err = c.interfaces(ctx, op, "")
	return found, err
}

// routerOf returns the router of one network.
func (c *networkClient) routerOf(ctx context.Context, op string, n neutronNetwork, subnets []subnet) (cloud.Router, *cloud.Error) {
	routers, err := c.visibleRouters(ctx, op, url.Values{"name": {n.Name}})
	if err != nil {
		return cloud.Router{}, err
	}
	for _, made := range routers {
		ports, err := c.interfaces(ctx, op, made.ID)
		if err != nil {
			return cloud.Router{}, err
		}
		found := routing{routers: []router{made}, ports: ports}.of(n, subnets)
		if found.ID == "" {
			continue
		}
		if found.ExternalID != "" {
			external, err := c.readNetwork(ctx, op, found.ExternalID)
			if err != nil && !noSuch(err) {
				return cloud.Router{}, err
			}
			found.ExternalNetwork = external.Name
		}
		return found, nil
	}
	return cloud.Router{}, nil
}
