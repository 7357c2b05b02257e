package inventory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// networksFailureTTL is how long a cloud that failed to list its networks is not
// asked again, however many callers there are.
const networksFailureTTL = 3 * time.Second

// Networks is what is known of a cloud's networks. It outlives connections. All methods may
// be called at any time from any goroutine.
type Networks struct {
	connection
	known *knownNetworks
}

// knownNetworks is what one connection has shown of the networks.
type knownNetworks struct {
	list *onDemandList[cloud.Network]
	// listed is the last listing, with the places of the networks in it by ID, and by the
	// normal form of their names.
	listed listing[cloud.Network]
	byID   map[string]int
	byName map[string][]int
	// recorded are the networks of later answers, by ID, and named the IDs of those by
	// the normal form of their names.
	recorded map[string]recordedNetwork
	named    map[string]map[string]bool
}

// recordedNetwork is what an answer of the cloud said of a network; nil if it
// said that the network is gone.
type recordedNetwork struct {
	network *cloud.Network
	at      time.Time
	// createdAt is when the answer to the network's create was recorded; zero if
	// this process did not create it. Until the settle time has passed since, a
	// listing that lacks the network does not end the record.
	createdAt time.Time
}

// retained reports whether a listing that began at begun and lacks the network
// proves nothing: the cloud may show a created network late.
func (r recordedNetwork) retained(begun time.Time, settleTime time.Duration) bool {
	return r.network != nil && !r.createdAt.IsZero() && begun.Before(r.createdAt.Add(settleTime))
}

func newNetworks(clock func() time.Time) *Networks {
	return &Networks{connection: connection{clock: clock}, known: newKnownNetworks(clock)}
}

func newKnownNetworks(clock func() time.Time) *knownNetworks {
	return &knownNetworks{list: newOnDemandList[cloud.Network](clock), recorded: map[string]recordedNetwork{}, named: map[string]map[string]bool{}}
}

// disconnect drops the client and what is known. The list is new, so that the result of a call
// under way is dropped.
func (n *Networks) disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.client, n.known = nil, newKnownNetworks(n.clock)
}

// Find returns the cloud's network with an ID and those with a name or one that is
// alike, oldest first, as a listing begun at or after notBefore has them, amended by what
// was recorded since it began, and by networks that this process created less than the
// settle time before. It lists the networks if that was not done yet. begun is when the
// listing began.
//
// It fails as cloud.NetworkReader does, with the error of ctx, or with a cloud
// error of kind Unavailable if the cloud is not connected. A cloud error of the
// listing is returned to all callers for 3 s, or longer if the cloud asked for that.
func (n *Networks) Find(ctx context.Context, notBefore time.Time, id, name, owned string) (found []cloud.Network, begun time.Time, err error) {
	n.mu.RLock()
	client, known := n.client, n.known
	n.mu.RUnlock()
	if client == nil {
		return nil, time.Time{}, &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: notConnected}
	}
	got, err := known.list.get(ctx, listQuery[cloud.Network]{
		notBefore: notBefore, list: client.ListNetworks, failureTTL: networksFailureTTL,
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	known.take(got, n.settings.SettleTime)
	found = known.find(id, cloud.NormalName(name), n.settings.SettleTime)
	if id == "" && owned != "" {
		found = known.owned(owned, n.settings.SettleTime)
	}
	return found, known.listed.begun, nil
}

// Listed reports whether the last listing of the networks shows one that existed when it was begun: its
// create, if it is one of this process, was answered before.
func (n *Networks) Listed(id string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, shown := n.known.byID[id]
	return shown && !n.known.recorded[id].createdAt.After(n.known.listed.begun)
}

// Existed reports whether a network is known from a listing that was begun, or from what was recorded, before a time.
func (n *Networks) Existed(id string, before time.Time) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	_, shown := n.known.byID[id]
	r, recorded := n.known.recorded[id]
	earlier := shown && n.known.listed.begun.Before(before) || recorded && r.at.Before(before)
	return earlier && n.known.get(id, n.settings.SettleTime) != nil
}

// Record records what an answer of the cloud said of a network. It hides the listing
// until one begun later.
func (n *Networks) Record(network cloud.Network) { n.record(network.ID, &network, false) }

// RecordCreated records the answer to a network's create. It hides the listing until
// one begun later. Until the settle time has passed, a listing that lacks the network
// does not end the record: the cloud may show it late.
func (n *Networks) RecordCreated(network cloud.Network) { n.record(network.ID, &network, true) }

// Forget records that the cloud said that a network is gone.
func (n *Networks) Forget(id string) { n.record(id, nil, false) }

func (n *Networks) record(id string, network *cloud.Network, created bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := recordedNetwork{network: network, at: n.clock()}
	switch {
	case created:
		r.createdAt = r.at
	case network != nil:
		r.createdAt = n.known.recorded[id].createdAt
	}
	n.known.record(id, r)
}

// take takes a listing, unless it is the last one or older, and drops the records that
// it ends.
func (n *knownNetworks) take(got listing[cloud.Network], settleTime time.Duration) {
	if n.byID != nil && (got.begun.Before(n.listed.begun) || got.same(n.listed)) {
		return
	}
	n.listed, n.byID, n.byName = got, make(map[string]int, len(got.items)), make(map[string][]int, len(got.items))
	for at := range got.items {
		network := &got.items[at]
		name := cloud.NormalName(network.Name)
		n.byID[network.ID] = at
		n.byName[name] = append(n.byName[name], at)
	}
	for id, r := range n.recorded {
		at, shown := n.byID[id]
		switch {
		case !r.at.Before(got.begun):
		case !r.retained(got.begun, settleTime):
			n.drop(id)
		case shown:
			r.network = &got.items[at]
			n.record(id, r)
		}
	}
}

// find returns the network with an ID and those with this normal form of the name.
func (n *knownNetworks) find(id, name string, settleTime time.Duration) []cloud.Network {
	ids := map[string]bool{id: true}
	for _, at := range n.byName[name] {
		ids[n.listed.items[at].ID] = true
	}
	maps.Copy(ids, n.named[name])
	var found []cloud.Network
	for other := range ids {
		if network := n.get(other, settleTime); network != nil && (other == id || cloud.NormalName(network.Name) == name) {
			found = append(found, *network)
		}
	}
	slices.SortFunc(found, OlderNetwork)
	return found
}

// owned returns the networks whose names prove the owner of a name; see cloud.ProvesOwner. It compares the names of all
// networks.
func (n *knownNetworks) owned(name string, settleTime time.Duration) []cloud.Network {
	ids := map[string]bool{}
	for at := range n.listed.items {
		ids[n.listed.items[at].ID] = true
	}
	for id := range n.recorded {
		ids[id] = true
	}
	var found []cloud.Network
	for id := range ids {
		if network := n.get(id, settleTime); network != nil && cloud.ProvesOwner(network.Name, name) {
			found = append(found, *network)
		}
	}
	slices.SortFunc(found, OlderNetwork)
	return found
}

// get returns a network as it was recorded or listed; nil if it is not known or gone.
func (n *knownNetworks) get(id string, settleTime time.Duration) *cloud.Network {
	r, recorded := n.recorded[id]
	at, shown := n.byID[id]
	switch {
	case recorded && !r.at.Before(n.listed.begun):
		return r.network
	case shown:
		return &n.listed.items[at]
	case r.retained(n.listed.begun, settleTime):
		return r.network
	}
	return nil
}

// record stores what was recorded of a network.
func (n *knownNetworks) record(id string, r recordedNetwork) {
	n.drop(id)
	n.recorded[id] = r
	if r.network == nil {
		return
	}
	name := cloud.NormalName(r.network.Name)
	if n.named[name] == nil {
		n.named[name] = map[string]bool{}
	}
	n.named[name][id] = true
}

// drop drops what was recorded of a network.
func (n *knownNetworks) drop(id string) {
	if last := n.recorded[id].network; last != nil {
		name := cloud.NormalName(last.Name)
		delete(n.named[name], id)
		if len(n.named[name]) == 0 {
			delete(n.named, name)
		}
	}
	delete(n.recorded, id)
}

// OlderNetwork orders networks by age, then by ID: the first is the one to keep
// when one create made several.
func OlderNetwork(a, b cloud.Network) int {
	return Older(cloud.Server{ID: a.ID, CreatedAt: a.CreatedAt}, cloud.Server{ID: b.ID, CreatedAt: b.CreatedAt})
}
