package inventory

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// utilization is what is known of GET /servers/{id}/status of one server.
type utilization struct {
	status cloud.Status
	// read is when the status was answered, and asked is when the cloud last answered.
	read, asked time.Time
	// unreadable is why the last answer cannot be understood; nil if it can.
	unreadable error
}

// Utilization returns a server's utilization from GET /servers/{id}/status. It calls
// the cloud at most once a poll interval for each server. It is for clouds without
// bulk status. On an error, it returns the last known utilization, which counts as
// known for three poll intervals. An answer that cannot be understood counts as the
// answer of the interval.
func (i *Inventory) Utilization(ctx context.Context, id string) (status cloud.Status, known bool, err error) {
	i.mu.RLock()
	u, asked := i.utilization[id]
	client, interval := i.client, i.settings.PollInterval
	i.mu.RUnlock()
	now := i.clock()
	switch {
	case client == nil:
		err = &cloud.Error{Kind: cloud.Unavailable, Op: "read the status of the server", Detail: notConnected}
	case asked && now.Sub(u.asked) < interval*9/10:
		err = u.unreadable
	default:
		status, err = client.ServerStatus(ctx, id)
		now = i.clock()
		switch {
		case err == nil:
			u = utilization{status: status, read: now, asked: now}
		case cloud.Is(err, cloud.Unreadable):
			u.asked, u.unreadable = now, err
		default:
			return u.status, u.known(now, interval), err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.client != nil { // else what is known was dropped meanwhile
			i.utilization[id] = u
		}
	}
	return u.status, u.known(now, interval), err
}

func (u utilization) known(now time.Time, interval time.Duration) bool {
	return !u.read.IsZero() && now.Sub(u.read) < 3*interval
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
