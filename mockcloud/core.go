package mockcloud

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// core is what the parts of a cloud share: the state with its lock and its store, the
// clock, and the settings that can be changed.
type core struct {
	profile Profile
	// retention is how long an idempotency key is kept after its server is deleted.
	retention time.Duration
	// external are the names of the networks that routers connect to.
	external []string
	clock    Clock
	store    Store
	log      *slog.Logger

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

	// closed is closed when the cloud stops.
	closed chan struct{}
}

// newCore returns a core with an empty state and without the behaviour of the options.
func newCore(opts Options, store Store) *core {
	c := &core{
		profile: opts.Profile, retention: time.Duration(opts.KeyRetention), external: opts.ExternalNetworks, clock: opts.Clock, store: store, log: opts.Log,
		st: newState(), dueChanged: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	caps := map[Capability]bool{}
	for _, name := range AllCapabilities {
		caps[name] = opts.has(name)
	}
	c.caps.Store(&caps)
	c.quirks.Store(&opts.Quirks)
	return c
}

// now returns the time in UTC without a monotonic reading, as it is stored.
func (c *core) now() time.Time { return c.clock.Now().Round(0).UTC() }

func (c *core) has(name Capability) bool { return (*c.caps.Load())[name] }
