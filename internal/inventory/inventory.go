package inventory

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Ref names an object that waits for something of a cloud.
type Ref struct {
	Namespace, Name string
	// Kind is empty for a VM.
	Kind string
}

func (r Ref) compare(to Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, to.Kind), cmp.Compare(r.Namespace, to.Namespace), cmp.Compare(r.Name, to.Name))
}

// Inventory is what is known of one cloud, and the way to it. It is made once
// for a cloud's name and outlives every connection. All methods may be called
// at any time from any goroutine.
type Inventory struct {
	name  string
	clock func() time.Time
	bell  *bell
	since time.Time

	mu       sync.RWMutex
	client   cloud.Client
	caps     cloud.Capabilities
	away     string
	braked   bool
	settings Settings
	polled   time.Time
	every    time.Duration
	hasty    bool
	// calm counts the listings in a row that brought no news.
	calm int

	snapshot *Snapshot
	noted    map[string]note
	// underWay holds the servers that we set on their way to another state and
	// that the snapshot shows there still: without labels nothing else tells.
	underWay map[string]struct{}
	uses     map[string]use
	waiting  map[Ref]struct{}
	wanted   map[Ref]time.Time
	networks *networks
	// returns counts how often all who wait were woken.
	returns int

	hosts shelf[cloud.Host]
}

// note is what a call of our own told of a server, later than any listing.
type note struct {
	server cloud.Server
	uid    string
	at     time.Time
}

// use is one answer of GET /servers/{id}/status.
type use struct {
	status cloud.Status
	at     time.Time
}

// Settings are those of a Cloud's fields that reading the inventory needs.
type Settings struct {
	// PollInterval is the time between two listings.
	PollInterval time.Duration
	// SettleTime is how long after a create with a lost answer its server may still appear.
	SettleTime time.Duration
	// UtilizationStep is the smallest change of CPU use worth telling, in percent points.
	UtilizationStep int
}

// Configure sets how the inventory is kept.
func (i *Inventory) Configure(settings Settings) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.settings = settings
}

// Connect has the cloud reached through client from now on. It counts as
// usable once a listing is published.
func (i *Inventory) Connect(client cloud.Client, caps cloud.Capabilities) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.client, i.caps = client, caps
}

// Away marks the cloud as not usable and says why, in words that do not change
// from try to try. What is known of it stays.
func (i *Inventory) MarkUnavailable(why string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = why
}

// Brake sets or releases the brake. Set it before the snapshot that caused it
// is published, so that nobody acts on that snapshot.
func (i *Inventory) Brake(on bool) {
	i.mu.Lock()
	released := i.braked && !on
	i.braked = on
	i.mu.Unlock()
	if released {
		i.wakeAll()
	}
}

// Publish makes a snapshot the current one and marks the cloud as usable. It
// wakes the owners of the servers that changed, the objects whose labels a new
// server bears, those who wanted a listing as
// new as this one, and, if the cloud could not be used before, all who wait.
func (i *Inventory) Publish(snap *Snapshot) {
	i.mu.Lock()
	old := i.snapshot
	if old == nil {
		old = newSnapshot(time.Time{})
	}
	wake := Event{Cloud: i.name, Servers: snap.changed(old)}
	if i.away != "" || i.snapshot == nil {
		wake.Refs = i.takeWaiting()
	}
	if i.snapshot != nil {
		wake.Refs = append(wake.Refs, snap.appeared(old, wake.Servers)...)
	}
	i.snapshot, i.away = snap, ""
	for id, n := range i.noted {
		if n.at.Before(snap.Begun) {
			delete(i.noted, id)
			i.underWay[id] = struct{}{}
			wake.Servers = append(wake.Servers, id)
		}
	}
	for id := range i.underWay {
		if !snap.servers[id].State.Transitional() {
			delete(i.underWay, id)
		}
	}
	for id := range i.uses {
		if !snap.Has(id) {
			delete(i.uses, id)
		}
	}
	for ref, since := range i.wanted {
		if !snap.Begun.Before(since) {
			wake.Refs = append(wake.Refs, ref)
			delete(i.wanted, ref)
		}
	}
	i.calm++
	if len(wake.Servers) > 0 {
		i.calm = 0
	}
	slices.SortFunc(wake.Refs, Ref.compare)
	wake.Refs = slices.Compact(wake.Refs)
	i.mu.Unlock()
	i.bell.ring(wake)
}

// wakeAll wakes everybody who waits and the owners of all known servers.
func (i *Inventory) wakeAll() {
	i.mu.Lock()
	wake := Event{Cloud: i.name, All: true, Refs: i.takeWaiting()}
	i.mu.Unlock()
	i.bell.ring(wake)
}

func (i *Inventory) takeWaiting() []Ref {
	refs := slices.Collect(maps.Keys(i.waiting))
	clear(i.waiting)
	i.returns++
	return refs
}

// Disconnect forgets the way to the cloud and all that was known of it.
func (i *Inventory) Disconnect() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.client, i.caps, i.snapshot, i.braked, i.polled = nil, nil, nil, false, time.Time{}
	i.away = notConnected
	clear(i.noted)
	clear(i.underWay)
	clear(i.uses)
	i.hosts.clear()
	i.networks = newNetworks()
}
