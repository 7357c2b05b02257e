package mockcloud

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// The methods below change servers without the REST API and without its checks,
// so that tests can create states that the API does not allow.

// Servers returns all servers with their utilization in the order of a list. All
// fields are set, regardless of the capabilities.
func (c *Cloud) Servers() []Server {
	c.advance()
	now := c.core.now()
	c.core.mu.RLock()
	defer c.core.mu.RUnlock()
	out := make([]Server, 0, len(c.core.st.order))
	for _, p := range c.core.st.order {
		out = append(out, c.views.full(c.core.st.servers[p.id], now))
	}
	return out
}

// Server returns one server as Servers does.
func (c *Cloud) Server(id string) (Server, bool) {
	c.advance()
	r, err := c.records.lookup(id)
	if err != nil {
		return Server{}, false
	}
	return c.views.full(r, c.core.now()), true
}

// UserDataSHA256 returns the SHA-256 of the user data of a server in hexadecimal digits,
// empty if it has none or does not exist.
func (c *Cloud) UserDataSHA256(id string) string {
	c.advance()
	r, err := c.records.lookup(id)
	if err != nil {
		return ""
	}
	return r.UserDataSHA256
}

func (v *views) full(r *record, now time.Time) Server {
	s := r.Server
	s.Labels = maps.Clone(s.Labels)
	v.measure(r, &s, now)
	return s
}

// PutServer adds a server or replaces the one with the same ID. Fields that are
// zero get a default: a new ID, ACTIVE, one core, 1 GiB, an address, the present time. The
// utilization is ignored. The ledger records a new server with ByAdmin.
func (c *Cloud) PutServer(s Server) (Server, error) {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	now := c.core.now()
	if s.ID == "" {
		s.ID = c.core.newID(c.core.st.hasServer)
	}
	if s.PowerState == "" {
		s.PowerState = PowerOn
	}
	if s.State == "" {
		s.State = c.servers.finalState(s.Name, s.PowerState)
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = now
	}
	if s.Host == "" {
		s.Host = c.hosts.pick(c.hosts.list)
	}
	s.Zone = c.hosts.zoneOf(s.Host)
	if s.Interfaces == nil {
		s.Interfaces = c.core.st.attach(&s, nil)
	}
	s.CPU, s.Memory = max(s.CPU, 1), max(s.Memory, 1)
	s.Labels = maps.Clone(s.Labels)
	s.CPUUtilization, s.CPUUsageMHz, s.MemoryUsageMB = nil, nil, nil
	r := &record{Server: s}
	var err error
	if old := c.core.st.servers[s.ID]; old != nil {
		r.Key, r.Override, r.Labelled = old.Key, old.Override, old.Labelled
		err = c.records.replace(r)
	} else {
		_, err = c.records.insert(r, 0, nil, LedgerEntry{Op: OpCreate, By: ByAdmin})
	}
	if err != nil {
		return Server{}, fmt.Errorf("putting server %s: %w", s.ID, err)
	}
	return c.views.full(r, now), nil
}

// DeleteServer deletes a server at once. It returns an error if there is no such
// server.
func (c *Cloud) DeleteServer(id string) error {
	c.advance()
	_, err := c.servers.delete(id, ByAdmin, "")
	return err
}

// RenameServer changes the name of a server. It returns an error if there is no
// such server.
func (c *Cloud) RenameServer(id, name string) error {
	return c.modify(id, func(r *record) { r.Name = name })
}

// SetServerState sets the state of a server to any value. A build or deletion in
// progress never completes.
func (c *Cloud) SetServerState(id string, state State) error {
	return c.modify(id, func(r *record) {
		r.State, r.ReadyAt, r.GoneAt, r.OffAt = state, time.Time{}, time.Time{}, time.Time{}
	})
}

// SetUtilisation makes a server report this utilization in percent, which can be
// out of range, instead of that of the model.
func (c *Cloud) SetUtilisation(id string, percent int) error {
	return c.modify(id, func(r *record) { r.Override = &percent })
}

// ClearUtilisation reverts SetUtilisation.
func (c *Cloud) ClearUtilisation(id string) error {
	return c.modify(id, func(r *record) { r.Override = nil })
}

func (c *Cloud) modify(id string, change func(*record)) error {
	c.advance()
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	r := c.core.st.servers[id]
	if r == nil {
		return notFound("server", id)
	}
	next := r.clone()
	change(next)
	next.UpdatedAt = c.core.now()
	return c.records.replace(next)
}

// Hosts returns all hosts with the usage that Options or PutHost set.
func (c *Cloud) Hosts() []Host { return c.hosts.all() }

// PutHost adds a host or replaces the one with the same name. Hosts are not
// stored: after a restart they are those of Options. It returns an error if the
// name is empty.
func (c *Cloud) PutHost(host Host) error { return c.hosts.put(host) }

// DeleteHost deletes a host. Servers keep its name. It returns an error if there
// is no such host.
func (c *Cloud) DeleteHost(name string) error { return c.hosts.remove(name) }

// Calls returns the last calls, oldest first, at most Options.CallLog.
func (c *Cloud) Calls() []Call { return c.calls.all() }

// CountCalls returns the number of calls since the last reset. An empty method or
// route (a template such as /servers/{id}) matches any.
func (c *Cloud) CountCalls(method, route string) int { return c.calls.count(method, route) }

// ResetCalls clears the call log and the counts.
func (c *Cloud) ResetCalls() { c.calls.reset() }

// DropStreams ends all open event streams.
func (c *Cloud) DropStreams() { c.events.drop() }

// LoseEvents drops the next n events: no stream sends them.
func (c *Cloud) LoseEvents(n int) { c.events.lose(n) }

// AddFault activates a fault and returns its ID. It returns an error if the fault
// is invalid or the ID is in use.
func (c *Cloud) AddFault(f Fault) (string, error) { return c.faults.add(f) }

// Faults returns the active faults with their counters.
func (c *Cloud) Faults() []FaultStatus { return c.faults.all() }

// RemoveFault removes a fault and releases the calls that it holds.
func (c *Cloud) RemoveFault(id string) error { return c.faults.remove(id) }

// ClearFaults removes all faults and releases the calls that they hold.
func (c *Cloud) ClearFaults() { c.faults.clear() }

// ReleaseFault releases the calls that a fault holds. The fault holds later calls
// as far as its count allows.
func (c *Cloud) ReleaseFault(id string) error { return c.faults.release(id) }

// DropFault closes the connections of the calls that a fault holds. With Answer
// Before, the calls have no effect.
func (c *Cloud) DropFault(id string) error { return c.faults.drop(id) }

// WaitHeld waits until a fault holds at least n calls. It returns an error if ctx
// ends or there is no such fault.
func (c *Cloud) WaitHeld(ctx context.Context, id string, n int) error {
	return c.faults.waitHeld(ctx, id, n)
}

// SetUnavailable switches on or off that every call returns 503.
func (c *Cloud) SetUnavailable(on bool) { c.faults.setUnavailable(on) }

// SetToken replaces the bearer token that does not expire; empty means none.
// Without a token and credentials, calls need no authentication.
func (c *Cloud) SetToken(token string) { c.access.setToken(token) }

// SetCredentials replaces the username and password of sessions; empty means
// none. Open sessions stay open.
func (c *Cloud) SetCredentials(username, password string) {
	c.access.setCredentials(username, password)
}

// SetSessionTTL sets the lifetime of new sessions.
func (c *Cloud) SetSessionTTL(ttl time.Duration) { c.access.setTTL(ttl) }

// ExpireSessions expires all open sessions.
func (c *Cloud) ExpireSessions() { c.access.expire() }

// Networks returns all networks, oldest first.
func (c *Cloud) Networks() []Network { return c.networks.all() }

// PutNetwork adds a network or replaces the one with the same ID, without checks.
// Fields that are zero get a default: a new ID, the present time. The ledger
// records a new network with ByAdmin.
func (c *Cloud) PutNetwork(n Network) (Network, error) { return c.networks.put(n) }

// DeleteNetwork deletes a network even if servers are attached to it. It returns an
// error if there is no such network.
func (c *Cloud) DeleteNetwork(id string) error { return c.networks.delete(id) }

// ForgetOperations forgets all operations. Open ones have no effect.
func (c *Cloud) ForgetOperations() error { return c.operations.forgetAll() }

// Snapshots returns the snapshots of a server, oldest first.
func (c *Cloud) Snapshots(server string) []Snapshot { return c.snapshots.all(server) }
