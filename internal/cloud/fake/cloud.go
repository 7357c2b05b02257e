package fake

import (
	"context"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// defaultUtilization is the utilization of a server that has none of its own, in percent.
const defaultUtilization = 42

// Options are what a Cloud starts with. The zero value is a core cloud.
type Options struct {
	// Capabilities are what the cloud can do. A call that needs another one fails
	// with Unsupported and does not reach the cloud.
	Capabilities cloud.Capabilities
	// Clock is time.Now if nil.
	Clock func() time.Time
	// Prohibited are names that may not be used.
	Prohibited []string
	// Hosts are those that the cloud reports; servers are placed on them in turn.
	Hosts []cloud.Host
}

// settings are what all parts of a cloud depend on.
type settings struct {
	clock      func() time.Time
	caps       cloud.Capabilities
	prohibited map[string]bool
	// normalize means that names become lower case.
	normalize bool
}

// Cloud is a cloud in memory and a client of it. It is safe for concurrent use. Each call
// is made by one of the parts. Ids are s1, s2 and so on for servers, n1, n2 and so on for
// networks.
type Cloud struct {
	// mu is the lock of all parts.
	mu         *sync.Mutex
	settings   *settings
	calls      *calls
	servers    *serverClient
	networks   *networkClient
	operations *operationClient
	snapshots  *snapshotClient
	watches    *watchClient

	closed  chan struct{}
	closing sync.Once
	closes  int
}

var (
	_ cloud.Client        = (*Cloud)(nil)
	_ cloud.Watcher       = (*Cloud)(nil)
	_ cloud.Snapshotter   = (*Cloud)(nil)
	_ cloud.Reverter      = (*Cloud)(nil)
	_ cloud.ConsoleReader = (*Cloud)(nil)
)

// New returns a cloud without servers and networks.
func New(opts Options) *Cloud {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	s := &settings{clock: opts.Clock, caps: cloud.NewCapabilities(opts.Capabilities...), prohibited: map[string]bool{}}
	for _, name := range opts.Prohibited {
		s.prohibited[name] = true
	}
	c := &Cloud{mu: &sync.Mutex{}, settings: s, closed: make(chan struct{})}
	c.calls = &calls{mu: c.mu, settings: s, log: log{sent: map[Verb]int{}}, faults: newFaults()}
	c.servers = newServerClient(c.calls, s)
	c.servers.hosts.list = opts.Hosts
	c.networks = &networkClient{
		calls: c.calls, settings: s, servers: c.servers, store: c.servers.networks, keys: keys[cloud.CreateNetwork, cloud.Network]{},
	}
	c.operations, c.snapshots = c.servers.operations, c.servers.snapshots
	c.watches = &watchClient{calls: c.calls, settings: s, servers: c.servers, ended: make(chan struct{}), closed: c.closed}
	return c
}

// Can returns the cloud's capabilities without a call.
func (c *Cloud) Can() cloud.Capabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.caps
}

// Capabilities returns what the cloud can do.
func (c *Cloud) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	return do(ctx, c.calls, call{verb: Capabilities, op: "get capabilities"}, func() (cloud.Capabilities, error) {
		return c.settings.caps, nil
	})
}

// Close ends a client's use of the cloud. The cloud goes on to serve others.
func (c *Cloud) Close(context.Context) {
	c.mu.Lock()
	c.closes++
	c.mu.Unlock()
	c.closing.Do(func() { close(c.closed) })
}

// Closed returns a channel that is closed by the first call of Close.
func (c *Cloud) Closed() <-chan struct{} { return c.closed }

// Closes returns how often Close was called.
func (c *Cloud) Closes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closes
}

// CheckName reports whether a server may be created with this name.
func (c *Cloud) CheckName(ctx context.Context, name cloud.Name) error {
	return c.servers.CheckName(ctx, name)
}

// GetServer returns the server of this id.
func (c *Cloud) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	return c.servers.GetServer(ctx, id)
}

// ServerStatus returns the status of the server of this id.
func (c *Cloud) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	return c.servers.ServerStatus(ctx, id)
}

// ListServers returns a page, in the order in which the servers were added.
func (c *Cloud) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	return c.servers.ListServers(ctx, opts)
}

// CreateServer creates a server, or returns the one that the key created before.
func (c *Cloud) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	return c.servers.CreateServer(ctx, req)
}

// UpdateServer changes the server of this id in place.
func (c *Cloud) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	return c.servers.UpdateServer(ctx, id, update)
}

// DeleteServer deletes the server of this id. On a slow cloud the deletion only begins.
func (c *Cloud) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	return c.servers.DeleteServer(ctx, id)
}

// Watch reports the servers, and from then on what changes of them, until ctx ends,
// EndWatches is called or the cloud is closed.
func (c *Cloud) Watch(ctx context.Context, report func(cloud.Change) error) error {
	return c.watches.Watch(ctx, report)
}

// GetOperation returns the operation of this id.
func (c *Cloud) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	return c.operations.GetOperation(ctx, id)
}

// ListHosts returns every host.
func (c *Cloud) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	return c.servers.hosts.ListHosts(ctx)
}

// ListNetworks returns all networks, in the order in which they were added.
func (c *Cloud) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return c.networks.ListNetworks(ctx)
}

// GetNetwork returns the network of this id.
func (c *Cloud) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	return c.networks.GetNetwork(ctx, id)
}

// CreateNetwork creates a network, or returns the one that the key created before.
func (c *Cloud) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	return c.networks.CreateNetwork(ctx, req)
}

// UpdateNetwork changes the network of this id.
func (c *Cloud) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	return c.networks.UpdateNetwork(ctx, id, change)
}

// DeleteNetwork deletes the network of this id, unless servers are attached.
func (c *Cloud) DeleteNetwork(ctx context.Context, id string) error {
	return c.networks.DeleteNetwork(ctx, id)
}

// ListSnapshots returns the snapshots of a server, oldest first.
func (c *Cloud) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	return c.snapshots.ListSnapshots(ctx, serverID)
}

// CreateSnapshot creates a snapshot, or returns the one that the key created before.
func (c *Cloud) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	return c.snapshots.CreateSnapshot(ctx, req)
}

// DeleteSnapshot deletes a snapshot of a server.
func (c *Cloud) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	return c.snapshots.DeleteSnapshot(ctx, serverID, id)
}

// RevertServer gives a server the size that it had when the snapshot was taken, and stops it.
func (c *Cloud) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	return c.snapshots.RevertServer(ctx, req)
}
