package fake

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// hostClient has the hosts, and lists them.
type hostClient struct {
	calls *calls
	list  []cloud.Host
}

// ListHosts returns every host.
func (c *hostClient) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	list := call{verb: ListHosts, op: "list hosts", needs: []cloud.Capability{cloud.Hosts}}
	return do(ctx, c.calls, list, func() ([]cloud.Host, error) {
		return append([]cloud.Host{}, c.list...), nil
	})
}
