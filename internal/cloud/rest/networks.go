package rest

import (
	"context"
	"fmt"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkSize estimates the memory that a network takes beside its texts, in bytes.
const networkSize = 288

// nameserverSize estimates the memory of a DNS server, in bytes, and maxNameservers
// bounds how many of a network are read.
const (
	nameserverSize = 64
	maxNameservers = 16
)

// The cloud's JSON of networks, as requests have it.
type (
	wireCreateNetwork struct {
		Name           string   `json:"name"`
		CIDR           string   `json:"cidr"`
		IPv6CIDR       string   `json:"ipv6CIDR,omitempty"`
		Gateway        string   `json:"gateway"`
		DNSNameservers []string `json:"dnsNameservers,omitempty"`

		Router *wireRouter `json:"router,omitempty"`
	}
	wireUpdateNetwork struct {
		IPv6CIDR       string   `json:"ipv6CIDR,omitempty"`
		Gateway        string   `json:"gateway,omitempty"`
		DNSNameservers []string `json:"dnsNameservers,omitempty"`

		Router *wireRouter `json:"router,omitempty"`
	}
	wireRouter struct {
		ExternalNetwork string `json:"externalNetwork"`
	}
)

// networkClient reads and changes networks.
type networkClient struct {
	calls        *calls
	capabilities *capabilityClient
	ignored      *ignored
	scrubber     *scrubber
}

// ListNetworks returns all networks: this listing has no pages.
func (n *networkClient) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/networks", path: "/networks",
		limit: maxPage, op: "list networks",
	}
	if _, err := n.requireNetworks(ctx, call.op); err != nil {
		return nil, err
	}
	var networks []cloud.Network
	call.stream = func(got *answer, in *stream) (err *cloud.Error) {
		networks, err = decodeNetworks(call, got, in, n.ignored)
		return err
	}
	if _, err := n.calls.do(ctx, call); err != nil {
		return nil, err
	}
	return networks, nil
}

// GetNetwork returns the network of this id.
func (n *networkClient) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	call, err := n.networkCall(ctx, http.MethodGet, id, "get network ")
	if err != nil {
		return cloud.Network{}, err
	}
	return n.doNetwork(ctx, call, id)
}

// CreateNetwork creates a network.
func (n *networkClient) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	op := "create network " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Network{}, err
	}
	has, err := n.requireNetworks(ctx, op, req.Needs()...)
	if err != nil {
		return cloud.Network{}, err
	}
	call := &call{
		about: aboutCreate, method: http.MethodPost, route: "/networks", path: "/networks", op: op, limit: maxBody,
		body: encode(wireCreateNetwork{
			Name: req.Name, CIDR: req.CIDR, IPv6CIDR: req.IPv6CIDR, Gateway: req.Gateway, DNSNameservers: req.DNSNameservers, Router: routerTo(req.ExternalNetwork),
		}),
	}
	if has.Has(cloud.Idempotency) {
		call.key, call.sharedNames = req.IdempotencyKey, !has.Has(cloud.UniqueNames)
	}
	if !sendable(call.key) {
		return cloud.Network{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	}
	got, err := n.calls.do(ctx, call)
	if err != nil {
		return cloud.Network{}, err
	}
	// The answer to a create is about what it created, also if the cloud normalizes names.
	network, err := decodeNetwork(call, got, n.ignored)
	return network, asError(err)
}

// UpdateNetwork changes a network. It is never sent twice.
func (n *networkClient) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	call, err := n.networkCall(ctx, http.MethodPatch, id, "update network ", change.Needs()...)
	if err != nil {
		return cloud.Network{}, err
	}
	call.body = encode(wireUpdateNetwork{IPv6CIDR: change.IPv6CIDR, Gateway: change.Gateway, DNSNameservers: change.DNSNameservers, Router: routerTo(change.ExternalNetwork)})
	return n.doNetwork(ctx, call, id)
}

// DeleteNetwork deletes the network of this id.
func (n *networkClient) DeleteNetwork(ctx context.Context, id string) error {
	call, err := n.networkCall(ctx, http.MethodDelete, id, "delete network ")
	if err != nil {
		return err
	}
	call.limit = 0
	_, err = n.calls.do(ctx, call)
	return asError(err)
}

// requireNetworks returns what the cloud can do, and refuses a call to a cloud
// without networks, or without what the call needs beside them.
func (n *networkClient) requireNetworks(ctx context.Context, op string, needs ...cloud.Capability) (cloud.Capabilities, *cloud.Error) {
	has, err := n.capabilities.neededBy(ctx, op)
	if err != nil {
		return nil, err
	}
	return has, require(op, has, append(needs, cloud.Networks)...)
}

// networkCall is a call about one network. With an empty id it would be about all
// of them.
func (n *networkClient) networkCall(ctx context.Context, method, id, op string, needs ...cloud.Capability) (*call, *cloud.Error) {
	op += quote(id)
	if id == "" {
		return nil, refuse(op, cloud.Rejected, "no id was given")
	}
	if _, err := n.requireNetworks(ctx, op, needs...); err != nil {
		return nil, err
	}
	return &call{
		about: aboutNetwork, method: method, route: "/networks/{id}", path: join("networks", id),
		limit: maxBody, op: op,
	}, nil
}

// doNetwork makes a call whose answer is the network of this id.
func (n *networkClient) doNetwork(ctx context.Context, call *call, id string) (cloud.Network, error) {
	got, err := n.calls.do(ctx, call)
	if err != nil {
		return cloud.Network{}, err
	}
	network, err := decodeNetwork(call, got, n.ignored)
	if err != nil {
		return cloud.Network{}, err
	}
	if network.ID != id {
		return cloud.Network{}, n.scrubber.ofAnotherID(call, got, "network", id, network.ID)
	}
	return network, nil
}

func decodeNetwork(call *call, got *answer, into *ignored) (cloud.Network, *cloud.Error) {
	return decodeOne(call, got, into, (*reader).network)
}

// decodeNetworks reads a listing. One bad network spoils it, since a network
// left out would look gone.
func decodeNetworks(call *call, got *answer, in *stream, into *ignored) ([]cloud.Network, *cloud.Error) {
	r, networks := newReader(into), []cloud.Network{}
	_, err := (&list{noun: "networks", field: "networks", object: true, element: func(n int, value []byte) error {
		network, err := r.network(value)
		if err != nil {
			return unusable(fmt.Sprintf("network %d of the listing: %s", n, got.elementError(err, network.ID)))
		}
		networks = append(networks, network)
		return r.kept.add(networkSize+len(network.ID)+len(network.Name)+len(network.CIDR)+len(network.IPv6CIDR)+len(network.Gateway)+len(network.Router.ExternalNetwork)+nameserverSize*len(network.DNSNameservers), maxSmall)
	}}).read(call, got, in)
	if err != nil {
		return nil, err
	}
	return networks, nil
}

// network reads a network. Only id and name are indispensable: a network of somebody
// else may have no gateway, and must not make the listing unreadable.
func (r *reader) network(data []byte) (net cloud.Network, err error) {
	net.ID, net.Name, err = r.named(data, func(field, value []byte) {
		switch string(field) {
		case "cidr":
			net.CIDR = r.address("cidr", value)
		case "ipv6CIDR":
			net.IPv6CIDR = r.address("ipv6CIDR", value)
		case "gateway":
			net.Gateway = r.address("gateway", value)
		case "dnsNameservers":
			net.DNSNameservers = r.nameservers(value)
		case "router":
			net.Router = r.router(value)
		case "createdAt":
			net.CreatedAt = r.time("createdAt", value)
		}
	})
	return net, err
}

// address reads a range or a gateway, empty if it is not a text.
func (r *reader) address(field string, value []byte) string {
	if !isText(value) {
		if !isNull(value) {
			r.ignored.add(field, "not a string")
		}
		return ""
	}
	return r.cut(field, unquote(value), maxRange)
}

// nameservers reads the DNS servers of a network, without those that are no texts.
func (r *reader) nameservers(value []byte) []string {
	const field = "dnsNameservers"
	var servers []string
	array := values(value, func(value []byte) {
		switch text := r.address(field, value); {
		case text == "":
		case len(servers) == maxNameservers:
			r.ignored.add(field, "too many")
		default:
			servers = append(servers, text)
		}
	})
	if !array && !isNull(value) {
		r.ignored.add(field, "not an array")
	}
	return servers
}

// routerTo returns the router of a request; nil for none.
func routerTo(external string) *wireRouter {
	if external == "" {
		return nil
	}
	return &wireRouter{ExternalNetwork: external}
}

// router reads the router of a network.
func (r *reader) router(value []byte) (router cloud.Router) {
	object := fields(value, func(field, value []byte) {
		if string(field) == "externalNetwork" {
			router.ExternalNetwork = r.text("externalNetwork", value)
		}
	})
	if !object && !isNull(value) {
		r.ignored.add("router", "not an object")
	}
	return router
}
