package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxLimit bounds the servers of a page.
const maxLimit = 1000

// CheckName asks for leave to use a name.
func (c *Client) CheckName(ctx context.Context, name string) error {
	op := "check name " + quote(name)
	if err := checkName(op, name); err != nil {
		return err
	}
	_, err := c.serve(ctx, &call{
		about: aboutName, method: http.MethodGet, route: "/check/{name}", path: join("check", name), op: op,
	})
	return asError(err)
}

// GetServer returns the server of this id.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	call, err := serverCall(http.MethodGet, id, "get server ")
	if err != nil {
		return cloud.Server{}, err
	}
	return c.serverOf(ctx, call, id)
}

// ServerStatus returns the status of the server of this id.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	call, err := serverCall(http.MethodGet, id, "get status of server ")
	if err != nil {
		return cloud.Status{}, err
	}
	call.route += "/status"
	call.path += "/status"
	got, err := c.serve(ctx, call)
	if err != nil {
		return cloud.Status{}, err
	}
	status, err := decodeStatus(call, got)
	return status, asError(err)
}

// ListServers returns a page. A core cloud has one page, and no filters.
func (c *Client) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	call := listing()
	has, err := c.capable(ctx, call.op)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	if call.query, err = listQuery(call.op, has, opts); err != nil {
		return cloud.ServerPage{}, err
	}
	got, err := c.serve(ctx, call)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	page, err := decodePage(call, got)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	if page.Next != "" && !has.Has(cloud.Sizing) {
		// The cloud has become an extended one: ask again before the next call.
		c.probed.Store(nil)
		return cloud.ServerPage{}, unreadable(call, got, "the listing has further pages, though the cloud told no capabilities")
	}
	return page.ServerPage, nil
}

// DeleteServer asks for the end of the server of this id. A 202 says that it has begun.
func (c *Client) DeleteServer(ctx context.Context, id string) (bool, error) {
	call, err := serverCall(http.MethodDelete, id, "delete server ")
	if err != nil {
		return false, err
	}
	call.limit = 0
	got, err := c.serve(ctx, call)
	if err != nil {
		return false, err
	}
	return got.status != http.StatusAccepted, nil
}

func listing() *call {
	return &call{
		about: aboutCloud, method: http.MethodGet, route: "/servers", path: "/servers",
		limit: maxPage, op: "list servers",
	}
}

// listQuery is empty for a core cloud, which honours no parameters.
func listQuery(op string, has cloud.Capabilities, opts cloud.ListServers) (url.Values, *cloud.Error) {
	if opts.Limit < 0 || opts.Limit > maxLimit {
		return nil, refuse(op, cloud.Rejected, "the limit must be within 0 to %d", maxLimit)
	}
	if len(opts.Labels) > 0 {
		if err := lacking(op, has, cloud.Labels); err != nil {
			return nil, err
		}
	}
	if !has.Has(cloud.Sizing) {
		if opts.Marker != "" {
			return nil, refuse(op, cloud.Unsupported, "this cloud lists its servers on one page")
		}
		return nil, nil
	}
	query := url.Values{}
	if opts.Limit > 0 {
		query.Set("limit", strconv.Itoa(opts.Limit))
	}
	if opts.Marker != "" {
		query.Set("marker", opts.Marker)
	}
	for key, value := range opts.Labels {
		if key == "" || strings.Contains(key, "=") {
			return nil, refuse(op, cloud.Rejected, "the label key %s is empty or holds =", quote(key))
		}
		query.Add("label", key+"="+value)
	}
	slices.Sort(query["label"])
	return query, nil
}

// serverCall is a call about one server. An empty id would make it one about
// all of them.
func serverCall(method, id, op string) (*call, *cloud.Error) {
	op += quote(id)
	if id == "" {
		return nil, refuse(op, cloud.Rejected, "no id was given")
	}
	return &call{
		about: aboutServer, method: method, route: "/servers/{id}", path: join("servers", id),
		limit: maxBody, op: op,
	}, nil
}

// serverOf makes a call that answers with the server of this id.
func (c *Client) serverOf(ctx context.Context, call *call, id string) (cloud.Server, error) {
	got, err := c.serve(ctx, call)
	if err != nil {
		return cloud.Server{}, err
	}
	server, err := decodeServer(call, got)
	if err != nil {
		return cloud.Server{}, err
	}
	if server.ID != id {
		return cloud.Server{}, unreadable(call, got, "the answer is about another server")
	}
	return server, nil
}

// checkName refuses names that cannot be sent as they are.
func checkName(op, name string) *cloud.Error {
	switch {
	case name == "":
		return refuse(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return refuse(op, cloud.Rejected, "the name is not valid UTF-8")
	}
	return nil
}
