package inventory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// keptIntervals is for how many intervals a utilization counts as known.
	keptIntervals = 3
	// refusedIntervals and refusedFor are for how many intervals, and how long at least, it
	// does while the limits refuse to read it.
	refusedIntervals = 10
	refusedFor       = 10 * time.Minute
)

// Utilization is what is known of the utilization of a cloud's servers, where listings do
// not include it. It outlives connections. All methods may be called at any time from any
// goroutine.
type Utilization struct {
	connection
	// servers has what is known of each server, by its id.
	servers map[string]serverUtilization
	// readIntervals are the times between two reads of a utilization, by namespace, where
	// they are longer than the poll interval.
	readIntervals map[string]time.Duration
}

// serverUtilization is what is known of GET /servers/{id}/status of one server.
type serverUtilization struct {
	status cloud.Status
	// read is when the status was answered, and asked is when the cloud last answered.
	read, asked time.Time
	// wanted is when it was first asked for.
	wanted time.Time
	// namespace is that of the VM.
	namespace string
	// unreadable is why the last answer cannot be understood; nil if it can.
	unreadable error
}

// Reading is what is known of the utilization of a server.
type Reading struct {
	cloud.Status
	// Known is whether Status is not too old.
	Known bool
	// Pending is whether there is no Status yet, because the limits refused to read it.
	Pending bool
	// Again is after how long to ask for it again.
	Again time.Duration
}

func newUtilization(clock func() time.Time) *Utilization {
	return &Utilization{connection: connection{clock: clock}, servers: map[string]serverUtilization{}}
}

func (t *Utilization) configure(settings Settings) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings = settings
	t.spreadReads()
}

// disconnect drops the client and what is known.
func (t *Utilization) disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.client = nil
	clear(t.servers)
}

// keepListed drops the servers that a snapshot lacks.
func (t *Utilization) keepListed(snap *Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.servers, func(id string, _ serverUtilization) bool { return !snap.Has(id) })
	t.spreadReads()
}

func (t *Utilization) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.servers, id)
}

// Read returns a server's utilization from GET /servers/{id}/status, for a VM of
// the namespace that is the flow of ctx. It calls the cloud at most once in an interval
// for each server: the poll interval or, with many servers, as long as it takes to read
// those of the namespace at its part of half the Cloud's rate. It is for clouds without
// bulk status. On an error, it returns the last known utilization, which counts as known
// for three intervals. While the limits refuse the call, it counts as known for ten
// intervals, and for at least ten minutes. An answer that cannot be understood counts as
// the answer of the interval.
func (t *Utilization) Read(ctx context.Context, id string) (Reading, error) {
	namespace := cloud.FlowOf(ctx).Name
	t.mu.RLock()
	u, found := t.servers[id]
	client, poll := t.client, t.settings.PollInterval
	interval := max(poll, t.readIntervals[namespace])
	t.mu.RUnlock()
	now, again := t.clock(), interval
	var err error
	switch {
	case client == nil:
		err = &cloud.Error{Kind: cloud.Unavailable, Op: "read the status of the server", Detail: notConnected}
	case !u.asked.IsZero() && now.Sub(u.asked) < interval*9/10:
		err, again = u.unreadable, interval-now.Sub(u.asked)
	default:
		if !found {
			u.wanted = now
		}
		if !found || u.namespace != namespace { // another VM may have imported the server
			u.namespace = namespace
			t.keep(id, u)
		}
		var status cloud.Status
		status, err = client.ServerStatus(cloud.WithRefreshes(ctx, u.waitsSince(now, poll, interval)), id)
		now = t.clock()
		switch {
		case err == nil:
			u.status, u.read, u.asked, u.unreadable = status, now, now, nil
			t.keep(id, u)
		case cloud.Is(err, cloud.Unreadable):
			u.asked, u.unreadable = now, err
			t.keep(id, u)
		case cloud.Is(err, cloud.Throttled):
			again = max(time.Second, cloud.RetryAfter(err))
		}
	}
	return u.reading(now, interval, again, cloud.Is(err, cloud.Throttled)), err
}

func (t *Utilization) keep(id string, u serverUtilization) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.client != nil { // else what is known was dropped meanwhile
		t.servers[id] = u
	}
}

// spreadReads sets the time between two reads of a server's utilization for each namespace
// whose servers cannot all be read in a poll interval. Namespaces get even parts of half the
// rate, but none more than it needs. The caller holds the lock.
func (t *Utilization) spreadReads() {
	t.readIntervals = map[string]time.Duration{}
	if t.settings.RequestsPerSecond == 0 {
		return
	}
	servers := map[string]int{}
	for _, u := range t.servers {
		servers[u.namespace]++
	}
	byServers := slices.SortedFunc(maps.Keys(servers), func(a, b string) int { return cmp.Compare(servers[a], servers[b]) })
	left := float64(t.settings.RequestsPerSecond) / 2
	for n, namespace := range byServers {
		part, all := left/float64(len(byServers)-n), float64(servers[namespace])
		if need := all / t.settings.PollInterval.Seconds(); need <= part {
			left -= need
			continue
		}
		left -= part
		t.readIntervals[namespace] = time.Duration(all / part * float64(time.Second))
	}
}

// waitsSince returns since when the next read waits. It is compared with that of servers
// of other namespaces, so an interval of the namespace counts as long as a poll interval.
func (u serverUtilization) waitsSince(now time.Time, poll, interval time.Duration) time.Time {
	age := now.Sub(u.asked)
	if u.asked.IsZero() {
		age = interval + now.Sub(u.wanted)
	}
	if interval > poll {
		age = time.Duration(float64(age) * float64(poll) / float64(interval))
	}
	return now.Add(-age)
}

func (u serverUtilization) reading(now time.Time, interval, again time.Duration, refused bool) Reading {
	since, kept := u.read, keptIntervals*interval
	if since.IsZero() {
		since = u.wanted
	}
	if refused {
		kept = max(refusedIntervals*interval, refusedFor)
	}
	recent := now.Sub(since) < kept
	return Reading{
		Status: u.status, Known: recent && !u.read.IsZero(), Pending: recent && refused && u.read.IsZero() && u.unreadable == nil, Again: again,
	}
}

// Unreadable returns why the utilization of a server cannot be
// understood: of the first one by ID, or nil if that of all servers can.
func (t *Utilization) Unreadable() error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var first string
	var err error
	for id, u := range t.servers {
		if u.unreadable != nil && (err == nil || id < first) {
			first, err = id, u.unreadable
		}
	}
	return err
}
