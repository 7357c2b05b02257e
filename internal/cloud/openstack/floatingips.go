package openstack

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// floatingIP is an address of an external network in the JSON of the network service.
type floatingIP struct {
	ID          string `json:"id"`
	Address     string `json:"floating_ip_address"`
	NetworkID   string `json:"floating_network_id"`
	Description string `json:"description"`
	ProjectID   string `json:"project_id"`
	// PortID is empty while the address leads nowhere.
	PortID string `json:"port_id"`
}

func (f floatingIP) marker() string { return idOrNone(f.ID) }

// floatingIPClient gives servers floating addresses, and deletes them. The service refuses a second address of one external
// network for a port, so that a create that is sent again makes none. It keeps an address whose server is gone: the
// description, which a create sets, has the id of the server that it was made for.
type floatingIPClient struct {
	session *session
	// networks finds external networks.
	networks *networkClient
}

func descriptionOf(serverID string) string { return "private-cloud-operator server " + serverID }

// made lists the addresses of the project that were made for a server. The service may ignore a filter, and an administrator
// sees those of all projects.
func (c *floatingIPClient) made(ctx context.Context, op, serverID string) ([]floatingIP, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	call := &call{about: aboutNetwork, service: network, method: http.MethodGet, route: "network/floatingips", path: "floatingips", op: op}
	query := url.Values{"description": {descriptionOf(serverID)}, "project_id": {project}}
	made, err := listPages(ctx, c.session, call, query, "floatingips", floatingIP.marker)
	return slices.DeleteFunc(made, func(f floatingIP) bool { return f.Description != descriptionOf(serverID) || f.ProjectID != project }), err
}

// assign returns the floating address of a server, and makes one of an external network if it has none. It calls mark before
// that: an address that is made and not recorded would not be removed.
func (c *floatingIPClient) assign(ctx context.Context, op string, s *server, network string, mark func() *cloud.Error) (string, *cloud.Error) {
	ports, err := c.session.portsOf(ctx, op, s.ID, s.Metadata[networkKey])
	if err != nil {
		return "", err
	}
	made, err := c.made(ctx, op, s.ID)
	switch {
	case err == nil:
	case noSuchPath(err):
		return "", refuse(op, cloud.Rejected, "the network service has no floating addresses")
	default:
		return "", err
	}
	if address := leadingTo(ports, made); address != "" {
		return address, nil
	}
	external, err := c.networks.externalNetwork(ctx, op, network)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(ports, func(p port) bool { return p.ipv4() != "" })
	if at < 0 {
		return "", refuse(op, cloud.Rejected, "no network interface of the server has an IPv4 address")
	}
	if err := mark(); err != nil {
		return "", err
	}
	// An address that led to an interface which is gone is used again. One that somebody gave to another server is theirs.
	if free := slices.IndexFunc(made, func(f floatingIP) bool { return f.PortID == "" && f.NetworkID == external.ID }); free >= 0 {
		moved, err := c.send(ctx, op, http.MethodPut, "network/floatingips/{id}", "floatingips/"+made[free].ID, network, map[string]any{
			"port_id": ports[at].ID, "fixed_ip_address": ports[at].ipv4(),
		})
		return moved.Address, err
	}
	created, err := c.send(ctx, op, http.MethodPost, "network/floatingips", "floatingips", network, map[string]any{
		"floating_network_id": external.ID, "port_id": ports[at].ID, "fixed_ip_address": ports[at].ipv4(), "description": descriptionOf(s.ID),
	})
	switch {
	case err == nil:
		return created.Address, c.visible(ctx, op, created)
	case err.Kind != cloud.Rejected:
		return "", err
	}
	c.networks.externalIDs.forget()    // the external network may have been replaced since
	if err.Code == alreadyAssociated { // perhaps by a create of this client whose answer was lost
		made, failed := c.made(ctx, op, s.ID)
		if failed != nil {
			return "", failed
		}
		if address := leadingTo(ports, made); address != "" {
			return address, nil
		}
		if len(made) == 0 {
			err.Detail += ", or, if the operator created it, grant the account the right get_floatingip"
		}
	}
	return "", err
}

// visible fails if the service does not show a floating IP address that it has just created: nothing would delete it with its
// server. It then deletes the address.
func (c *floatingIPClient) visible(ctx context.Context, op string, made floatingIP) *cloud.Error {
	err := c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodGet, route: "network/floatingips/{id}", path: "floatingips/" + made.ID, op: op,
	})
	if err == nil || err.Kind != cloud.NotFound && err.Kind != cloud.Forbidden {
		return nil // it is shown, or the service did not answer the question
	}
	err = refuse(op, cloud.Forbidden, "the address %s was created, but the service does not show it to this account, or not yet: grant it the right get_floatingip", made.Address)
	if left := c.drop(ctx, op, made.ID); left != nil {
		err.Detail += "; the address is left: " + left.Detail
	}
	return err
}

// drop deletes an address.
func (c *floatingIPClient) drop(ctx context.Context, op, id string) *cloud.Error {
	return c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodDelete, route: "network/floatingips/{id}", path: "floatingips/" + id, op: op,
	})
}

// leadingTo returns the address that leads to one of these ports; empty if none does.
func leadingTo(ports []port, made []floatingIP) string {
	for _, f := range made {
		if slices.ContainsFunc(ports, func(p port) bool { return p.ID == f.PortID }) {
			return f.Address
		}
	}
	return ""
}

// alreadyAssociated is the code of the service for a port that has an address of the external network.
const alreadyAssociated = "FloatingIPPortAlreadyAssociated"

// send makes or moves an address, and returns it.
func (c *floatingIPClient) send(ctx context.Context, op, method, route, path, external string, body map[string]any) (floatingIP, *cloud.Error) {
	var got struct {
		FloatingIP floatingIP `json:"floatingip"`
	}
	call := &call{about: aboutReach, service: network, method: method, route: route, path: path, op: op, body: map[string]any{"floatingip": body}, out: &got}
	if err := c.session.do(ctx, call); err != nil {
		return floatingIP{}, explainFloating(err, external)
	}
	if got.FloatingIP.Address == "" || !isID(got.FloatingIP.ID) {
		return floatingIP{}, unreadable(call, "the answer has no floating address")
	}
	return got.FloatingIP, nil
}

// explainFloating replaces what the service says of its own objects, which are not those of the user.
func explainFloating(err *cloud.Error, external string) *cloud.Error {
	external = quote(transport.Printable(external))
	switch err.Code {
	case alreadyAssociated:
		err.Kind, err.Detail = cloud.Rejected, "the server has an address of "+external+" that somebody else gave it: remove that one in the cloud"
	case "ExternalGatewayForFloatingIPNotFound":
		err.Detail = "no router connects the network of the server with " + external
	case "PortNotFound", "FloatingIPNotFound": // deleted since they were listed
		err.Kind = cloud.Busy
	case "IpAddressGenerationFailure":
		err.Op, err.Detail = err.Op+": an address of "+external, "none is free"
	}
	return err
}

// moved reports whether somebody has given an address to another server than the one that it was made for. A port that
// was made before its server stays when the server is deleted, and belongs to none then.
func (c *floatingIPClient) moved(ctx context.Context, op string, f floatingIP, serverID string) (bool, *cloud.Error) {
	if !isID(f.PortID) {
		return false, nil
	}
	var got struct {
		Port port `json:"port"`
	}
	err := c.session.do(ctx, &call{
		about: aboutNetwork, service: network, method: http.MethodGet, route: "network/ports/{id}", path: "ports/" + f.PortID, op: op, out: &got,
	})
	switch {
	case err == nil:
		return got.Port.DeviceID != "" && got.Port.DeviceID != serverID, nil
	case err.Kind == cloud.NotFound:
		return false, nil
	}
	return false, err
}

// DeletePublicAddresses deletes the floating addresses that were made for a server. One that somebody has given to another
// server stays. A network service without routers has none, and an account that may not list them has made none.
func (c *floatingIPClient) DeletePublicAddresses(ctx context.Context, serverID string) error {
	op := "delete the public address of server " + quote(serverID)
	ctx, end, failed := c.session.beginAbout(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	defer end()
	made, err := c.made(ctx, op, serverID)
	switch {
	case err == nil:
		return asError(c.remove(ctx, op, serverID, made))
	case cloud.Is(err, cloud.Forbidden), noSuchPath(err):
		return nil
	}
	return err
}

// noSuchPath reports whether the network service itself says that it has no such path. A 404 of something else proves nothing.
func noSuchPath(err *cloud.Error) bool {
	return err.Kind == cloud.NotFound || err.Code == "HTTPNotFound"
}

// removeAll deletes the addresses that were made for a server.
func (c *floatingIPClient) removeAll(ctx context.Context, op, serverID string) *cloud.Error {
	made, err := c.made(ctx, op, serverID)
	switch {
	case err == nil:
		return c.remove(ctx, op, serverID, made)
	case noSuchPath(err):
		return nil
	}
	return err
}

// remove deletes those of the addresses that were made for a server which nobody has given to another one.
func (c *floatingIPClient) remove(ctx context.Context, op, serverID string, made []floatingIP) *cloud.Error {
	for _, f := range made {
		moved, err := c.moved(ctx, op, f, serverID)
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		if err = c.drop(ctx, op, f.ID); err != nil && err.Kind != cloud.NotFound {
			return err
		}
	}
	return nil
}
