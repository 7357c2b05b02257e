package openstack

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxName bounds a name, in characters.
const maxName = 255

// CheckName refuses names that the compute service would refuse. It sends nothing:
// names are not unique.
func (c *Client) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if ctx.Err() != nil {
		return c.session.ended(ctx, op)
	}
	return asError(checkName(op, name.Name))
}

// checkName refuses names that cannot be used. The service counts only characters of the
// basic plane as printable.
func checkName(op, name string) *cloud.Error {
	switch {
	case name == "":
		return refuse(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return refuse(op, cloud.Rejected, "the name is not valid UTF-8")
	case utf8.RuneCountInString(name) > maxName:
		return refuse(op, cloud.Prohibited, "the name has more than %d characters", maxName)
	case strings.TrimSpace(name) != name:
		return refuse(op, cloud.Prohibited, "the name begins or ends with a space")
	}
	for _, r := range name {
		if r > 0xffff || unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return refuse(op, cloud.Prohibited, "the name has a character that this cloud does not allow in names")
		}
	}
	return nil
}

// GetServer returns the server of this id, in any spelling of a UUID.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	id = cloud.CanonicalUUID(id)
	op := "get server " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	defer end()
	s, err := c.get(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	return s.domain(), nil
}

// get returns the server of this id.
func (c *Client) get(ctx context.Context, op, id string) (*server, *cloud.Error) {
	s, err := c.read(ctx, op, id)
	if err == nil {
		c.volumes.identify(ctx, op, []*server{s})
	}
	return s, err
}

// read reads a server. A deleted server that the cloud keeps so that it can be restored is not found:
// only the listing of changes has it.
func (c *Client) read(ctx context.Context, op, id string) (*server, *cloud.Error) {
	got, err := c.readKept(ctx, op, id)
	if err == nil && got.kept() {
		return nil, refuse(op, cloud.NotFound, "the server is deleted, and the cloud keeps it so that it can be restored")
	}
	return got, err
}

// readKept reads a server, also a deleted one that the cloud keeps so that it can be restored.
func (c *Client) readKept(ctx context.Context, op, id string) (*server, *cloud.Error) {
	var got struct {
		Server *server `json:"server"`
	}
	call := &call{
		about: aboutServer, service: compute, method: http.MethodGet, route: "compute/servers/{id}", path: "servers/" + id, op: op, out: &got,
	}
	if err := c.session.do(ctx, call); err != nil {
		return nil, err
	}
	switch {
	case got.Server == nil || got.Server.check() != nil:
		return nil, unreadable(call, "the answer has no server")
	case got.Server.ID != id:
		return nil, unreadable(call, cloud.OfAnotherID("server", id, got.Server.ID))
	}
	c.complete(got.Server)
	return got.Server, nil
}

// complete adds to a server what the service does not show of it, as far as it is known, and
// leaves of its fault what is for users.
func (c *Client) complete(s *server) {
	s.Image.name = c.images.names.of(s.imageID())
	s.Fault.Message = c.session.exchange.publicFault(s.Fault.Message)
}

// ServerStatus reports no utilization: the diagnostics of a server are for
// administrators of the cloud. It is a read of the server, which may not exist.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	_, err := c.GetServer(ctx, id)
	return cloud.Status{}, err
}

// DeleteServer begins the deletion of a server, and asks whether it has ended already.
func (c *Client) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	op := "delete server " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	if err := c.releaseDisks(ctx, op, id); err != nil {
		return cloud.Result{}, err
	}
	call := &call{
		about: aboutServer, service: compute, method: http.MethodDelete, route: "compute/servers/{id}", path: "servers/" + id, op: op,
	}
	if err := c.session.do(ctx, call); err != nil {
		return cloud.Result{}, err
	}
	left, err := c.read(ctx, op, id)
	switch {
	case err == nil && left.state() == cloud.StateDeleting:
		c.groups.leave(id, left.Metadata[groupKey])
		return cloud.Result{Server: left.domain(), Operation: operation(opDelete, id)}, nil
	case err != nil && err.Kind == cloud.NotFound:
		return cloud.Result{}, nil
	default: // it was accepted, whatever the read says
		return cloud.Result{Server: cloud.Server{ID: id, State: cloud.StateDeleting}, Operation: operation(opDelete, id)}, nil
	}
}
