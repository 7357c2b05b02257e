package vsphere

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one vCenter. It is safe for concurrent use.
type Client struct {
	cloudName string
	place     Place
	log       logr.Logger
	transport *transport.Transport
	redactor  *transport.Redactor
	session   *session
	usage     *transport.Usage
	polling   polling

	// locating is held by the one call that looks for the site.
	locating chan struct{}
	mu       sync.Mutex
	site     *site
	// defectHold is how long a site is used of which a zone is missing.
	defectHold time.Duration

	templates templates
	names     names
	refs      refs
	starts    starts
	rules     ruleTurns
	leaving   leaving
	creating  creating
	folders   folders
	hidden    hidden
	tasks     tasks
	// taskAge is how old what is known of a task may be.
	taskAge time.Duration
	vms     batch[types.ManagedObjectReference, entity]
	// attached reads the disks of VMs that are deleted.
	attached batch[types.ManagedObjectReference, attachments]
}

var (
	_ cloud.Client         = (*Client)(nil)
	_ cloud.LoadReporter   = (*Client)(nil)
	_ cloud.DefectReporter = (*Client)(nil)
)

// capabilities are those of every vCenter.
var capabilities = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.FolderNames, cloud.BulkStatus, cloud.Power, cloud.PowerAtCreate,
	cloud.Resize, cloud.Folders, cloud.Hosts, cloud.Sessions, cloud.Sizing, cloud.Operations, cloud.NetworkAttach,
	cloud.Events, cloud.WithUserData, cloud.Addresses, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.WithDisks, cloud.GuestHeartbeat, cloud.Suspend, cloud.WithInterfaces,
)

// New returns a client of the vCenter that cfg describes. It makes no call. Its errors
// say what is wrong with cfg and what to do, and quote no secret.
func New(cfg Config) (*Client, error) { return newOver(nil, cfg) }

// newOver is New with what sends the requests, nil for connections of the client's own.
func newOver(base http.RoundTripper, cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	credentials := cfg.Credentials
	held := cfg.Holds.Of(cfg.Name, cfg.Endpoint, credentials.Username, credentials.Password, credentials.Token,
		string(credentials.Certificate), string(credentials.Key))
	t, err := transport.New(transport.Config{
		Name: cfg.Name, Host: endpoint.Hostname(), CA: cfg.CA, InsecureSkipVerify: cfg.InsecureSkipVerify,
		Limits: cfg.Limits, Timeout: cfg.Timeout, Metrics: cfg.Metrics, Tracer: cfg.Tracer, Log: cfg.Log, Base: base, Hold: &held.Requests,
		HTTP1: true, // as govmomi does
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		cloudName: cfg.Name, place: cfg.Place, log: cfg.Log.WithValues("cloud", cfg.Name), transport: t, usage: transport.NewUsage(), polling: defaultPolling, taskAge: defaultTaskAge, defectHold: defaultDefectHold, locating: make(chan struct{}, 1), rules: newRuleTurns(), leaving: leaving{more: make(chan struct{}, 1)},
		redactor: transport.NewRedactor(cfg.Credentials.Password, cfg.Credentials.Token, string(cfg.Credentials.Key)),
	}
	c.session = newSession(c, cfg, endpoint, &held.Login)
	return c, nil
}

// Capabilities returns what the vCenter can do: Zones if the Place has some, and
// WithAntiAffinity if a pool is of a cluster with DRS. It looks for all that the Place
// names, and fails as Misconfigured if something does not exist that is not of a zone.
func (c *Client) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	const op = "get capabilities"
	ctx, end, err := c.begin(cloudWide(ctx), op)
	if err != nil {
		return nil, err
	}
	defer end()
	c.dropSite(nil)
	at, err := c.locate(ctx)
	if err == nil {
		_, err = c.templates.check(ctx, c, at)
	}
	if err != nil {
		return nil, c.fail(ctx, op, err)
	}
	return at.capabilities(), nil
}

// Close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. It ends with ctx, of which it leaves five seconds for the session.
// Later calls fail with Unavailable. The second Close does nothing.
func (c *Client) Close(ctx context.Context) {
	if !c.usage.Close(ctx) {
		return
	}
	defer c.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(cloudWide(ctx), transport.CloseTimeout)
	defer cancel()
	c.session.close(ctx)
}

// begin begins a call, unless its context has ended already. Its context ends after the
// client's timeout. The caller calls end unless there is an error.
func (c *Client) begin(ctx context.Context, op string) (bounded context.Context, end func(), err error) {
	if !c.usage.Begin() {
		return nil, nil, refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if ctx.Err() != nil {
		c.usage.End()
		return nil, nil, c.fail(ctx, op, ctx.Err())
	}
	bounded, cancel := c.transport.WithTimeout(ctx)
	return bounded, func() {
		cancel()
		c.usage.End()
	}, nil
}

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.transport.Load() }
