package openstack

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one project in one region. It is safe for concurrent use.
type Client struct {
	cfg Config
	// endpoint is the identity service's, without a trailing slash.
	endpoint string
	// encrypted is whether endpoint is reached over https.
	encrypted bool
	// host is that of endpoint.
	host     string
	redactor *transport.Redactor

	transport *transport.Transport
	http      *http.Client
	session   *session
	usage     *transport.Usage
	flavors   *flavors
	images    *lookup
	// imageNames has the names of the images that servers were made from.
	imageNames *imageNames
	networks   *lookup
	groups     *serverGroups
	pace       pace
	// changed has an element after a call that may have changed a server.
	changed chan struct{}
}

var (
	_ cloud.Client         = (*Client)(nil)
	_ cloud.LoadReporter   = (*Client)(nil)
	_ cloud.ServerStreamer = (*Client)(nil)
)

// New returns a client of the project that cfg describes. It makes no call. Its errors
// say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	credentials := cfg.Credentials
	held := cfg.Holds.Of(cfg.Name, cfg.Endpoint, cfg.Project, cfg.Domain, credentials.ApplicationCredentialID,
		credentials.ApplicationCredentialSecret, credentials.Username, credentials.Password)
	t, err := transport.New(transport.Config{
		Name: cfg.Name, Host: endpoint.Hostname(), CA: cfg.CA, InsecureSkipVerify: cfg.InsecureSkipVerify,
		Limits: cfg.Limits, Timeout: cfg.Timeout, Metrics: cfg.Metrics, Tracer: cfg.Tracer, Log: cfg.Log, Base: cfg.Base, Hold: &held.Requests,
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		cfg:        cfg,
		endpoint:   strings.TrimRight(endpoint.String(), "/"),
		encrypted:  endpoint.Scheme == "https",
		host:       endpoint.Hostname(),
		redactor:   transport.NewRedactor(cfg.Credentials.ApplicationCredentialSecret, cfg.Credentials.Password),
		transport:  t,
		http:       t.Client(),
		session:    &session{login: &held.Login},
		usage:      transport.NewUsage(),
		flavors:    newFlavors(),
		images:     newLookup(),
		imageNames: newImageNames(),
		networks:   newLookup(),
		groups:     newServerGroups(),
		pace:       defaultPace,
		changed:    make(chan struct{}, 1),
	}, nil
}

// provider returns a client of gophercloud for one request. It neither retries nor
// renews the token: the caller does, who knows what may be sent again.
func (c *Client) provider(token string) *gophercloud.ProviderClient {
	p := &gophercloud.ProviderClient{TokenID: token, HTTPClient: *c.http}
	p.UserAgent.Prepend("private-cloud-operator/" + c.cfg.Version)
	return p
}

// begin starts a call: it ends with the client's timeout, and end must be called.
func (c *Client) begin(ctx context.Context, op string) (bounded context.Context, end func(), err *cloud.Error) {
	if !c.usage.Begin() {
		return nil, nil, refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if ctx.Err() != nil {
		c.usage.End()
		e := c.transport.Classify(ctx, ctx.Err())
		e.Op = op
		return nil, nil, e
	}
	bounded, cancel := c.transport.WithTimeout(ctx)
	return bounded, func() { cancel(); c.usage.End() }, nil
}

// beginAbout is begin for a call about one server or network. With an empty id it would
// be about all of them, and one that is no id would change the path.
func (c *Client) beginAbout(ctx context.Context, op, id string) (bounded context.Context, end func(), err *cloud.Error) {
	switch {
	case id == "":
		return nil, nil, refuse(op, cloud.Rejected, "no id was given")
	case ctx.Err() == nil && !isID(id):
		return nil, nil, refuse(op, cloud.NotFound, "no id of this cloud looks like that")
	}
	return c.begin(ctx, op)
}

// Close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. It ends with ctx, of which it leaves five seconds for the session,
// and ignores the cloud's answer. Later calls fail with Unavailable. The second Close
// does nothing.
func (c *Client) Close(ctx context.Context) {
	if !c.usage.Close(ctx) {
		return
	}
	defer c.transport.CloseIdleConnections()
	token := c.session.close()
	if token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(transport.WithCall(ctx, transport.Call{Route: "identity/auth/tokens", CloudWide: true}), transport.CloseTimeout)
	defer cancel()
	resp, err := c.provider(token).Request(ctx, http.MethodDelete, c.endpoint+"/auth/tokens", &gophercloud.RequestOpts{
		MoreHeaders: map[string]string{"X-Subject-Token": token}, KeepResponseBody: true,
	})
	if err == nil {
		_ = resp.Body.Close()
	}
}

// refuse returns the error of a call that was not sent.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// quote bounds what people typed, for an op.
func quote(text string) string { return fmt.Sprintf("%q", transport.Truncate(text, 128)) }

// isID reports whether text may be an id of the cloud, and is safe in a path.
func isID(text string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.transport.Load() }
