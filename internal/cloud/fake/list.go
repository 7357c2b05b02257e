package fake

import (
	"context"
	"strconv"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxPage is the largest limit of a page, and defaultPage the limit of a page without one.
	maxPage     = 1000
	defaultPage = 100
)

// ListServers returns a page, in the order in which the servers were added. A
// cloud without Sizing has one page and ignores the limit.
func (c *serverClient) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	const op = "list servers"
	if opts.Limit < 0 || opts.Limit > maxPage {
		return cloud.ServerPage{}, failure(op, cloud.Rejected, "the limit must be within 0 to %d", maxPage)
	}
	var needs needs
	needs.when(len(opts.Labels) > 0, cloud.Labels)
	needs.when(opts.Marker != "", cloud.Sizing)
	return do(ctx, c.calls, call{verb: ListServers, op: op, needs: needs}, func() (cloud.ServerPage, error) {
		after := 0
		if opts.Marker != "" {
			var err error
			if after, err = strconv.Atoi(opts.Marker); err != nil {
				return cloud.ServerPage{}, failure(op, cloud.Rejected, "unknown marker %q", opts.Marker)
			}
		}
		return c.page(after, c.limit(opts.Limit), opts.Labels), nil
	})
}

// limit returns how many servers a page holds. The caller holds mu.
func (c *serverClient) limit(asked int) int {
	switch {
	case !c.settings.caps.Has(cloud.Sizing):
		return len(c.store.items)
	case asked > 0:
		return asked
	default:
		return defaultPage
	}
}

// page returns the listed servers after a place in the order. The caller holds mu.
func (c *serverClient) page(after, limit int, labels map[string]string) cloud.ServerPage {
	page := cloud.ServerPage{Servers: []cloud.Server{}}
	last := after
	for _, one := range c.store.ordered() {
		if one.at <= after || !c.listed(one.item, labels) {
			continue
		}
		if len(page.Servers) == limit {
			page.Next = strconv.Itoa(last)
			break
		}
		page.Servers = append(page.Servers, c.reported(one.item))
		last = one.at
	}
	return page
}

// listed reports whether the listing shows a server that must carry these labels.
// The caller holds mu.
func (c *serverClient) listed(s cloud.Server, labels map[string]string) bool {
	if c.hidden[s.ID] || s.CreatedAt.Add(c.lag).After(c.settings.clock()) {
		return false
	}
	for key, value := range labels {
		if got, ok := s.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}
