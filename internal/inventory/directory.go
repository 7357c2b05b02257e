package inventory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Directory holds the inventory of each Cloud by the Cloud's name.
type Directory struct {
	clock     func() time.Time
	cluster   string
	notifier  *notifier
	startedAt time.Time
	listings  *progress

	mu     sync.Mutex
	clouds map[string]*Inventory
}

// New returns an empty directory. It reads the time from clock. cluster
// identifies this cluster in the labels of servers.
func New(clock func() time.Time, cluster string) *Directory {
	return &Directory{
		clock: clock, cluster: cluster, notifier: &notifier{}, startedAt: clock(), listings: newProgress(maxInProgress), clouds: map[string]*Inventory{},
	}
}

// Cloud returns the inventory of a Cloud that exists, and makes it on first use.
// The cloud is unavailable until Connect and Publish are called. The directory
// holds the inventory until Remove: for a name that may be that of no Cloud, call
// Absent.
func (d *Directory) Cloud(name string) *Inventory {
	d.mu.Lock()
	defer d.mu.Unlock()
	if inv, ok := d.clouds[name]; ok {
		return inv
	}
	inv := newInventory(name, d.cluster, d.clock, d.notifier, d.clock())
	d.clouds[name] = inv
	return inv
}

// Absent returns an inventory for a name that is that of no Cloud. It is
// unavailable, the directory does not hold it, and it sends no events: objects
// that wait for it are enqueued when the Cloud is created.
func (d *Directory) Absent(name string) *Inventory {
	return newInventory(name, d.cluster, d.clock, &notifier{}, d.startedAt)
}

// Remove disconnects the inventory of a Cloud that is gone and drops it, and
// reports whether there was one. A reconcile that still holds the inventory finds
// it unavailable. The objects that wait for the Cloud are enqueued.
func (d *Directory) Remove(name string) bool {
	d.mu.Lock()
	inv := d.clouds[name]
	delete(d.clouds, name)
	d.mu.Unlock()
	if inv != nil {
		inv.remove()
	}
	return inv != nil
}

// Forget drops what a deleted object waits for.
func (d *Directory) Forget(ref Ref) {
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.clouds))
	d.mu.Unlock()
	for _, inv := range all {
		inv.forget(ref)
	}
}

// Subscribe registers fn to be called with each event of each cloud. fn must not block.
func (d *Directory) Subscribe(fn func(Event)) { d.notifier.subscribe(fn) }

// OnPollRequest registers fn to be called when a cloud should be listed within
// the given time. fn must not block.
func (d *Directory) OnPollRequest(fn func(cloud string, within time.Duration)) {
	d.notifier.onPollRequest(fn)
}

// List does what the function List does, and waits while the listings of all clouds
// together take too much memory: between two pages, and between the servers of a large one.
// Servers that are the same as in the last listing, which may be nil, take no new memory.
func (d *Directory) List(ctx context.Context, from cloud.ServerReader, last *Snapshot, now func() time.Time) (*Snapshot, error) {
	l := d.listings.begin()
	defer l.end()
	return list(ctx, from, last, now, func(bytes int) error { return l.hold(ctx, bytes) })
}
