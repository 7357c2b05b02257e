package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one cloud's REST API. It is safe for concurrent use.
type Client struct {
	transport    *transport.Transport
	ignored      *ignored
	exchange     *exchange
	session      *session
	calls        *calls
	pages        *pageReader
	capabilities *capabilityClient
	operations   *operationClient
	hosts        *hostClient
	networks     *networkClient
	snapshots    *snapshotClient
}

var (
	_ cloud.Client       = (*Client)(nil)
	_ cloud.LoadReporter = (*Client)(nil)
	_ cloud.Snapshotter  = (*Client)(nil)
	_ cloud.Reverter     = (*Client)(nil)
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
	c.pages = &pageReader{calls: c.calls, ignored: c.ignored}
	c.capabilities = &capabilityClient{
		calls: c.calls, exchange: c.exchange, pages: c.pages, ignored: c.ignored, stated: statedBy(cfg), probing: make(chan struct{}, 1),
	}
	texts := c.exchange.scrubber
	c.operations = &operationClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
	c.hosts = &hostClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored}
	c.networks = &networkClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
	c.snapshots = &snapshotClient{calls: c.calls, capabilities: c.capabilities, ignored: c.ignored, scrubber: texts}
	return c, nil
}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Capabilities asks the cloud what it can do.
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

// UpdateNetwork sets the gateway.
func (c *Client) UpdateNetwork(ctx context.Context, id, gateway string) (cloud.Network, error) {
	return c.networks.UpdateNetwork(ctx, id, gateway)
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
