package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one cloud's REST API. It is safe for concurrent use. Keys are sent only to a cloud
// that honours them, and only calls with one are ever sent twice.
type Client struct {
	transport    *transport.Transport
	ignored      *ignored
	exchange     *exchange
	session      *session
	calls        *calls
	capabilities *capabilityClient
	servers      *serverClient
	watches      *watchClient
	operations   *operationClient
	hosts        *hostClient
	networks     *networkClient
	snapshots    *snapshotClient
}

var (
	_ cloud.Client          = (*Client)(nil)
	_ cloud.ServerStreamer  = (*Client)(nil)
	_ cloud.Watcher         = (*Client)(nil)
	_ cloud.Snapshotter     = (*Client)(nil)
	_ cloud.Reverter        = (*Client)(nil)
	_ cloud.ConsoleReader   = (*Client)(nil)
	_ cloud.IgnoredReporter = (*Client)(nil)
	_ cloud.LoadReporter    = (*Client)(nil)
)

// New returns a client of the cloud that cfg describes. It makes no call. Its
// errors say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) { return newOver(nil, cfg) }

// newOver is New with what sends the requests, nil for connections of the
// client's own.
func newOver(base http.RoundTripper, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	held := cfg.Holds.Of(cfg.Name, cfg.Endpoint, cfg.Credentials.Token, cfg.Credentials.Username, cfg.Credentials.Password)
	t, err := transport.New(transport.Config{
		Name: cfg.Name, Host: endpoint.Hostname(), CA: cfg.CA, InsecureSkipVerify: cfg.InsecureSkipVerify,
		Limits: cfg.Limits, Timeout: cfg.Timeout, Metrics: cfg.Metrics, Tracer: cfg.Tracer, Log: cfg.Log, Base: base,
		Hold: &held.Requests,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{transport: t, ignored: &ignored{}, exchange: newExchange(t, endpoint, cfg)}
	c.session = &session{exchange: c.exchange, credentials: &cfg.Credentials, ignored: c.ignored, login: &held.Login}
	c.calls = &calls{usage: transport.NewUsage(), transport: t, session: c.session}
	c.resources(cfg)
	return c, nil
}

// resources makes the clients of what the cloud has.
func (c *Client) resources(cfg Config) {
	pages, texts := &pageReader{calls: c.calls, ignored: c.ignored}, c.exchange.scrubber
	c.capabilities = &capabilityClient{
		calls: c.calls, exchange: c.exchange, pages: pages, ignored: c.ignored, stated: statedBy(cfg), probing: make(chan struct{}, 1),
	}
	c.servers = &serverClient{calls: c.calls, capabilities: c.capabilities, pages: pages, ignored: c.ignored, scrubber: texts}
	c.watches = &watchClient{
		calls: c.calls, exchange: c.exchange, capabilities: c.capabilities, servers: c.servers, ignored: c.ignored,
	}
	c.operations = &operationClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
	c.hosts = &hostClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored}
	c.networks = &networkClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
	c.snapshots = &snapshotClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Capabilities asks the cloud what it can do. Other calls decide by the last answer what to send
// and what to refuse. A success proves that the cloud answers and accepts the credentials.
func (c *Client) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	return c.capabilities.Capabilities(ctx)
}

// Close waits for the calls under way, ends the session, if there is one, and
// closes idle connections. It ends with ctx, of which it leaves five seconds for
// the session, and ignores the cloud's answer. Later calls fail with Unavailable.
// The second Close does nothing.
func (c *Client) Close(ctx context.Context) {
	if !c.calls.usage.Close(ctx) {
		return
	}
	defer c.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, transport.CloseTimeout)
	defer cancel()
	c.session.close(ctx)
}

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.transport.Load() }

// Ignored returns which fields of the cloud's answers were ignored since the last
// call and why, sorted, at most 16. The texts quote nothing of the answers.
func (c *Client) Ignored() []string { return c.ignored.take() }

// CheckName asks the cloud whether a name may be used.
func (c *Client) CheckName(ctx context.Context, name cloud.Name) error {
	return c.servers.CheckName(ctx, name)
}

// GetServer returns the server of this id.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	return c.servers.GetServer(ctx, id)
}

// ServerStatus returns the status of the server of this id.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	return c.servers.ServerStatus(ctx, id)
}

// ListServers returns a page. A core cloud has one page, and no filters.
func (c *Client) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	return c.servers.ListServers(ctx, opts)
}

// StreamServers is ListServers that passes the servers on while they arrive.
func (c *Client) StreamServers(ctx context.Context, opts cloud.ListServers, to cloud.ServerSink) (next string, err error) {
	return c.servers.StreamServers(ctx, opts, to)
}

// CreateServer creates a server.
func (c *Client) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	return c.servers.CreateServer(ctx, req)
}

// ReadConsole returns the last lines of what the console of a server printed.
func (c *Client) ReadConsole(ctx context.Context, serverID string, lines int) (string, error) {
	return c.servers.ReadConsole(ctx, serverID, lines)
}

// UpdateServer changes a server in place. It is never sent twice.
func (c *Client) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	return c.servers.UpdateServer(ctx, id, update)
}

// DeleteServer deletes the server of this id.
func (c *Client) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	return c.servers.DeleteServer(ctx, id)
}

// Watch reports changes of servers as the cloud's events bring them.
func (c *Client) Watch(ctx context.Context, report func(cloud.Change) error) error {
	return c.watches.Watch(ctx, report)
}

// GetOperation returns the operation of this id.
func (c *Client) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	return c.operations.GetOperation(ctx, id)
}

// ListHosts returns all hosts.
func (c *Client) ListHosts(ctx context.Context) ([]cloud.Host, error) { return c.hosts.ListHosts(ctx) }

// ListNetworks returns all networks.
func (c *Client) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return c.networks.ListNetworks(ctx)
}

// GetNetwork returns the network of this id.
func (c *Client) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	return c.networks.GetNetwork(ctx, id)
}

// CreateNetwork creates a network.
func (c *Client) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	return c.networks.CreateNetwork(ctx, req)
}

// UpdateNetwork changes a network.
func (c *Client) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	return c.networks.UpdateNetwork(ctx, id, change)
}

// DeleteNetwork deletes the network of this id.
func (c *Client) DeleteNetwork(ctx context.Context, id string) error {
	return c.networks.DeleteNetwork(ctx, id)
}

// ListSnapshots returns all snapshots of a server.
func (c *Client) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	return c.snapshots.ListSnapshots(ctx, serverID)
}

// CreateSnapshot creates a snapshot.
func (c *Client) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	return c.snapshots.CreateSnapshot(ctx, req)
}

// DeleteSnapshot deletes a snapshot of a server.
func (c *Client) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	return c.snapshots.DeleteSnapshot(ctx, serverID, id)
}

// RevertServer reverts a server to a snapshot.
func (c *Client) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	return c.snapshots.RevertServer(ctx, req)
}
