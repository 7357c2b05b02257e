package fake

import (
	"context"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// ListHosts returns every host.
func (c *Cloud) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	list := call{verb: ListHosts, op: "list hosts", needs: []cloud.Capability{cloud.Hosts}}
	return do(ctx, c, list, func() ([]cloud.Host, error) {
		return append([]cloud.Host{}, c.hosts...), nil
	})
}

// SetHosts replaces the hosts.
func (c *Cloud) SetHosts(hosts ...cloud.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts = slices.Clone(hosts)
}
