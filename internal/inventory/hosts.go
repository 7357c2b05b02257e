package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// HostsTimeout is how long a caller of Hosts waits for the cloud.
const HostsTimeout = 5 * time.Second

// Hosts returns the cloud's hosts as listed at or after notBefore, and lists
// them if that was not done yet. They are shared and must not be changed.
//
// It fails as cloud.HostReader does, with the error of ctx, with a cloud error
// of kind Unavailable if the cloud is not connected, or with ErrNotAnswered
// after HostsTimeout. A cloud error is returned to all callers for a poll
// interval. After ErrNotAnswered, callers fail at once for HostsTimeout; then
// they get the listing that was late, however old it is by then.
func (i *Inventory) Hosts(ctx context.Context, notBefore time.Time) ([]cloud.Host, error) {
	i.mu.RLock()
	client, list, interval := i.client, i.hosts, i.settings.PollInterval
	i.mu.RUnlock()
	if client == nil {
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "list hosts", Detail: notConnected}
	}
	got, err := list.get(ctx, listQuery[cloud.Host]{
		notBefore: notBefore, list: client.ListHosts, failureTTL: interval, maxWait: HostsTimeout,
	})
	if errors.Is(err, ErrNotAnswered) {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	return got.items, err
}
