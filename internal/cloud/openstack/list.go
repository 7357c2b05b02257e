package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxLimit bounds the servers of a page.
	maxLimit = 1000
	// bulkLimit is the limit from which on a listing is one of all servers.
	bulkLimit = 500
	// maxPage bounds the body of a page, in bytes.
	maxPage = 32 << 20
)

// ListServers returns a page.
func (c *Client) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	to := &collector{}
	next, err := c.StreamServers(ctx, opts, to)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	return cloud.ServerPage{Servers: to.servers, Next: next}, nil
}

// collector keeps the servers of a page.
type collector struct{ servers []cloud.Server }

func (c *collector) Begin() { c.servers = []cloud.Server{} }

func (c *collector) Take(s cloud.Server) error {
	c.servers = append(c.servers, s)
	return nil
}

// StreamServers is ListServers that passes the servers on while they arrive.
func (c *Client) StreamServers(ctx context.Context, opts cloud.ListServers, to cloud.ServerSink) (next string, err error) {
	const op = "list servers"
	if opts.Limit < 0 || opts.Limit > maxLimit {
		return "", refuse(op, cloud.Rejected, "the limit is not within 0 to %d", maxLimit)
	}
	ctx, end, failed := c.session.begin(ctx, op)
	if failed != nil {
		return "", failed
	}
	defer end()
	next, failed = c.page(ctx, op, c.listQuery(opts), to.Begin, func(s *server) error {
		if listed := s.domain(); carries(listed, opts.Labels) {
			return to.Take(listed)
		}
		return nil
	})
	return next, asError(failed)
}

// page reads a page of servers, and returns the marker of the next one. It calls begin
// before each try. Servers of images whose names are not known, and
// those with volumes, come last.
func (c *Client) page(ctx context.Context, op string, query url.Values, begin func(), take func(*server) error) (next string, failed *cloud.Error) {
	call := &call{
		about: aboutCloud, service: compute, method: http.MethodGet, route: "compute/servers/detail", path: "servers/detail",
		query: query, op: op, limit: maxPage,
	}
	var held unnamed
	call.stream = func(body io.Reader) *cloud.Error {
		var last string
		next, held = "", unnamed{}
		begin()
		more, failed := readList(call, body, "servers", func(data []byte) error {
			var s server
			if err := json.Unmarshal(data, &s); err != nil {
				return errors.New("a server of the listing has a field of the wrong type")
			}
			if err := s.check(); err != nil {
				return fmt.Errorf("the listing has %w", err)
			}
			last = s.ID
			if held.hold(c.images.names, &s) || held.holdStored(&s) {
				return nil
			}
			return c.pass(&s, take)
		})
		if failed == nil && more && last == "" {
			return unreadable(call, "a page without servers refers to another one")
		}
		if more {
			next = last
		}
		return failed
	}
	if failed = c.session.do(ctx, call); failed == nil {
		c.images.names.lookUp(ctx, op, slices.Sorted(maps.Keys(held.ids)))
		c.volumes.identify(ctx, op, slices.Clone(held.servers))
		for _, s := range held.servers {
			if err := c.pass(s, take); err != nil {
				return "", asListError(call, err)
			}
		}
		return next, nil
	}
	if failed.Kind == cloud.Rejected && query.Has("marker") {
		// The server of the marker is gone. The next listing begins anew.
		failed.Kind = cloud.Unavailable
	}
	return "", failed
}

// unnamed are the servers of a page that wait for the names of their images, or for their disks.
type unnamed struct {
	servers []*server
	ids     map[string]bool
}

// hold reports whether a server waits until the names of the images of the page are looked up.
func (u *unnamed) hold(names *imageNames, s *server) bool {
	id := s.imageID()
	if !u.ids[id] && (len(u.ids) == maxImages || !names.due(id)) {
		return false
	}
	if u.ids == nil {
		u.ids = map[string]bool{}
	}
	u.ids[id] = true
	u.servers = append(u.servers, s)
	return true
}

// holdStored reports whether a server waits until the volumes of the page are looked up.
func (u *unnamed) holdStored(s *server) bool {
	if len(s.Volumes) == 0 {
		return false
	}
	u.servers = append(u.servers, s)
	return true
}

// pass takes a server that is complete.
func (c *Client) pass(s *server, take func(*server) error) error {
	c.complete(s)
	return take(s)
}

// listQuery returns the query of a page. The service finds servers by a tag, which is
// made from one label; the others are compared here.
func (c *Client) listQuery(opts cloud.ListServers) url.Values {
	query := url.Values{}
	// In a request without a limit, the service shows the servers of a cell that does not
	// answer, without names, which fails the listing. Otherwise it leaves them out.
	if first := opts.Marker == "" && opts.Limit >= bulkLimit; opts.Limit > 0 && !first {
		query.Set("limit", strconv.Itoa(opts.Limit))
	}
	if opts.Marker != "" {
		query.Set("marker", opts.Marker)
	}
	if value := tag(opts.Labels[c.cfg.TagLabel]); value != "" {
		query.Set("tags", value)
	}
	return query
}
