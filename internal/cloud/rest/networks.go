package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// The cloud's JSON of networks.
type (
	wireNetwork struct {
		ID        string   `json:"id"`
		Name      string   `json:"name"`
		CIDR      string   `json:"cidr"`
		Gateway   string   `json:"gateway"`
		CreatedAt wireTime `json:"createdAt"`
	}
	wireNetworks struct {
		// Networks is nil where the field is missing or null.
		Networks []wireNetwork `json:"networks"`
	}
	wireCreateNetwork struct {
		Name    string `json:"name"`
		CIDR    string `json:"cidr"`
		Gateway string `json:"gateway"`
	}
	wireUpdateNetwork struct {
		Gateway string `json:"gateway"`
	}
)

// ListNetworks returns all networks: this listing has no pages.
func (c *Client) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/networks", path: "/networks",
		limit: maxPage, op: "list networks",
	}
	if _, err := c.requireNetworks(ctx, call.op); err != nil {
		return nil, err
	}
	got, err := c.do(ctx, call)
	if err != nil {
		return nil, err
	}
	networks, err := decodeNetworks(call, got)
	return networks, asError(err)
}

// GetNetwork returns the network of this id.
func (c *Client) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	call, err := c.networkCall(ctx, http.MethodGet, id, "get network ")
	if err != nil {
		return cloud.Network{}, err
	}
	return c.doNetwork(ctx, call, id)
}

// CreateNetwork creates a network. The key is sent only to a cloud that honours
// keys; only then is the call ever sent twice.
func (c *Client) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	op := "create network " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Network{}, err
	}
	has, err := c.requireNetworks(ctx, op)
	if err != nil {
		return cloud.Network{}, err
	}
	call := &call{
		about: aboutCreate, method: http.MethodPost, route: "/networks", path: "/networks", op: op, limit: maxBody,
		body: encode(wireCreateNetwork{Name: req.Name, CIDR: req.CIDR, Gateway: req.Gateway}),
	}
	if has.Has(cloud.Idempotency) {
		call.key = req.IdempotencyKey
	}
	if !sendable(call.key) {
		return cloud.Network{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	}
	got, err := c.do(ctx, call)
	if err != nil {
		return cloud.Network{}, err
	}
	network, err := decodeNetwork(call, got)
	if err != nil {
		return cloud.Network{}, err
	}
	if network.Name != req.Name {
		return cloud.Network{}, unreadable(call, "the answer is about a network of another name")
	}
	return network, nil
}

// UpdateNetwork sets the gateway. It is never sent twice.
func (c *Client) UpdateNetwork(ctx context.Context, id, gateway string) (cloud.Network, error) {
	call, err := c.networkCall(ctx, http.MethodPatch, id, "update network ")
	if err != nil {
		return cloud.Network{}, err
	}
	call.body = encode(wireUpdateNetwork{Gateway: gateway})
	return c.doNetwork(ctx, call, id)
}

// DeleteNetwork deletes the network of this id.
func (c *Client) DeleteNetwork(ctx context.Context, id string) error {
	call, err := c.networkCall(ctx, http.MethodDelete, id, "delete network ")
	if err != nil {
		return err
	}
	call.limit = 0
	_, err = c.do(ctx, call)
	return asError(err)
}

// requireNetworks returns what the cloud can do, and refuses a call to a cloud
// without networks.
func (c *Client) requireNetworks(ctx context.Context, op string) (cloud.Capabilities, *cloud.Error) {
	has, err := c.capabilitiesFor(ctx, op)
	if err != nil {
		return nil, err
	}
	return has, require(op, has, cloud.Networks)
}

// networkCall is a call about one network. With an empty id it would be about all
// of them.
func (c *Client) networkCall(ctx context.Context, method, id, op string) (*call, *cloud.Error) {
	op += quote(id)
	if id == "" {
		return nil, refuse(op, cloud.Rejected, "no id was given")
	}
	if _, err := c.requireNetworks(ctx, op); err != nil {
		return nil, err
	}
	return &call{
		about: aboutNetwork, method: method, route: "/networks/{id}", path: join("networks", id),
		limit: maxBody, op: op,
	}, nil
}

// doNetwork makes a call whose answer is the network of this id.
func (c *Client) doNetwork(ctx context.Context, call *call, id string) (cloud.Network, error) {
	got, err := c.do(ctx, call)
	if err != nil {
		return cloud.Network{}, err
	}
	network, err := decodeNetwork(call, got)
	if err != nil {
		return cloud.Network{}, err
	}
	if network.ID != id {
		return cloud.Network{}, unreadable(call, "the answer is about another network")
	}
	return network, nil
}

func decodeNetwork(call *call, got *answer) (cloud.Network, *cloud.Error) {
	var w wireNetwork
	if err := decode(call, got, &w); err != nil {
		return cloud.Network{}, err
	}
	if err := w.check(); err != nil {
		return cloud.Network{}, unreadable(call, err.Error())
	}
	return w.network(), nil
}

// decodeNetworks reads a listing. One bad network spoils it, since a network
// left out would look gone.
func decodeNetworks(call *call, got *answer) ([]cloud.Network, *cloud.Error) {
	var listing wireNetworks
	if err := decode(call, got, &listing); err != nil {
		return nil, err
	}
	if listing.Networks == nil {
		return nil, unreadable(call, "the answer holds no list of networks")
	}
	networks := make([]cloud.Network, 0, len(listing.Networks))
	for i := range listing.Networks {
		if err := listing.Networks[i].check(); err != nil {
			return nil, unreadable(call, fmt.Sprintf("network %d of the listing: %v", i+1, err))
		}
		networks = append(networks, listing.Networks[i].network())
	}
	return networks, nil
}

// check returns what makes the network unusable: without its range or gateway
// it cannot be compared with what it should be.
func (w *wireNetwork) check() error {
	if err := checkID(w.ID); err != nil {
		return err
	}
	switch {
	case w.Name == "":
		return errors.New("it has no name")
	case w.CIDR == "":
		return errors.New("it has no cidr")
	case w.Gateway == "":
		return errors.New("it has no gateway")
	}
	return nil
}

func (w *wireNetwork) network() cloud.Network {
	return cloud.Network{ID: w.ID, Name: w.Name, CIDR: w.CIDR, Gateway: w.Gateway, CreatedAt: w.CreatedAt.Time}
}
