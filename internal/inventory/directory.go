package inventory

import (
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Event names the objects of a cloud that are to be reconciled.
type Event struct {
	// Cloud is the name of the cloud.
	Cloud string
	// Servers are the IDs of servers that changed: their owners are to be reconciled.
	Servers []string
	// Refs are objects that waited for this event, or that the labels of a new server name.
	Refs []Ref
	// All says that each object of the cloud is to be reconciled.
	All bool
}

const notConnected = "the Cloud does not exist or has not been connected yet"

// Directory holds the inventory of each cloud by the cloud's name.
type Directory struct {
	clock    func() time.Time
	notifier *notifier

	mu     sync.Mutex
	clouds map[string]*Inventory
}

// New returns an empty directory. It reads the time from clock.
func New(clock func() time.Time) *Directory {
	return &Directory{clock: clock, notifier: &notifier{}, clouds: map[string]*Inventory{}}
}

// Cloud returns the inventory of a cloud, and makes it on first use. The cloud
// is unavailable until Connect and Publish are called.
func (d *Directory) Cloud(name string) *Inventory {
	d.mu.Lock()
	defer d.mu.Unlock()
	if inv, ok := d.clouds[name]; ok {
		return inv
	}
	inv := &Inventory{
		name: name, clock: d.clock, notifier: d.notifier, startedAt: d.clock(), unavailable: notConnected,
		overlay: newOverlay(), utilization: map[string]utilization{}, waiting: map[Ref]struct{}{}, afterListing: map[Ref]time.Time{},
		networks: newNetworks(d.clock), hosts: newOnDemandList[cloud.Host](d.clock),
	}
	d.clouds[name] = inv
	return inv
}

// Subscribe registers fn to be called with each event of each cloud. fn must not block.
func (d *Directory) Subscribe(fn func(Event)) { d.notifier.subscribe(fn) }

// OnPollRequest registers fn to be called when a cloud should be listed within
// the given time. fn must not block.
func (d *Directory) OnPollRequest(fn func(cloud string, within time.Duration)) {
	d.notifier.onPollRequest(fn)
}
