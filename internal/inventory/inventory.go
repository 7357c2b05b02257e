package inventory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Inventory holds what is known of one cloud, and the client of the cloud. There
// is one for each cloud's name. It outlives connections. All methods may be
// called at any time from any goroutine.
type Inventory struct {
	// Networks, Hosts and Utilization are parts that call the cloud on demand. They are set once.
	Networks    *Networks
	Hosts       *Hosts
	Utilization *Utilization

	name      string
	clock     func() time.Time
	notifier  *notifier
	startedAt time.Time

	mu          sync.RWMutex
	client      cloud.Client
	caps        cloud.Capabilities
	unavailable string
	braked      bool
	settings    Settings

	// polledAt is when the last listing began, and interval the time until the next one.
	polledAt      time.Time
	interval      time.Duration
	pollRequested bool
	// idlePolls counts the listings in a row that brought no change that was waited for.
	idlePolls int

	snapshot *Snapshot
	overlay  *overlay
	// deletions has when the deletion of a server was last sent, by its id.
	deletions map[string]time.Time
	// unlisted are the servers that TakeUnlisted returns.
	unlisted map[string]struct{}
	watch    *watch

	// waiting are the objects that wait until the cloud is available.
	waiting map[Ref]struct{}
	// resumed counts how often the waiting objects were enqueued.
	resumed int
	// afterListing are the objects that wait for a listing begun at or after a time.
	afterListing *waitlist
	// served are the objects that waited for the last listing.
	served map[Ref]struct{}
	// removed is whether the directory dropped the inventory.
	removed bool
}

func newInventory(name, cluster string, clock func() time.Time, notifier *notifier, startedAt time.Time) *Inventory {
	return &Inventory{
		Networks: newNetworks(clock), Hosts: newHosts(clock), Utilization: newUtilization(clock),
		name: name, clock: clock, notifier: notifier, startedAt: startedAt, unavailable: notConnected,
		overlay: newOverlay(cluster), deletions: map[string]time.Time{}, unlisted: map[string]struct{}{}, watch: newWatch(),
		waiting: map[Ref]struct{}{}, afterListing: newWaitlist(), served: map[Ref]struct{}{},
	}
}

// Configure sets the settings.
func (i *Inventory) Configure(settings Settings) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.settings = settings
	i.Networks.configure(settings)
	i.Hosts.configure(settings)
	i.Utilization.configure(settings)
}

// Connect sets the client of the cloud. The cloud is available once a listing
// is published.
func (i *Inventory) Connect(client cloud.Client, caps cloud.Capabilities) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.client, i.caps = client, caps
	i.Networks.connect(client)
	i.Hosts.connect(client)
	i.Utilization.connect(client)
	i.resetWatch()
}

// MarkUnavailable marks the cloud as not available. Tenants read the reason: it
// must name no endpoint, Secret or namespace, and must not change from try to
// try. What is known of the cloud is kept.
func (i *Inventory) MarkUnavailable(reason string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unavailable = reason
}

// Brake sets or releases the brake. It must be set before the snapshot that
// caused it is published, so that nothing acts on that snapshot. Its release
// enqueues all objects of the cloud.
func (i *Inventory) Brake(on bool) {
	i.mu.Lock()
	released := i.braked && !on
	i.braked = on
	event := Event{Cloud: i.name, All: true}
	if released {
		event.Refs = i.takeWaiting()
	}
	i.mu.Unlock()
	if released {
		i.notifier.notify(event)
	}
}

// Publish makes a snapshot the current one and marks the cloud as available. It
// enqueues the owners of the servers that changed, the objects that the labels of a
// new server, or of one in another state, name, the objects that waited for a listing
// as new as this one, and the objects that waited for the cloud if it was unavailable.
func (i *Inventory) Publish(snap *Snapshot) {
	i.mu.Lock()
	listed := i.published(snap)
	old := i.snapshot
	if old == nil {
		old = newSnapshot(time.Time{})
	}
	snap = i.completed(snap)
	var resumed []Ref
	if i.unavailable != "" || i.snapshot == nil {
		resumed = i.takeWaiting()
	}
	i.unavailable, i.served = "", map[Ref]struct{}{}
	noticed := i.overlay.publish(snap, i.settings.SettleTime, i.clock())
	event := i.replace(snap, snap.changed(old), resumed)
	event.Servers = append(event.Servers, noticed.superseded...)
	maps.DeleteFunc(i.deletions, func(_ string, sent time.Time) bool { return sent.Add(i.settings.SettleTime).Before(snap.Begun) })
	i.Utilization.keepListed(snap)
	if listed {
		i.idlePolls++
	}
	if noticed.progress {
		i.idlePolls = 0
	}
	i.mu.Unlock()
	i.notifier.notify(event)
}

// replace makes a snapshot the current one. changed are the servers that differ from
// the last one, and refs are objects to enqueue. It returns the event to send. The caller
// holds the lock.
func (i *Inventory) replace(snap *Snapshot, changed []string, refs []Ref) Event {
	event := Event{Cloud: i.name, Servers: changed, Refs: refs}
	if i.snapshot != nil {
		event.Owners = snap.ownersOf(i.snapshot, changed)
	}
	i.snapshot = snap
	for _, ref := range i.afterListing.take(snap.Begun) {
		event.Refs = append(event.Refs, ref)
		i.served[ref] = struct{}{}
	}
	slices.SortFunc(event.Refs, Ref.compare)
	event.Refs = slices.Compact(event.Refs)
	return event
}

func (i *Inventory) takeWaiting() []Ref {
	refs := slices.Collect(maps.Keys(i.waiting))
	clear(i.waiting)
	i.resumed++
	return refs
}

// forget drops what an object waits for.
func (i *Inventory) forget(ref Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.waiting, ref)
	i.afterListing.drop(ref)
	delete(i.served, ref)
}

// Disconnect drops the client and all that is known of the cloud.
func (i *Inventory) Disconnect() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.disconnect()
}

// remove disconnects the inventory for good. It enqueues the objects that wait,
// and later each that begins to wait, so that they wait for the Cloud's next
// inventory if there is one.
func (i *Inventory) remove() {
	i.mu.Lock()
	i.disconnect()
	i.removed = true
	refs := slices.Concat(i.takeWaiting(), i.afterListing.takeAll())
	i.mu.Unlock()
	slices.SortFunc(refs, Ref.compare)
	if refs = slices.Compact(refs); len(refs) > 0 {
		i.notifier.notify(Event{Cloud: i.name, Refs: refs})
	}
}

// disconnect drops the client and all that is known of the cloud. The caller
// holds the lock.
func (i *Inventory) disconnect() {
	i.client, i.caps, i.snapshot, i.braked, i.polledAt = nil, nil, nil, false, time.Time{}
	i.unavailable = notConnected
	i.overlay = newOverlay(i.overlay.cluster)
	i.resetWatch()
	clear(i.unlisted)
	i.Networks.disconnect()
	i.Hosts.disconnect()
	i.Utilization.disconnect()
}
