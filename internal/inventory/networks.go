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
}

func newNetworks(clock func() time.Time) *networks {
	return &networks{list: newOnDemandList[cloud.Network](clock), recorded: map[string]recordedNetwork{}}
}

// Networks returns the cloud's networks, oldest first: those of a listing begun
// at or after notBefore, amended by what was recorded since it began. It lists
// the networks if that was not done yet.
//
// It fails as cloud.NetworkReader does, with the error of ctx, or with a cloud
// error of kind Unavailable if the cloud is not connected. A cloud error of the
// listing is returned to all callers for 3 s, or longer if the cloud asked for that.
func (i *Inventory) Networks(ctx context.Context, notBefore time.Time) ([]cloud.Network, error) {
	i.mu.RLock()
	client, known := i.client, i.networks
	i.mu.RUnlock()
	if client == nil {
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: notConnected}
	}
	got, err := known.list.get(ctx, listQuery[cloud.Network]{
		notBefore: notBefore, list: client.ListNetworks, failureTTL: networksFailureTTL,
	})
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return known.amended(got), nil
}

// amended returns the networks of a listing as changed by what was recorded
// since it began, and drops older records.
func (n *networks) amended(listed listing[cloud.Network]) []cloud.Network {
	all := slices.DeleteFunc(slices.Clone(listed.items), func(network cloud.Network) bool {
		recorded, ok := n.recorded[network.ID]
		return ok && !recorded.at.Before(listed.begun)
	})
	for id, recorded := range n.recorded {
		switch {
		case recorded.at.Before(listed.begun):
			delete(n.recorded, id)
		case recorded.network != nil:
			all = append(all, *recorded.network)
		}
	}
	slices.SortFunc(all, OlderNetwork)
	return all
}

// RecordNetwork records what an answer of the cloud said of a network. It hides
// the listing until one begun later.
func (i *Inventory) RecordNetwork(n cloud.Network) { i.recordNetwork(n.ID, &n) }

// ForgetNetwork records that the cloud said that a network is gone.
func (i *Inventory) ForgetNetwork(id string) { i.recordNetwork(id, nil) }

func (i *Inventory) recordNetwork(id string, n *cloud.Network) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.networks.recorded[id] = recordedNetwork{network: n, at: i.clock()}
}

// OlderNetwork orders networks by age, then by ID: the first is the one to keep
// when one create made several.
func OlderNetwork(a, b cloud.Network) int {
	return Older(cloud.Server{ID: a.ID, CreatedAt: a.CreatedAt}, cloud.Server{ID: b.ID, CreatedAt: b.CreatedAt})
}
