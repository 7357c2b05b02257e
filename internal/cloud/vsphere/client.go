package vsphere

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Client is one vCenter. It is safe for concurrent use. Each method calls one of
// the parts.
type Client struct {
	transport  *transport.Transport
	faults     *faults
	calls      *calls
	session    *session
	sites      *sites
	templates  *templates
	tasks      *tasks
	refs       *refs
	vms        *vms
	folders    *folders
	hosts      *hosts
	networks   *networks
	rules      *rules
	claims     *claims
	outcomes   *outcomes
	creates    *creates
	changes    *changes
	attached   *attachedDisks
	deletes    *deletes
	snapshots  *snapshots
	starts     *starts
	operations *operations
	watches    *watches
}

var (
	_ cloud.Client         = (*Client)(nil)
	_ cloud.LoadReporter   = (*Client)(nil)
	_ cloud.DefectReporter = (*Client)(nil)
	_ cloud.Watcher        = (*Client)(nil)
	_ cloud.Snapshotter    = (*Client)(nil)
	_ cloud.Reverter       = (*Client)(nil)
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
	log := cfg.Log.WithValues("cloud", cfg.Name)
	c := &Client{transport: t}
	c.faults = &faults{transport: t, redactor: transport.NewRedactor(credentials.Password, credentials.Token, string(credentials.Key)), log: log}
	c.calls = &calls{usage: transport.NewUsage(), transport: t, faults: c.faults}
	c.session = newSession(newSender(t, c.faults, cfg, endpoint), credentials, &held.Login, c.faults)
	c.readers(cfg)
	c.changers(cfg, log)
	return c, nil
}

// readers makes the parts that read.
func (c *Client) readers(cfg Config) {
	c.templates = &templates{session: c.session, place: cfg.Place}
	c.sites = &sites{session: c.session, place: cfg.Place, replaced: c.templates.forget, locating: make(chan struct{}, 1), defectHold: answerLifetime}
	c.tasks = &tasks{calls: c.calls, session: c.session, age: defaultTaskAge}
	c.refs = &refs{}
	c.vms = &vms{calls: c.calls, faults: c.faults, session: c.session, sites: c.sites, place: cfg.Place, refs: c.refs}
	c.claims = &claims{vms: c.vms}
	c.outcomes = &outcomes{faults: c.faults, sites: c.sites, vms: c.vms, claims: c.claims, templates: c.templates, refs: c.refs}
	c.hosts = &hosts{calls: c.calls, faults: c.faults, sites: c.sites, session: c.session}
	c.networks = &networks{calls: c.calls, faults: c.faults, sites: c.sites, session: c.session}
	c.watches = &watches{
		calls: c.calls, faults: c.faults, session: c.session, sites: c.sites, vms: c.vms, tasks: c.tasks, place: cfg.Place, polling: defaultPolling,
	}
}

// changers makes the parts that change something.
func (c *Client) changers(cfg Config, log logr.Logger) {
	c.folders = &folders{calls: c.calls, faults: c.faults, sites: c.sites, tasks: c.tasks, log: log}
	c.rules = &rules{
		calls: c.calls, faults: c.faults, session: c.session, sites: c.sites, tasks: c.tasks, log: log, cloudName: cfg.Name,
		turns: newRuleTurns(), leaving: leaving{more: make(chan struct{}, 1)},
	}
	c.creates = &creates{
		calls: c.calls, faults: c.faults, sites: c.sites, vms: c.vms, claims: c.claims, templates: c.templates,
		networks: c.networks, folders: c.folders, tasks: c.tasks, refs: c.refs, place: cfg.Place,
	}
	c.changes = &changes{calls: c.calls, faults: c.faults, vms: c.vms, rules: c.rules, tasks: c.tasks}
	c.attached = &attachedDisks{calls: c.calls, faults: c.faults, session: c.session, tasks: c.tasks, log: log}
	c.deletes = &deletes{calls: c.calls, faults: c.faults, vms: c.vms, rules: c.rules, attached: c.attached, tasks: c.tasks}
	c.snapshots = &snapshots{calls: c.calls, faults: c.faults, vms: c.vms, tasks: c.tasks}
	c.starts = &starts{faults: c.faults, vms: c.vms, tasks: c.tasks, rules: c.rules, outcomes: c.outcomes}
	c.operations = &operations{
		calls: c.calls, faults: c.faults, sites: c.sites, tasks: c.tasks, folders: c.folders, outcomes: c.outcomes, starts: c.starts, refs: c.refs,
	}
}

// Capabilities returns what the vCenter can do: Zones if the Place has some, and
// WithAntiAffinity if a pool is of a cluster with DRS. It looks for all that the Place
// names, and fails as Misconfigured if something does not exist that is not of a zone.
func (c *Client) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	const op = "get capabilities"
	ctx, end, err := c.calls.begin(cloudWide(ctx), op)
	if err != nil {
		return nil, err
	}
	defer end()
	c.sites.drop(nil)
	at, err := c.sites.locate(ctx)
	if err == nil {
		_, err = c.templates.check(ctx, at)
	}
	if err != nil {
		return nil, c.faults.fail(ctx, op, err)
	}
	return at.capabilities(), nil
}

// Close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. It ends with ctx, of which it leaves five seconds for the session.
// Later calls fail with Unavailable. The second Close does nothing.
func (c *Client) Close(ctx context.Context) {
	if !c.calls.usage.Close(ctx) {
		return
	}
	defer c.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(cloudWide(ctx), transport.CloseTimeout)
	defer cancel()
	c.session.close(ctx)
}

// Load returns what the client asks of the cloud at the moment.
func (c *Client) Load() cloud.Load { return c.transport.Load() }

// Defect returns what is missing of a zone, nil if nothing is.
func (c *Client) Defect() error { return c.sites.defect() }

// CheckName looks for the name in its folder.
func (c *Client) CheckName(ctx context.Context, name cloud.Name) error {
	return c.folders.checkName(ctx, name)
}

// GetServer returns the VM with this instance UUID, in any spelling.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	return c.vms.get(ctx, id)
}

// ListServers lists the VMs below the root with one request a page.
func (c *Client) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	return c.vms.list(ctx, opts)
}

// ServerStatus returns the use of the VM with this instance UUID.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	return c.vms.status(ctx, id)
}

// Watch reports changes of VMs as they happen.
func (c *Client) Watch(ctx context.Context, report func(cloud.Change) error) error {
	return c.watches.watch(ctx, report)
}

// CreateServer clones a template. Of all calls with one key, name and folder, at most one
// makes a VM.
func (c *Client) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	return c.creates.create(ctx, req)
}

// UpdateServer changes the size, the disks and the labels, or else the power state.
func (c *Client) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	return c.changes.update(ctx, id, update)
}

// DeleteServer powers the VM off and destroys it with its disks, without those that others
// attached. It fails with Conflict for a VM without an owner's mark.
func (c *Client) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	return c.deletes.remove(ctx, id)
}

// GetOperation returns how far the vCenter is with a task.
func (c *Client) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	return c.operations.get(ctx, id)
}

// ListHosts returns the hosts of the datacenter that serve VMs.
func (c *Client) ListHosts(ctx context.Context) ([]cloud.Host, error) { return c.hosts.list(ctx) }

// ListNetworks returns the port groups of the datacenter that the account sees, and opaque
// networks. The id is the managed object id.
func (c *Client) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return c.networks.list(ctx)
}

// GetNetwork returns the port group with this id, if it is in the datacenter.
func (c *Client) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	return c.networks.get(ctx, id)
}

// CreateNetwork fails with Unsupported.
func (c *Client) CreateNetwork(context.Context, cloud.CreateNetwork) (cloud.Network, error) {
	return cloud.Network{}, notMade("create network")
}

// UpdateNetwork fails with Unsupported.
func (c *Client) UpdateNetwork(context.Context, string, cloud.UpdateNetwork) (cloud.Network, error) {
	return cloud.Network{}, notMade("update network")
}

// DeleteNetwork fails with Unsupported.
func (c *Client) DeleteNetwork(context.Context, string) error { return notMade("delete network") }

// ListSnapshots returns the snapshots of a VM, oldest first. It also fails with Busy while the
// vCenter takes one.
func (c *Client) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	return c.snapshots.list(ctx, serverID)
}

// CreateSnapshot takes a snapshot, unless the VM has one of the name.
func (c *Client) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	return c.snapshots.create(ctx, req)
}

// DeleteSnapshot removes a snapshot of a VM, and merges its disks into those that follow.
func (c *Client) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	return c.snapshots.remove(ctx, serverID, id)
}

// RevertServer reverts a VM to a snapshot.
func (c *Client) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	return c.snapshots.revert(ctx, req)
}
