package rest

import (
	"net/http"
	"sync/atomic"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one cloud's REST API. It is safe for concurrent use.
type Client struct {
	stated  stated
	ignored ignored
	// credentials is a pointer, which fmt does not follow when it prints a Client:
	// it calls no String method on unexported fields.
	credentials *Credentials

	transport *transport.Transport
	exchange  *exchange
	session   *session
	usage     *transport.Usage
	// probed holds what Capabilities returned last; nil before.
	probed atomic.Pointer[cloud.Capabilities]
	// probing is held by the one call that asks for capabilities on behalf of
	// those that need them.
	probing chan struct{}
}

var (
	_ cloud.Client       = (*Client)(nil)
	_ cloud.LoadReporter = (*Client)(nil)
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
	return &Client{
		stated:      statedBy(cfg),
		credentials: &cfg.Credentials,
		transport:   t,
		exchange:    newExchange(t, endpoint, cfg),
		session:     &session{login: &held.Login},
		usage:       transport.NewUsage(),
		probing:     make(chan struct{}, 1),
	}, nil
}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.transport.Load() }
