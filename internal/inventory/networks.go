package inventory

import (
	"context"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// networksFailureTTL is how long a cloud that failed to list its networks is not
// asked again, however many callers there are.
const networksFailureTTL = 3 * time.Second

// networks is what is known of a cloud's networks.
type networks struct {
	list *onDemandList[cloud.Network]
	// recorded are the networks of later answers, by ID.
	recorded map[string]recordedNetwork
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

func newNetworks(clock func() time.Time) *networks {
	return &networks{list: newOnDemandList[cloud.Network](clock), recorded: map[string]recordedNetwork{}}
}

// Networks returns the cloud's networks, oldest first: those of a listing begun
// at or after notBefore, amended by what was recorded since it began, and by
// networks that this process created less than the settle time before. It lists
// the networks if that was not done yet. begun is when the listing began.
//
// It fails as cloud.NetworkReader does, with the error of ctx, or with a cloud
// error of kind Unavailable if the cloud is not connected. A cloud error of the
// listing is returned to all callers for 3 s, or longer if the cloud asked for that.
func (i *Inventory) Networks(ctx context.Context, notBefore time.Time) (items []cloud.Network, begun time.Time, err error) {
	i.mu.RLock()
	client, known := i.client, i.networks
	i.mu.RUnlock()
	if client == nil {
		return nil, time.Time{}, &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: notConnected}
	}
	got, err := known.list.get(ctx, listQuery[cloud.Network]{
		notBefore: notBefore, list: client.ListNetworks, failureTTL: networksFailureTTL,
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return known.amended(got, i.settings.SettleTime), got.begun, nil
}

// amended returns the networks of a listing as changed by what was recorded
// since it began, and drops older records.
func (n *networks) amended(listed listing[cloud.Network], settleTime time.Duration) []cloud.Network {
	all := make([]cloud.Network, 0, len(listed.items))
	shown := make(map[string]bool, len(listed.items))
	for _, network := range listed.items {
		r, recorded := n.recorded[network.ID]
		if recorded && !r.at.Before(listed.begun) {
			continue
		}
		all, shown[network.ID] = append(all, network), true
		if r.retained(listed.begun, settleTime) {
			r.network = &network
			n.recorded[network.ID] = r
		}
	}
	for id, r := range n.recorded {
		switch {
		case shown[id] && r.retained(listed.begun, settleTime):
		case r.at.Before(listed.begun) && !r.retained(listed.begun, settleTime):
			delete(n.recorded, id)
		case r.network != nil:
			all = append(all, *r.network)
		}
	}
	slices.SortFunc(all, OlderNetwork)
	return all
}

// RecordNetwork records what an answer of the cloud said of a network. It hides
// the listing until one begun later.
func (i *Inventory) RecordNetwork(n cloud.Network) { i.recordNetwork(n.ID, &n, false) }

// RecordCreatedNetwork records the answer to a network's create. It hides the
// listing until one begun later. Until the settle time has passed, a listing that
// lacks the network does not end the record: the cloud may show it late.
func (i *Inventory) RecordCreatedNetwork(n cloud.Network) { i.recordNetwork(n.ID, &n, true) }

// ForgetNetwork records that the cloud said that a network is gone.
func (i *Inventory) ForgetNetwork(id string) { i.recordNetwork(id, nil, false) }

func (i *Inventory) recordNetwork(id string, n *cloud.Network, created bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := recordedNetwork{network: n, at: i.clock()}
	switch {
	case created:
		r.createdAt = r.at
	case n != nil:
		r.createdAt = i.networks.recorded[id].createdAt
	}
	i.networks.recorded[id] = r
}

// OlderNetwork orders networks by age, then by ID: the first is the one to keep
// when one create made several.
func OlderNetwork(a, b cloud.Network) int {
	return Older(cloud.Server{ID: a.ID, CreatedAt: a.CreatedAt}, cloud.Server{ID: b.ID, CreatedAt: b.CreatedAt})
}
