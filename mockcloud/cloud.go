package mockcloud

import (
	"fmt"
	"net/http"
)

// Cloud is one private cloud. All methods are safe for concurrent use.
type Cloud struct {
	opts Options
	core *core

	events  *broker
	faults  *faultSet
	calls   *callLog
	metrics *metrics
	access  *access

	views  *views
	reads  *reads
	names  *names
	keys   *keys
	hosts  *hosts
	sender *sender

	networks   *networks
	operations *operations
	records    *records
	servers    *servers
	listings   *listings
	snapshots  *snapshots

	transitions *transitions
	ledger      *ledger
	admin       *adminServers
	settings    *settings
	streams     *streams
	overviews   *overviewStreams

	router     *router
	quirkStage *quirkStage
	faultStage *faultStage
	callStage  *callStage

	handler, adminHandler, handoverHandler http.Handler

	lifetime *lifetime
}

// New starts a cloud. It returns an error if the options are invalid and if the
// store cannot be opened or read.
func New(opts Options) (*Cloud, error) {
	opts.setDefaults()
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("mock cloud options: %w", err)
	}
	store, owns := opts.Store, false
	switch {
	case store != nil:
	case opts.DataFile != "":
		opened, err := OpenBoltStore(opts.DataFile)
		if err != nil {
			return nil, err
		}
		store, owns = opened, true
	default:
		store, owns = NewMemoryStore(), true
	}
	c := &Cloud{opts: opts, core: newCore(opts, store)}
	c.lifetime = &lifetime{core: c.core, ownsStore: owns}
	c.shared()
	c.resources()
	c.stages()
	c.handler, c.adminHandler, c.handoverHandler = c.newHandler(), c.newAdminHandler(), c.newHandoverHandler()
	if err := c.start(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// shared makes the parts that several resources need.
func (c *Cloud) shared() {
	c.events = newBroker()
	c.faults = newFaultSet()
	c.calls = newCallLog(c.opts.CallLog)
	c.metrics = newMetrics(c.opts.Version, c.core)
	c.access = newAccess(c.core, c.opts)
	c.views = &views{core: c.core}
	c.reads = &reads{core: c.core}
	c.names = &names{core: c.core}
	c.keys = &keys{core: c.core, views: c.views}
	c.hosts = &hosts{core: c.core, views: c.views, list: c.opts.Hosts}
	c.sender = &sender{core: c.core}
}

// resources makes the parts that have the handlers of calls.
func (c *Cloud) resources() {
	c.networks = &networks{core: c.core, reads: c.reads, names: c.names, keys: c.keys}
	c.operations = &operations{core: c.core}
	c.records = &records{core: c.core, events: c.events, views: c.views}
	c.servers = &servers{
		core: c.core, views: c.views, reads: c.reads, names: c.names, keys: c.keys,
		hosts: c.hosts, operations: c.operations, records: c.records,
	}
	c.listings = &listings{core: c.core, views: c.views, reads: c.reads, names: c.names}
	c.snapshots = &snapshots{
		core: c.core, views: c.views, reads: c.reads, keys: c.keys, operations: c.operations, records: c.records,
	}
	c.transitions = &transitions{core: c.core, records: c.records, servers: c.servers, snapshots: c.snapshots}
	c.ledger = &ledger{core: c.core, transitions: c.transitions}
	c.admin = &adminServers{
		core: c.core, views: c.views, hosts: c.hosts, records: c.records, servers: c.servers, transitions: c.transitions,
	}
	c.settings = &settings{core: c.core}
	c.streams = &streams{core: c.core, events: c.events, views: c.views}
	c.overviews = &overviewStreams{
		core: c.core, events: c.events, faults: c.faults, views: c.views, hosts: c.hosts, transitions: c.transitions,
	}
}

// stages makes the parts that a call passes before the handler of its route.
func (c *Cloud) stages() {
	c.router = &router{core: c.core, access: c.access, transitions: c.transitions}
	c.quirkStage = &quirkStage{core: c.core, router: c.router, sender: c.sender}
	c.faultStage = &faultStage{core: c.core, faults: c.faults, sender: c.sender, quirkStage: c.quirkStage}
	c.callStage = &callStage{
		core: c.core, calls: c.calls, metrics: c.metrics, keys: c.keys, settings: c.settings, faults: c.faults,
		sender: c.sender, faultStage: c.faultStage, quirkStage: c.quirkStage,
	}
}

func (c *Cloud) start() error {
	if err := c.settings.setBehaviour(c.opts.Behaviour); err != nil {
		return err
	}
	for _, fault := range c.opts.Faults {
		if _, err := c.faults.add(fault); err != nil {
			return err
		}
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if err := c.core.st.load(c.core.store, c.core.retention); err != nil {
		return err
	}
	if err := c.admin.seed(c.opts.SeedServers); err != nil {
		return fmt.Errorf("seeding servers: %w", err)
	}
	c.core.updateNextDue()
	c.lifetime.running.Go(c.transitions.run)
	return nil
}

// Handler serves the REST API, probes, and the ledger to those who may call the API.
// Its clients cannot control the cloud.
func (c *Cloud) Handler() http.Handler { return c.handler }

// AdminHandler serves the endpoints that control the cloud, probes and metrics. It
// asks for no credentials.
func (c *Cloud) AdminHandler() http.Handler { return c.adminHandler }

// HandoverHandler serves the handover to another process and nothing else.
func (c *Cloud) HandoverHandler() http.Handler { return c.handoverHandler }

// Profile returns the profile that the cloud was started with.
func (c *Cloud) Profile() Profile { return c.core.profile }

// Close ends calls that a fault holds and event streams, and closes the store if
// the cloud opened it. It may be called more than once.
func (c *Cloud) Close() error { return c.lifetime.close() }

// HandOver stops the cloud and returns the content of its store, with which
// another process can continue. From then on, no call has an effect, and calls
// and /readyz return 503. A second call of HandOver returns the same content.
func (c *Cloud) HandOver() ([]Change, error) { return c.lifetime.handOver() }
