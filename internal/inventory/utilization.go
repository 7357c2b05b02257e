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

// Reading is what is known of the utilization of a server.
type Reading struct {
	cloud.Status
	// Known is whether Status is not too old.
	Known bool
	// Again is after how long to ask for it again.
	Again time.Duration
}

// Utilization returns a server's utilization from GET /servers/{id}/status. It calls the
// cloud at most once in an interval for each server: the poll interval or, with many
// servers, as long as it takes to read all of them at half the Cloud's rate. It is for
// clouds without bulk status. On an error, it returns the last known utilization, which
// counts as known for three intervals. An answer that cannot be understood counts as the
// answer of the interval.
func (i *Inventory) Utilization(ctx context.Context, id string) (Reading, error) {
	i.mu.RLock()
	u, asked := i.utilization[id]
	client, interval := i.client, i.utilizationInterval()
	i.mu.RUnlock()
	now, again := i.clock(), interval
	var err error
	switch {
	case client == nil:
		err = &cloud.Error{Kind: cloud.Unavailable, Op: "read the status of the server", Detail: notConnected}
	case asked && now.Sub(u.asked) < interval*9/10:
		err, again = u.unreadable, interval-now.Sub(u.asked)
	default:
		last := u.asked
		if !asked {
			last = now.Add(-interval)
		}
		var status cloud.Status
		status, err = client.ServerStatus(cloud.WithRefreshes(ctx, last), id)
		now = i.clock()
		switch {
		case err == nil:
			u = utilization{status: status, read: now, asked: now}
			i.keepUtilization(id, u)
		case cloud.Is(err, cloud.Unreadable):
			u.asked, u.unreadable = now, err
			i.keepUtilization(id, u)
		case cloud.Is(err, cloud.Throttled):
			again = max(time.Second, cloud.RetryAfter(err))
		}
	}
	return Reading{Status: u.status, Known: u.known(now, interval), Again: again}, err
}

func (i *Inventory) keepUtilization(id string, u utilization) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.client != nil { // else what is known was dropped meanwhile
		i.utilization[id] = u
	}
}

// utilizationInterval returns the time between two reads of a server's utilization. The
// caller holds the lock.
func (i *Inventory) utilizationInterval() time.Duration {
	if i.settings.RequestsPerSecond == 0 {
		return i.settings.PollInterval
	}
	all := time.Duration(2*len(i.utilization)) * time.Second / time.Duration(i.settings.RequestsPerSecond)
	return max(i.settings.PollInterval, all)
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
