package fake

import (
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// Finish ends all builds and deletions.
func (c *Cloud) Finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers.store.all() {
		switch s.State {
		case cloud.StateBuilding:
			s.State = cloud.StateActive
			if c.servers.poweredOff[s.ID] {
				s.State = cloud.StateStopped
			}
			delete(c.servers.poweredOff, s.ID)
			c.servers.store.put(s.ID, s)
		case cloud.StateDeleting:
			c.servers.remove(s.ID)
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
		c.servers.store.put(s.ID, s.Clone())
	}
}

// RemoveServers takes servers out of the cloud.
func (c *Cloud) RemoveServers(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.servers.remove(id)
	}
}

// Clear takes all servers and networks out of the cloud.
func (c *Cloud) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers.store.clear()
	c.networks.store.clear()
}

// ModifyServer changes a server, and reports whether there is one of this id.
func (c *Cloud) ModifyServer(id string, change func(*cloud.Server)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.servers.store.get(id)
	if ok {
		s = s.Clone()
		change(&s)
		c.servers.store.put(id, s)
	}
	return ok
}

// Server returns the server of this id as it is stored, the zero one if there is none.
func (c *Cloud) Server(id string) cloud.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, _ := c.servers.store.get(id)
	return s.Clone()
}

// HasServer reports whether there is a server of this id.
func (c *Cloud) HasServer(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers.store.has(id)
}

// Servers returns all servers as they are stored, in the order in which they were added.
func (c *Cloud) Servers() []cloud.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	servers := c.servers.store.all()
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
	for id := range c.servers.store.items {
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
	return c.servers.keys[key].req
}

// AddNetworks puts networks into the cloud as they are, each in place of the one
// with its id, if there is one.
func (c *Cloud) AddNetworks(networks ...cloud.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range networks {
		c.networks.store.put(n.ID, n)
	}
}

// SetNetworks replaces all networks.
func (c *Cloud) SetNetworks(networks ...cloud.Network) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.networks.store.clear()
	for _, n := range networks {
		c.networks.store.put(n.ID, n)
	}
}

// RemoveNetworks takes networks out of the cloud.
func (c *Cloud) RemoveNetworks(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		c.networks.store.remove(id)
	}
}

// ModifyNetwork changes a network, and reports whether there is one of this id.
func (c *Cloud) ModifyNetwork(id string, change func(*cloud.Network)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.networks.store.get(id)
	if ok {
		change(&n)
		c.networks.store.put(id, n)
	}
	return ok
}

// Networks returns all networks, in the order in which they were added.
func (c *Cloud) Networks() []cloud.Network {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.networks.store.all()
}

// UserData returns the user data of the creates of a name that were accepted or refused
// by the cloud itself, oldest first.
func (c *Cloud) UserData(name string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers.userData[name])
}

// Attachments returns the interfaces that a server was created with by CreateServer.Interfaces.
func (c *Cloud) Attachments(server string) []cloud.Attachment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers.interfaces[server])
}

// FirstCreates returns the names of the creates that came as the first with their key, and
// of those of them whose key an earlier create had used.
func (c *Cloud) FirstCreates() (first, repeated []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers.firsts), slices.Clone(c.servers.repeated)
}

// Snapshots returns the snapshots of a server, oldest first.
func (c *Cloud) Snapshots(serverID string) []cloud.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.snapshots.of[serverID])
}

// SetSnapshots replaces the snapshots of a server.
func (c *Cloud) SetSnapshots(serverID string, all ...cloud.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots.of[serverID] = all
}

// Reverts returns how many reverts took effect.
func (c *Cloud) Reverts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshots.reverted
}

// SetProgress sets how much of all open operations is done, in percent.
func (c *Cloud) SetProgress(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.operations.store.ordered() {
		if !one.item.Done {
			one.item.Progress = percent
			c.operations.store.put(one.id, one.item)
		}
	}
}

// FinishOperations ends all open operations.
func (c *Cloud) FinishOperations() { c.operations.end(nil) }

// FailOperations ends all open operations without an effect.
func (c *Cloud) FailOperations(err *cloud.Error) { c.operations.end(err) }

// ForgetOperations makes the cloud forget all operations, open ones without an effect.
func (c *Cloud) ForgetOperations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations.store.clear()
}

// Watchers returns how many calls of Watch are under way.
func (c *Cloud) Watchers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches.running
}
