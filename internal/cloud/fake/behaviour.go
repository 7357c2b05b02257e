package fake

import (
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// SetCapabilities replaces what the cloud can do.
func (c *Cloud) SetCapabilities(caps cloud.Capabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings.caps = cloud.NewCapabilities(caps...)
}

// Prohibit forbids names from now on.
func (c *Cloud) Prohibit(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.settings.prohibited[name] = true
	}
}

// SetHosts replaces the hosts.
func (c *Cloud) SetHosts(hosts ...cloud.Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.hosts.list = slices.Clone(hosts)
}

// SetUtilization sets the utilization of every server that has none of its own, in percent.
func (c *Cloud) SetUtilization(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.utilization = percent
}

// SetSlow sets whether builds and deletions of servers end only when Finish is
// called, as they may on a cloud with the capability Async.
func (c *Cloud) SetSlow(slow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.slow = slow
}

// SetReusesIDs sets whether new servers, networks and snapshots have the lowest number that
// is free. A number is free as soon as a deletion takes effect, before its answer.
func (c *Cloud) SetReusesIDs(reuses bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.store.reuses, c.networks.store.reuses, c.snapshots.reuses = reuses, reuses, reuses
}

// Withhold sets which ids new servers and networks do not have, although they are free.
func (c *Cloud) Withhold(withheld func(id string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.store.withheld, c.networks.store.withheld = withheld, withheld
}

// Normalize sets whether the cloud stores names in lower case.
func (c *Cloud) Normalize(normalize bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings.normalize = normalize
}

// Alter sets a function that changes each new server, for clouds that change names or drop labels.
// The requested name is taken as long as the server exists.
func (c *Cloud) Alter(change func(*cloud.Server)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.alter = change
}

// AlterNetworks sets a function that changes each new network.
func (c *Cloud) AlterNetworks(change func(*cloud.Network)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.networks.alter = change
}

// AlterSnapshots sets a function that changes each new snapshot.
func (c *Cloud) AlterSnapshots(change func(*cloud.Snapshot)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots.alter = change
}

// AnswerCreateWith has creates answer with a server that exists, and create none.
func (c *Cloud) AnswerCreateWith(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.answer = id
}

// SetNeedsStop sets whether the size of a running server cannot be changed.
func (c *Cloud) SetNeedsStop(needsStop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.needsStop = needsStop
}

// SetKeepsSize sets whether changes of the size are accepted and not made.
func (c *Cloud) SetKeepsSize(keepsSize bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.keepsSize = keepsSize
}

// Guests is what guests do that are asked to shut down.
type Guests int

const (
	// GuestsShutDown is that they shut down at once.
	GuestsShutDown Guests = iota
	// GuestsIgnore is that they go on.
	GuestsIgnore
	// GuestsUnavailable is that they cannot be asked.
	GuestsUnavailable
)

// SetGuests sets what guests do that are asked to shut down.
func (c *Cloud) SetGuests(guests Guests) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.guests = guests
}

// Hide makes the listing leave out a server; other calls find it.
func (c *Cloud) Hide(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.hidden[id] = true
}

// Show makes the listing show these hidden servers again, all if none are given.
func (c *Cloud) Show(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ids) == 0 {
		clear(c.servers.hidden)
	}
	for _, id := range ids {
		delete(c.servers.hidden, id)
	}
}

// SetLag sets how long after its creation the listing shows a server.
func (c *Cloud) SetLag(lag time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.lag = lag
}

// SetOperating sets whether changes of servers are operations, which needs the
// capability Operations. A server that is created has no id before its operation ends.
func (c *Cloud) SetOperating(operating bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations.operating = operating
}

// SetProving sets whether operations say what they have made, and that a server is gone.
func (c *Cloud) SetProving(proving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations.proving = proving
}

// SetUndated sets whether the cloud reports changes as of no time, as with events of its
// own clock. Full sets have a time.
func (c *Cloud) SetUndated(undated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches.undated = undated
}

// EndWatches ends the calls of Watch under way, as the end of a session does.
func (c *Cloud) EndWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.watches.ended)
	c.watches.ended = make(chan struct{})
}
