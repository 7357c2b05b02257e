package fake

import (
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// SetCapabilities replaces what the cloud can do.
func (c *Cloud) SetCapabilities(caps cloud.Capabilities) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caps = cloud.NewCapabilities(caps...)
}

// Prohibit forbids names from now on.
func (c *Cloud) Prohibit(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		c.prohibited[name] = true
	}
}

// SetUtilization sets the utilization of every server that has none of its own, in percent.
func (c *Cloud) SetUtilization(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.utilization = percent
}

// SetSlow sets whether builds and deletions of servers end only when Finish is
// called, as they may on a cloud with the capability Async.
func (c *Cloud) SetSlow(slow bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = slow
}

// SetReusesIDs sets whether new servers, networks and snapshots have the lowest number that
// is free. A number is free as soon as a deletion takes effect, before its answer.
func (c *Cloud) SetReusesIDs(reuses bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.reuses, c.networks.reuses, c.snapshots.reuses = reuses, reuses, reuses
}

// Withhold sets which ids new servers and networks do not have, although they are free.
func (c *Cloud) Withhold(withheld func(id string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.withheld, c.networks.withheld = withheld, withheld
}

// Normalize sets whether the cloud stores names in lower case.
func (c *Cloud) Normalize(normalize bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.normalize = normalize
}

// Alter sets a function that changes each new server, for clouds that change names or drop labels.
// The requested name is taken as long as the server exists.
func (c *Cloud) Alter(change func(*cloud.Server)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alter = change
}

// AlterNetworks sets a function that changes each new network.
func (c *Cloud) AlterNetworks(change func(*cloud.Network)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alterNetwork = change
}

// AlterSnapshots sets a function that changes each new snapshot.
func (c *Cloud) AlterSnapshots(change func(*cloud.Snapshot)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alterSnapshot = change
}

// AnswerCreateWith has creates answer with a server that exists, and create none.
func (c *Cloud) AnswerCreateWith(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = id
}

// SetNeedsStop sets whether the size of a running server cannot be changed.
func (c *Cloud) SetNeedsStop(needsStop bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.needsStop = needsStop
}

// SetKeepsSize sets whether changes of the size are accepted and not made.
func (c *Cloud) SetKeepsSize(keepsSize bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepsSize = keepsSize
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
	c.guests = guests
}

// Finish ends all builds and deletions.
func (c *Cloud) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers.all() {
		switch s.State {
		case cloud.StateBuilding:
			s.State = cloud.StateActive
			if c.poweredOff[s.ID] {
				s.State = cloud.StateStopped
			}
			delete(c.poweredOff, s.ID)
			c.servers.put(s.ID, s)
		case cloud.StateDeleting:
			c.remove(s.ID)
		default:
		}
	}
}

// AddServers puts servers into the cloud as they are, each in place of the one
// with its id, if there is one.
func (c *Cloud) AddServers(servers ...cloud.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range servers {
		c.servers.put(s.ID, s.Clone())
	}
}

// RemoveServers takes servers out of the cloud.
func (c *Cloud) RemoveServers(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.remove(id)
	}
}

// Clear takes all servers and networks out of the cloud.
func (c *Cloud) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.clear()
	c.networks.clear()
}

// ModifyServer changes a server, and reports whether there is one of this id.
func (c *Cloud) ModifyServer(id string, change func(*cloud.Server)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.servers.get(id)
	if ok {
		s = s.Clone()
		change(&s)
		c.servers.put(id, s)
	}
	return ok
}

// Server returns the server of this id as it is stored, the zero one if there is none.
func (c *Cloud) Server(id string) cloud.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _ := c.servers.get(id)
	return s.Clone()
}

// HasServer reports whether there is a server of this id.
func (c *Cloud) HasServer(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers.has(id)
}

// Servers returns all servers as they are stored, in the order in which they were added.
func (c *Cloud) Servers() []cloud.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	servers := c.servers.all()
	for i, s := range servers {
		servers[i] = s.Clone()
	}
	return servers
}

// ServerIDs returns the ids of all servers, sorted; nil if there are none.
func (c *Cloud) ServerIDs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id := range c.servers.items {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Request returns the create that a server's idempotency key came with, the zero
// one if the key is unknown.
func (c *Cloud) Request(key string) cloud.CreateServer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serverKeys[key].req
}

// AddNetworks puts networks into the cloud as they are, each in place of the one
// with its id, if there is one.
func (c *Cloud) AddNetworks(networks ...cloud.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range networks {
		c.networks.put(n.ID, n)
	}
}

// SetNetworks replaces all networks.
func (c *Cloud) SetNetworks(networks ...cloud.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.networks.clear()
	for _, n := range networks {
		c.networks.put(n.ID, n)
	}
}

// RemoveNetworks takes networks out of the cloud.
func (c *Cloud) RemoveNetworks(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.networks.remove(id)
	}
}

// ModifyNetwork changes a network, and reports whether there is one of this id.
func (c *Cloud) ModifyNetwork(id string, change func(*cloud.Network)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.networks.get(id)
	if ok {
		change(&n)
		c.networks.put(id, n)
	}
	return ok
}

// Networks returns all networks, in the order in which they were added.
func (c *Cloud) Networks() []cloud.Network {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.networks.all()
}
