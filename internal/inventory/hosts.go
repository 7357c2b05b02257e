package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// HostsTimeout is how long a caller of Hosts.List waits for the cloud.
const HostsTimeout = 5 * time.Second

// Hosts is what is known of a cloud's hosts. It outlives connections. All methods may be
// called at any time from any goroutine.
type Hosts struct {
	connection
	known *onDemandList[cloud.Host]
}

func newHosts(clock func() time.Time) *Hosts {
	return &Hosts{connection: connection{clock: clock}, known: newOnDemandList[cloud.Host](clock)}
}

// disconnect drops the client and what is known. The list is new, so that the result of a
// call under way is dropped.
func (h *Hosts) disconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.client, h.known = nil, newOnDemandList[cloud.Host](h.clock)
}

// List returns the cloud's hosts as listed at or after notBefore, and lists
// them if that was not done yet. They are shared and must not be changed.
//
// It fails as cloud.HostReader does, with the error of ctx, with a cloud error
// of kind Unavailable if the cloud is not connected, or with ErrNotAnswered
// after HostsTimeout. A cloud error is returned to all callers for a poll
// interval. After ErrNotAnswered, callers fail at once for HostsTimeout; then
// they get the listing that was late, however old it is by then.
func (h *Hosts) List(ctx context.Context, notBefore time.Time) ([]cloud.Host, error) {
	h.mu.RLock()
	client, known, interval := h.client, h.known, h.settings.PollInterval
	h.mu.RUnlock()
	if client == nil {
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "list hosts", Detail: notConnected}
	}
	got, err := known.get(ctx, listQuery[cloud.Host]{
		notBefore: notBefore, list: client.ListHosts, failureTTL: interval, maxWait: HostsTimeout,
	})
	if errors.Is(err, ErrNotAnswered) {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	return got.items, err
}
