package mockcloud

import (
	"context"
	"time"
)

// The methods below are for tests and need no call of the REST API. Those that change
// servers and networks do so without its checks, so that tests can create states that the
// API does not allow.

// Servers returns all servers with their utilization in the order of a list. All
// fields are set, regardless of the capabilities.
func (c *Cloud) Servers() []Server { return c.admin.all() }

// Server returns one server as Servers does.
func (c *Cloud) Server(id string) (Server, bool) { return c.admin.get(id) }

// UserDataSHA256 returns the SHA-256 of the user data of a server in hexadecimal digits,
// empty if it has none or does not exist.
func (c *Cloud) UserDataSHA256(id string) string { return c.admin.userDataSHA256(id) }

// PutServer adds a server or replaces the one with the same ID. Fields that are
// zero get a default: a new ID, ACTIVE, one core, 1 GiB, an address, the present time. The
// utilization is ignored. The ledger records a new server with ByAdmin.
func (c *Cloud) PutServer(s Server) (Server, error) { return c.admin.put(s) }

// DeleteServer deletes a server at once. It returns an error if there is no such
// server.
func (c *Cloud) DeleteServer(id string) error { return c.admin.delete(id) }

// RenameServer changes the name of a server. It returns an error if there is no
// such server.
func (c *Cloud) RenameServer(id, name string) error { return c.admin.rename(id, name) }

// SetServerState sets the state of a server to any value. A build or deletion in
// progress never completes.
func (c *Cloud) SetServerState(id string, state State) error { return c.admin.setState(id, state) }

// SetUtilisation makes a server report this utilization in percent, which can be
// out of range, instead of that of the model.
func (c *Cloud) SetUtilisation(id string, percent int) error {
	return c.admin.setUtilisation(id, percent)
}

// ClearUtilisation reverts SetUtilisation.
func (c *Cloud) ClearUtilisation(id string) error { return c.admin.clearUtilisation(id) }

// Snapshots returns the snapshots of a server, oldest first.
func (c *Cloud) Snapshots(server string) []Snapshot { return c.snapshots.all(server) }

// ForgetOperations forgets all operations. Open ones have no effect.
func (c *Cloud) ForgetOperations() error { return c.operations.forgetAll() }

// EndOperations ends all open operations at once, whatever OperationTime says.
func (c *Cloud) EndOperations() error { return c.transitions.endOperations() }

// Networks returns all networks, oldest first.
func (c *Cloud) Networks() []Network { return c.networks.all() }

// PutNetwork adds a network or replaces the one with the same ID, without checks.
// Fields that are zero get a default: a new ID, the present time. The ledger
// records a new network with ByAdmin.
func (c *Cloud) PutNetwork(n Network) (Network, error) { return c.networks.put(n) }

// DeleteNetwork deletes a network even if servers are attached to it. It returns an
// error if there is no such network.
func (c *Cloud) DeleteNetwork(id string) error { return c.networks.delete(id) }

// Hosts returns all hosts with the usage that Options or PutHost set.
func (c *Cloud) Hosts() []Host { return c.hosts.all() }

// PutHost adds a host or replaces the one with the same name. Hosts are not
// stored: after a restart they are those of Options. It returns an error if the
// name is empty.
func (c *Cloud) PutHost(host Host) error { return c.hosts.put(host) }

// DeleteHost deletes a host. Servers keep its name. It returns an error if there
// is no such host.
func (c *Cloud) DeleteHost(name string) error { return c.hosts.remove(name) }

// Ledger returns all effects, oldest first.
func (c *Cloud) Ledger() []LedgerEntry { return c.ledger.all() }

// SetCapability switches a capability on or off. In the core profile, only
// UniqueNames can be switched on.
func (c *Cloud) SetCapability(name Capability, on bool) error {
	return c.settings.setCapability(name, on)
}

// Behaviour returns the present behaviour.
func (c *Cloud) Behaviour() Behaviour { return c.settings.behaviour() }

// SetBehaviour replaces the behaviour. Builds and deletions that have begun keep
// their time.
func (c *Cloud) SetBehaviour(b Behaviour) error { return c.settings.setBehaviour(b) }

// Quirks returns the present quirks.
func (c *Cloud) Quirks() Quirks { return c.settings.quirks() }

// SetQuirks replaces the quirks. Lags concern changes from now on only.
func (c *Cloud) SetQuirks(q Quirks) error { return c.settings.setQuirks(q) }

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
