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

const (
	// ownerMark begins the descriptions of what the operator makes.
	ownerMark = "private-cloud-operator"
	// routerMark begins those of routers, and the id of the network follows. It is the only proof of whose a router is: names
	// are not unique, and can be changed.
	routerMark = ownerMark + " network "
	// ipv6Mark is the description of the subnets that are IPv6 ranges of networks.
	ipv6Mark = ownerMark + " ipv6CIDR"
)

// interfaceOwners are the values of device_owner of ports by which routers are attached to
// subnets: of central, distributed and redundant routers.
var interfaceOwners = []string{"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"}

// router is a router in the JSON of the network service.
type router struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	ProjectID   string `json:"project_id"`
	CreatedAt   stamp  `json:"created_at"`
	// External is nil without an external network.
	External *struct {
		NetworkID string `json:"network_id"`
	} `json:"external_gateway_info"`
}

func (r router) marker() string { return idOrNone(r.ID) }

// networkID returns the id of the network that the operator made the router for, empty if it did not make it.
func (r router) networkID() string {
	id, marked := strings.CutPrefix(r.Description, routerMark)
	if !marked {
		return ""
	}
	return id
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
	return slices.ContainsFunc(p.FixedIPs, func(ip fixedIP) bool {
		return slices.ContainsFunc(subnets, func(s subnet) bool { return s.ID == ip.SubnetID })
	})
}

// detachedFrom returns those of some subnets that none of the ports attaches the router to.
func (r router) detachedFrom(subnets []subnet, ports []port) []subnet {
	return slices.DeleteFunc(slices.Clone(subnets), func(s subnet) bool {
		return slices.ContainsFunc(ports, func(p port) bool { return p.DeviceID == r.ID && p.on([]subnet{s}) })
	})
}

// attaches reports whether a port attaches a router to a subnet.
func (p port) attaches() bool { return slices.Contains(interfaceOwners, p.Owner) }

// of reports whether a port is one of these routers.
func (p port) of(routers []router) bool {
	return slices.ContainsFunc(routers, func(r router) bool { return r.ID == p.DeviceID })
}

// listRouters lists the routers of the project that match a query and that the operator made, oldest first. The service may
// ignore a query, and an administrator sees those of all projects.
func (c *networkClient) listRouters(ctx context.Context, op string, query url.Values) ([]router, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	query.Set("project_id", project)
	query["fields"] = []string{"id", "description", "project_id", "created_at", "external_gateway_info"}
	call := &call{about: aboutRouters, service: network, method: http.MethodGet, route: "network/routers", path: "routers", op: op}
	routers, err := listPages(ctx, c.session, call, query, "routers", router.marker)
	if err != nil {
		if err.Kind == cloud.Unsupported {
			err.Detail = "the network service of this cloud has no routers"
		}
		return nil, err
	}
	routers = slices.DeleteFunc(routers, func(r router) bool {
		return r.networkID() == "" || r.ProjectID != "" && r.ProjectID != project
	})
	slices.SortFunc(routers, func(a, b router) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), strings.Compare(a.ID, b.ID))
	})
	return routers, nil
}

// routersOf lists the routers that were made for a network.
func (c *networkClient) routersOf(ctx context.Context, op, networkID string) ([]router, *cloud.Error) {
	routers, err := c.listRouters(ctx, op, url.Values{"description": {routerMark + networkID}})
	return slices.DeleteFunc(routers, func(r router) bool { return r.networkID() != networkID }), err
}

// interfaces lists the ports by which routers of the project are attached to subnets: all, or those of the routers given. The
// service may ignore a query.
func (c *networkClient) interfaces(ctx context.Context, op string, routers []router) ([]port, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	query := url.Values{"device_owner": slices.Clone(interfaceOwners)}
	for _, r := range routers {
		query.Add("device_id", r.ID)
	}
	if len(routers) == 0 {
		query.Set("project_id", project)
	}
	ports, err := c.listPorts(ctx, op, query)
	return slices.DeleteFunc(ports, func(p port) bool {
		return !p.attaches() || len(routers) > 0 && !p.of(routers)
	}), err
}

func (c *networkClient) listPorts(ctx context.Context, op string, query url.Values) ([]port, *cloud.Error) {
	query["fields"] = []string{"id", "device_id", "device_owner", "network_id", "fixed_ips"}
	call := &call{about: aboutNetwork, service: network, method: http.MethodGet, route: "network/ports", path: "ports", op: op}
	ports, err := listPages(ctx, c.session, call, query, "ports", port.marker)
	if err != nil && noSuch(err) {
		err.Kind = cloud.Unreadable // of a listing, it says nothing about a network
	}
	return ports, err
}

// noSuch reports whether an answer was 404.
func noSuch(err *cloud.Error) bool {
	return err.Kind == cloud.NotFound || err.Kind == cloud.NotFoundUnproven
}

// routing is which routers are attached to which subnets.
type routing struct {
	// unknown: the service does not show routers or their ports.
	unknown bool
	routers []router
	ports   []port
	// names are those of networks, by id.
	names map[string]string
}

// of returns the router of a network with these subnets. One that is attached to some of those that it is made for has an id, and is
// not connected: a change of the network attaches it to the rest.
func (r routing) of(n neutronNetwork, subnets []subnet) cloud.Router {
	if r.unknown {
		return cloud.Router{Unknown: true}
	}
	wanted, partly := toRoute(subnets), cloud.Router{}
	for _, made := range r.routers {
		if made.networkID() != n.ID {
			continue
		}
		switch detached := len(made.detachedFrom(wanted, r.ports)); {
		case detached == len(wanted):
		case detached > 0:
			partly.ID = made.ID
		default:
			external := made.externalID()
			return cloud.Router{ID: made.ID, ExternalNetwork: r.names[external], ExternalID: external}
		}
	}
	return partly
}

// unlessUnknown returns the routing, and an error only if it is one of the whole cloud: what reads networks must not depend
// on routers, which most networks do not have. That the service has no routers is no proof that there are none: a proxy
// answers so too, and a service that was started without its plugin.
func unlessUnknown(ctx context.Context, r routing, err *cloud.Error) (routing, *cloud.Error) {
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil, cloud.Is(err, cloud.Throttled, cloud.Unauthorized):
		return routing{}, err
	}
	return routing{unknown: true}, nil
}

// routingOfAll returns the routing of the networks of a listing, which has the external ones. If all are shown to be internal,
// no router is connected, and nothing is asked.
func (c *networkClient) routingOfAll(ctx context.Context, op string, networks []neutronNetwork) (routing, *cloud.Error) {
	if !slices.ContainsFunc(networks, func(n neutronNetwork) bool { return !n.internal() }) {
		return routing{}, nil
	}
	found := routing{names: map[string]string{}}
	for _, n := range networks {
		found.names[n.ID] = n.Name
	}
	var err *cloud.Error
	if found.routers, err = c.listRouters(ctx, op, url.Values{}); err == nil && len(found.routers) > 0 {
		found.ports, err = c.interfaces(ctx, op, nil)
	}
	return unlessUnknown(ctx, found, err)
}

// routerOf returns the router of one network.
func (c *networkClient) routerOf(ctx context.Context, op string, n neutronNetwork, subnets []subnet) (cloud.Router, *cloud.Error) {
	var found routing
	var err *cloud.Error
	if found.routers, err = c.routersOf(ctx, op, n.ID); err == nil && len(found.routers) > 0 {
		found.ports, err = c.interfaces(ctx, op, found.routers)
	}
	if found, err = unlessUnknown(ctx, found, err); err != nil {
		return cloud.Router{}, err
	}
	r := found.of(n, subnets)
	if r.ExternalID == "" {
		return r, nil
	}
	external, err := c.readNetwork(ctx, op, r.ExternalID)
	if err != nil && !noSuch(err) && err.Kind != cloud.Forbidden {
		return cloud.Router{}, err
	}
	r.ExternalNetwork = external.Name
	return r, nil
}
