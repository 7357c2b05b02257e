package inventory

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Hosts returns the cloud's hosts as listed at or after notBefore, asking the
// cloud where that was not done yet. They are shared and must not be changed.
// It fails as cloud.HostReader does, with ctx, or because the cloud is not
// connected; a failure is not remembered.
func (i *Inventory) Hosts(ctx context.Context, notBefore time.Time) ([]cloud.Host, error) {
	client := i.View().Client
	if client == nil {
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "list hosts", Detail: notConnected}
	}
	hosts, _, err := i.hosts.get(ctx, notBefore, i.clock, client.ListHosts)
	return hosts, err
}
