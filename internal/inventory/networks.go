package inventory

import (
	"context"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkNote is what a call of our own told of a network; of one that is gone, nil.
type networkNote struct {
	network *cloud.Network
	at      time.Time
}

// networks is what is known of a cloud's networks.
type networks struct {
	shelf shelf[cloud.Network]
	noted map[string]networkNote
}

// Networks returns the cloud's networks, oldest first: those of a listing begun
// at or after notBefore, which is made if need be, and what our own calls did
// since. It fails as ListNetworks does, or with what ended ctx.
func (i *Inventory) Networks(ctx context.Context, notBefore time.Time) ([]cloud.Network, error) {
	i.mu.RLock()
	client, held := i.client, i.networks
	i.mu.RUnlock()
	if client == nil {
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: notConnected}
	}
	listed, begun, err := held.shelf.get(ctx, notBefore, i.clock, client.ListNetworks)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(listed), func(n cloud.Network) bool {
		noted, ok := held.noted[n.ID]
		return ok && !noted.at.Before(begun)
	})
	for id, noted := range held.noted {
		switch {
		case noted.at.Before(begun):
			delete(held.noted, id)
		case noted.network != nil:
			all = append(all, *noted.network)
		}
	}
	slices.SortFunc(all, OlderNetwork)
	return all, nil
}

// RecordNetwork records what an answer of the cloud told of a network, to be seen
// until a listing begun later says more.
func (i *Inventory) RecordNetwork(n cloud.Network) { i.noteNetwork(n.ID, &n) }

// ForgetNetwork records that a network is proved gone.
func (i *Inventory) ForgetNetwork(id string) { i.noteNetwork(id, nil) }

func (i *Inventory) noteNetwork(id string, n *cloud.Network) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.networks.noted[id] = networkNote{network: n, at: i.clock()}
}

func newNetworks() *networks { return &networks{noted: map[string]networkNote{}} }

// OlderNetwork orders networks by age, then by id: the first is the one to keep
// when one create made several.
func OlderNetwork(a, b cloud.Network) int {
	return Older(cloud.Server{ID: a.ID, CreatedAt: a.CreatedAt}, cloud.Server{ID: b.ID, CreatedAt: b.CreatedAt})
}
