package inventory

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// utilization is the last answer of GET /servers/{id}/status.
type utilization struct {
	status cloud.Status
	at     time.Time
	// unreadable is why the last answer cannot be understood; nil if it can.
	unreadable error
}

// Utilization returns a server's utilization from GET /servers/{id}/status. It
// calls the cloud at most once a poll interval for each server. It is for
// clouds without bulk status. On an error, it returns the last known utilization.
// An answer that cannot be understood counts as the answer of the interval.
func (i *Inventory) Utilization(ctx context.Context, id string) (cloud.Status, error) {
	i.mu.RLock()
	last, ok := i.utilization[id]
	client, interval := i.client, i.settings.PollInterval
	i.mu.RUnlock()
	if client == nil {
		return last.status, &cloud.Error{Kind: cloud.Unavailable, Op: "read the status of the server", Detail: notConnected}
	}
	if ok && i.clock().Sub(last.at) < interval*9/10 {
		return last.status, last.unreadable
	}
	status, err := client.ServerStatus(ctx, id)
	next := utilization{status: status, at: i.clock()}
	switch {
	case cloud.Is(err, cloud.Unreadable):
		next.status, next.unreadable = last.status, err
	case err != nil:
		return last.status, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.client != nil { // else what is known was dropped meanwhile
		i.utilization[id] = next
	}
	return next.status, err
}

// UnreadableUtilization returns why the utilization of a server cannot be
// understood: of the first one by ID, or nil if that of all servers can.
func (i *Inventory) UnreadableUtilization() error {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var first string
	var err error
	for id, u := range i.utilization {
		if u.unreadable != nil && (err == nil || id < first) {
			first, err = id, u.unreadable
		}
	}
	return err
}
