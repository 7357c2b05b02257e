package inventory

import (
	"maps"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// View is what is known of a cloud at one moment.
type View struct {
	// Client is the client of the cloud; nil before the first connection.
	Client cloud.Client
	// Capabilities of the cloud.
	Capabilities cloud.Capabilities
	// Unavailable says why the cloud is not available now; empty when it is.
	// Tenants may read it.
	Unavailable string
	// Braked forbids creates and deletes.
	Braked   bool
	Settings Settings
	// Snapshot is the last complete listing; nil before the first.
	Snapshot *Snapshot
	// resumed is how often the waiting objects had been enqueued.
	resumed int
}

// View returns what is known now.
func (i *Inventory) View() View {
	i.mu.RLock()
	defer i.mu.RUnlock()
	v := View{
		Client: i.client, Capabilities: i.caps, Unavailable: i.unavailable, Braked: i.braked, Snapshot: i.snapshot,
		Settings: i.settings, resumed: i.resumed,
	}
	if v.Unavailable == "" && v.Snapshot == nil {
		v.Unavailable = "the cloud has not been listed yet"
	}
	return v
}

// LastPoll returns when the last listing was begun, the zero time if none was.
func (i *Inventory) LastPoll() time.Time {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.polledAt
}

// StartedAt returns when this process made the inventory. Whether creates were
// sent before that is not known.
func (i *Inventory) StartedAt() time.Time { return i.startedAt }

// Server returns what is known of a server: what was recorded of it since the
// last listing, or else the listing.
func (i *Inventory) Server(id string) (cloud.Server, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if answer := i.overlay.recorded(id); answer != nil {
		return answer.server(), true
	}
	if i.snapshot == nil {
		return cloud.Server{}, false
	}
	return i.snapshot.Server(id)
}

// Listed returns a server as a listing shows it, and whether it does; false if the listing is nil, or
// began before the answer to the create of the server: it may show another one that had the id. It is false for
// a server that only a watch has reported: reads, and so listings, may lag behind its create.
func (i *Inventory) Listed(listing *Snapshot, id string) (cloud.Server, bool) {
	if listing == nil {
		return cloud.Server{}, false
	}
	i.mu.RLock()
	defer i.mu.RUnlock()
	if found := listing.ids.get(id); found == nil || found.reported || i.overlay.createdAfter(id, listing.Begun) {
		return cloud.Server{}, false
	}
	return listing.Server(id)
}

// Owned returns the servers of the object with this UID in cluster, oldest
// first: those that were recorded for it since the last listing, and those
// that are listed with its owner labels.
func (i *Inventory) Owned(uid, cluster string) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	found := i.overlay.owned(uid)
	if i.snapshot != nil {
		for s := range i.snapshot.owned.with(beginning(uid)) {
			if s.owner.uid == uid && i.overlay.recorded(s.id) == nil && s.owner.cluster == cluster {
				found = append(found, s.server())
			}
		}
	}
	return sorted(found)
}

// Named returns the listed servers with this name, oldest first.
func (i *Inventory) Named(name string) []cloud.Server {
	return i.alike(name, func(s *listed) bool { return s.name == name })
}

// NamedAlike returns the listed servers with another name that is alike, oldest
// first; see cloud.AlikeNames.
func (i *Inventory) NamedAlike(name string) []cloud.Server {
	return i.alike(name, func(s *listed) bool { return s.name != name })
}

// ChosenFrom returns the listed servers with a name that the cloud may have made of this one, oldest first; see
// cloud.ChosenFrom. It compares the names of all servers.
func (i *Inventory) ChosenFrom(name string) []cloud.Server {
	snapshot := i.View().Snapshot
	if snapshot == nil {
		return nil
	}
	var found []cloud.Server
	chosen := cloud.ChosenFrom(name)
	for s := range snapshot.ids.all() {
		if chosen(s.name) {
			found = append(found, s.server())
		}
	}
	return sorted(found)
}

// alike returns the listed servers with this name or one that is alike that want accepts,
// oldest first.
func (i *Inventory) alike(name string, want func(*listed) bool) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.snapshot == nil {
		return nil
	}
	var found []cloud.Server
	for s := range i.snapshot.named.with(cloud.NormalName(name)) {
		if want(s) {
			found = append(found, s.server())
		}
	}
	return sorted(found)
}

// RecordServer records what an answer of the cloud said of a server of the
// object with this UID. It hides the listing until one begun later. If the
// server is in a transitional state, RecordServer requests a listing.
func (i *Inventory) RecordServer(uid string, server cloud.Server) { i.recordServer(uid, server, false) }

// RecordCreated records the answer to a create for the object with this UID, as
// RecordServer does. Until the settle time has passed, a listing that lacks the
// server does not end the record: the cloud may show it late, and from then on not
// in each listing. A later RecordServer keeps that time. ForgetServer ends the
// record, and so does a listing that lacks a server whose deletion began.
func (i *Inventory) RecordCreated(uid string, server cloud.Server) { i.recordServer(uid, server, true) }

func (i *Inventory) recordServer(uid string, server cloud.Server, created bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock()
	i.overlay.record(uid, server.Clone(), now, created)
	changed := i.track(server.ID, now)
	if changed && server.State.Transitional() {
		i.idlePolls = 0
		i.notifier.requestPoll(i.name, minPollInterval)
	}
}

// RecordDeletion records that a deletion of a server is sent: from now on, the cloud may give
// its id to another server.
func (i *Inventory) RecordDeletion(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deletions[id] = i.clock()
}

// DeletionSent reports whether RecordDeletion was called for this id in the last settle time.
func (i *Inventory) DeletionSent(id string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	_, sent := i.deletions[id]
	return sent
}

// RecordUnlisted records that the cloud returned a server of a VM by id, which a listing lacks that
// had to show it.
func (i *Inventory) RecordUnlisted(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unlisted[id] = struct{}{}
}

// TakeUnlisted returns the servers of RecordUnlisted since it was called last.
func (i *Inventory) TakeUnlisted() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	ids := slices.Collect(maps.Keys(i.unlisted))
	clear(i.unlisted)
	return ids
}

// Existed reports whether the server in the answer to a create already existed when a listing
// was begun; false if the listing is nil. A listed server with the id is a different one if it
// has another name, if the cloud created it earlier, or if its deletion was sent since.
func (i *Inventory) Existed(listing *Snapshot, server cloud.Server) bool {
	if listing == nil {
		return false
	}
	listed, ok := listing.Server(server.ID)
	if !ok || !cloud.AlikeNames(listed.Name, server.Name) || !listed.CreatedAt.IsZero() && server.CreatedAt.After(listed.CreatedAt) {
		return false
	}
	return !i.DeletionSent(server.ID)
}

// ForgetServer drops what was recorded of a server. It is called when the cloud
// said that the server is gone. A server that has got its id since the deletion was sent is kept.
func (i *Inventory) ForgetServer(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if sent, ok := i.deletions[id]; ok && i.overlay.createdAfter(id, sent) {
		return
	}
	if i.overlay.discard(id) {
		i.track(id, i.clock())
	}
	i.Utilization.forget(id)
}

// track updates the overlay after what was recorded of a server changed, and
// reports whether its transitional state changed. The caller holds the lock.
func (i *Inventory) track(id string, now time.Time) (changed bool) {
	var listed cloud.State
	if i.snapshot != nil {
		listed = i.snapshot.state(id)
	}
	return i.overlay.track(id, listed, now)
}

// Altered returns the listed servers whose owner labels are those of the object with this UID in cluster, but
// altered by the cloud, oldest first. It is about to delete none of them.
func (i *Inventory) Altered(uid, cluster string) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.snapshot == nil {
		return nil
	}
	var found []cloud.Server
	for s := range i.snapshot.owned.with(beginning(uid)) {
		if s.owner.altered(uid, cluster) && s.state != cloud.StateDeleting && i.overlay.recorded(s.id) == nil {
			found = append(found, s.server())
		}
	}
	return sorted(found)
}
