package inventory

import (
	"sync"
	"time"
)

// Event says whom a cloud's news concern.
type Event struct {
	// Cloud is the name of the cloud.
	Cloud string
	// Servers are the ids of servers that changed.
	Servers []string
	// Refs are objects that waited for this, or whose labels a new server bears.
	Refs []Ref
	// All asks for a look at every object of the cloud.
	All bool
}

const notConnected = "the Cloud does not exist or has not been connected yet"

// Directory holds the inventory of each cloud by the cloud's name.
type Directory struct {
	clock func() time.Time
	bell  *bell

	mu     sync.Mutex
	clouds map[string]*Inventory
}

// New returns an empty directory. Time is read from clock.
func New(clock func() time.Time) *Directory {
	return &Directory{clock: clock, bell: &bell{}, clouds: map[string]*Inventory{}}
}

// Cloud returns the inventory of a cloud, made on first use: before its Cloud
// object was seen, it is away.
func (d *Directory) Cloud(name string) *Inventory {
	d.mu.Lock()
	defer d.mu.Unlock()
	if inv, ok := d.clouds[name]; ok {
		return inv
	}
	inv := &Inventory{
		name: name, clock: d.clock, bell: d.bell, since: d.clock(), away: notConnected,
		noted: map[string]note{}, underWay: map[string]struct{}{}, uses: map[string]use{}, waiting: map[Ref]struct{}{}, wanted: map[Ref]time.Time{},
		networks: newNetworks(),
	}
	d.clouds[name] = inv
	return inv
}

// Subscribe has fn called with each piece of news. fn must not block.
func (d *Directory) Subscribe(fn func(Event)) { d.bell.onWake(fn) }

// OnPollRequest has fn called when a cloud should be listed within the given time. fn must not block.
func (d *Directory) OnPollRequest(fn func(cloud string, within time.Duration)) { d.bell.onHaste(fn) }

// bell carries news from the inventories to whoever listens.
type bell struct {
	mu    sync.RWMutex
	wake  []func(Event)
	haste []func(string, time.Duration)
}

func (b *bell) onWake(fn func(Event)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake = append(b.wake, fn)
}

func (b *bell) onHaste(fn func(string, time.Duration)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.haste = append(b.haste, fn)
}

func (b *bell) ring(w Event) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, fn := range b.wake {
		fn(w)
	}
}

func (b *bell) hasten(name string, within time.Duration) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, fn := range b.haste {
		fn(name, within)
	}
}
