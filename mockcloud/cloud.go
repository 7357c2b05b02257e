package mockcloud

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// Cloud is one private cloud. All methods are safe for concurrent use.
type Cloud struct {
	opts  Options
	clock Clock
	store Store
	// ownsStore is false for a store of the options.
	ownsStore bool
	log       *slog.Logger

	caps   atomic.Pointer[map[Capability]bool]
	model  atomic.Pointer[utilisation]
	quirks atomic.Pointer[Quirks]

	// mu guards the fields up to the next blank line. Writers hold it while they
	// write to the store, so that the store has the order of the effects.
	mu                  sync.RWMutex
	st                  state
	behave              Behaviour
	prohibitedNames     globs
	prohibitedTemplates globs

	// nextDue is the time of the next transition in Unix nanoseconds, 0 if there is
	// none. dueChanged receives when it changes.
	nextDue    atomic.Int64
	dueChanged chan struct{}

	access  access
	events  *broker
	faults  *faultSet
	calls   *callLog
	metrics *metrics

	handler, adminHandler, handoverHandler http.Handler

	// reads and throttles count calls for the quirks replicaLag and retryAfterDate.
	reads, throttles atomic.Uint64
	connections      connections
	// keysInProgress are the routes and keys of the creates that are processed, for the quirk of that name.
	keysInProgress sync.Map

	// retired is set when another process has taken over.
	retired atomic.Bool

	closed    chan struct{}
	stopOnce  sync.Once
	closeOnce sync.Once
	running   sync.WaitGroup
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
	c := &Cloud{
		opts: opts, clock: opts.Clock, store: store, ownsStore: owns, log: opts.Log,
		st: newState(), dueChanged: make(chan struct{}, 1),
		access: access{
			token: opts.Token, username: opts.Username, password: opts.Password,
			ttl: time.Duration(opts.SessionTTL), sessions: map[string]time.Time{},
		},
		events: newBroker(), faults: newFaultSet(), calls: newCallLog(opts.CallLog),
		closed: make(chan struct{}),
	}
	caps := map[Capability]bool{}
	for _, name := range AllCapabilities {
		caps[name] = opts.has(name)
	}
	c.caps.Store(&caps)
	c.quirks.Store(&opts.Quirks)
	c.metrics = newMetrics(c)
	c.handler, c.adminHandler, c.handoverHandler = c.newHandler(), c.newAdminHandler(), c.newHandoverHandler()
	if err := c.start(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cloud) start() error {
	if err := c.SetBehaviour(c.opts.Behaviour); err != nil {
		return err
	}
	for _, fault := range c.opts.Faults {
		if _, err := c.AddFault(fault); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.st.load(c.store, time.Duration(c.opts.KeyRetention)); err != nil {
		return err
	}
	if err := c.seed(); err != nil {
		return fmt.Errorf("seeding servers: %w", err)
	}
	c.updateNextDue()
	c.running.Go(c.runTransitions)
	return nil
}

// seed adds servers that belong to no client to a store that was never seeded.
func (c *Cloud) seed() error {
	seeded := false
	err := c.store.Load(bucketMeta, func(key string, _ []byte) error {
		seeded = seeded || key == "seeded"
		return nil
	})
	if err != nil || seeded {
		return err
	}
	changes := []Change{{Bucket: bucketMeta, Key: "seeded", Value: []byte("true")}}
	first := c.now().Add(-24 * time.Hour)
	for i := range c.opts.SeedServers {
		at := first.Add(time.Duration(i) * time.Millisecond)
		r := &record{Server: Server{
			ID: c.seedID(i), Name: fmt.Sprintf("stranger-%05d", i+1), State: StateActive,
			Labels: map[string]string{"owner": "stranger"}, CPU: 2, Memory: 4,
			PowerState: PowerOn, Host: c.pickHost(c.opts.Hosts), CreatedAt: at, UpdatedAt: at,
		}}
		changes = append(changes, encoded(bucketServers, r.ID, r))
		c.st.put(r)
	}
	return c.store.Write(changes...)
}

// seedID returns the ID of the i-th seed server, which is in no ledger.
func (c *Cloud) seedID(i int) string {
	if q := c.quirks.Load(); q.NumericIDs || q.ReusesIDs {
		return strconv.Itoa(i + 1)
	}
	return uuid.NewString()
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
func (c *Cloud) Profile() Profile { return c.opts.Profile }

// Close ends calls that a fault holds and event streams, and closes the store if
// the cloud opened it. It may be called more than once.
func (c *Cloud) Close() error {
	var err error
	c.stop()
	c.closeOnce.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ownsStore {
			err = c.store.Close()
		}
	})
	return err
}

// stop ends calls that a fault holds, event streams and transitions.
func (c *Cloud) stop() {
	c.stopOnce.Do(func() {
		close(c.closed)
		c.running.Wait()
	})
}

// now returns the time in UTC without a monotonic reading, as it is stored.
func (c *Cloud) now() time.Time { return c.clock.Now().Round(0).UTC() }

func (c *Cloud) has(name Capability) bool { return (*c.caps.Load())[name] }

// SetCapability switches a capability on or off. In the core profile, only
// UniqueNames can be switched on.
func (c *Cloud) SetCapability(name Capability, on bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	caps := maps.Clone(*c.caps.Load())
	if _, known := caps[name]; !known {
		return fmt.Errorf("unknown capability %q", name)
	}
	if on && c.opts.Profile == Core && name != UniqueNames {
		return fmt.Errorf("the core profile has no capability %q", name)
	}
	caps[name] = on
	c.caps.Store(&caps)
	return nil
}

// Behaviour returns the present behaviour.
func (c *Cloud) Behaviour() Behaviour {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.behave
}

// SetBehaviour replaces the behaviour. Builds and deletions that have begun keep
// their time.
func (c *Cloud) SetBehaviour(b Behaviour) error {
	if err := b.validate(); err != nil {
		return err
	}
	model, err := parseUtilisation(b.Utilisation)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.Store(&model)
	c.behave = b
	c.prohibitedNames = parseGlobs(b.ProhibitedNames)
	c.prohibitedTemplates = parseGlobs(b.ProhibitedTemplates)
	return nil
}
