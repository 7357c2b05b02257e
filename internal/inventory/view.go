package inventory

import (
	"context"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// View is what is known of a cloud at one moment.
type View struct {
	// Client is the way to the cloud; nil before the first connection.
	Client cloud.Client
	// Capabilities of the cloud.
	Capabilities cloud.Capabilities
	// Unavailable says why the cloud cannot be used now; empty when it can.
	Unavailable string
	// Braked forbids creates and deletes.
	Braked   bool
	Settings Settings
	// Snapshot is the last complete listing; nil before the first.
	Snapshot *Snapshot
	// returns is how often those who waited for the cloud had been woken.
	returns int
}

// View returns what is known now.
func (i *Inventory) View() View {
	i.mu.RLock()
	defer i.mu.RUnlock()
	v := View{
		Client: i.client, Capabilities: i.caps, Unavailable: i.away, Braked: i.braked, Snapshot: i.snapshot,
		Settings: i.settings, returns: i.returns,
	}
	if v.Unavailable == "" && v.Snapshot == nil {
		v.Unavailable = "the cloud has not been listed yet"
	}
	return v
}

// Since is when this process began to look after the cloud: what happened to
// creates before it is not known.
func (i *Inventory) StartedAt() time.Time { return i.since }

// Server returns what is known of a server by its id: what we did to it since
// the last listing, else what the listing said.
func (i *Inventory) Server(id string) (cloud.Server, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.server(id)
}

func (i *Inventory) server(id string) (cloud.Server, bool) {
	if n, ok := i.noted[id]; ok {
		return n.server, true
	}
	if i.snapshot == nil {
		return cloud.Server{}, false
	}
	s, ok := i.snapshot.servers[id]
	return s, ok
}

// Owned returns the servers that are known to be made for an object's UID in
// cluster, oldest first: by their owner labels, or because we made them since
// the last listing.
func (i *Inventory) Owned(uid, cluster string) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var found []cloud.Server
	for _, n := range i.noted {
		if n.uid == uid {
			found = append(found, n.server)
		}
	}
	if i.snapshot != nil {
		for _, id := range i.snapshot.byUID[uid] {
			s := i.snapshot.servers[id]
			if _, newer := i.noted[id]; !newer && s.Labels[ClusterLabel] == cluster {
				found = append(found, s)
			}
		}
	}
	return sorted(found)
}

// Named returns the servers that bear a name, oldest first.
func (i *Inventory) Named(name string) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.snapshot == nil {
		return nil
	}
	var found []cloud.Server
	for _, id := range i.snapshot.byName[name] {
		found = append(found, i.snapshot.servers[id])
	}
	return sorted(found)
}

// Note records what an answer of the cloud told of a server made for an
// object's UID, to be seen until a listing begun later says more.
func (i *Inventory) RecordServer(uid string, server cloud.Server) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noted[server.ID] = note{server: server.Clone(), uid: uid, at: i.clock()}
	if server.State.Transitional() {
		i.calm = 0
		i.bell.hasten(i.name, quickest)
	}
}

// Forget drops what was noted of a server that is proved gone.
func (i *Inventory) ForgetServer(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.noted, id)
	delete(i.uses, id)
}

// Use returns a server's utilisation from GET /servers/{id}/status, asking the
// cloud at most once a poll interval. For clouds without bulk status.
func (i *Inventory) Utilization(ctx context.Context, id string) (cloud.Status, error) {
	i.mu.RLock()
	last, ok := i.uses[id]
	client, interval := i.client, i.settings.PollInterval
	i.mu.RUnlock()
	if ok && i.clock().Sub(last.at) < interval*9/10 {
		return last.status, nil
	}
	status, err := client.ServerStatus(ctx, id)
	if err != nil {
		return last.status, err
	}
	i.mu.Lock()
	i.uses[id] = use{status: status, at: i.clock()}
	i.mu.Unlock()
	return status, nil
}
