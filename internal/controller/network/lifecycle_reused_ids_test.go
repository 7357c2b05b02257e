package network

import (
	"context"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// The cloud gives the id to a network of somebody else before it answers the deletion.
func TestNetworkWhoseIDIsGivenAgainIsGoneOnceItsDeletionIsAnswered(t *testing.T) {
	h := newHarness(t, everything, nil, netWith())
	h.cloud.SetReusesIDs(true)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	h.remove()
	stranger := cloud.Network{ID: h.cloud.Networks()[0].ID, Name: "of-others", CIDR: "10.9.0.0/24", Gateway: "10.9.0.1"}
	h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.DeleteNetwork {
			h.cloud.AddNetworks(stranger)
		}
	})
	h.advance(time.Minute)
	h.reconcile()
	h.wantGone()
	if got := h.cloud.Networks(); len(got) != 1 || got[0] != stranger {
		t.Errorf("networks in the cloud: %v, want that of somebody else", got)
	}
}

// The deletion takes effect, its answer is lost, and a network of somebody else gets the id.
func TestDeletionOfANetworkWithALostAnswerIsNotSentAgainToTheNextOneWithTheID(t *testing.T) {
	for name, age := range map[string]time.Duration{"the cloud says when it was created": time.Second, "the cloud does not say when it was created": 0} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, nil, netWith())
			h.reconcile()
			h.advance(settleTime)
			h.reconcile()
			h.remove()
			id := h.cloud.Networks()[0].ID
			h.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.Unavailable, Op: "delete network", Uncertain: true})
			h.reconcile()
			h.cloud.RemoveNetworks(id)
			stranger := cloud.Network{ID: id, Name: "of-others", CIDR: "10.9.0.0/24", Gateway: "10.9.0.1"}
			if age > 0 {
				stranger.CreatedAt = h.now.Add(age)
			}
			h.cloud.AddNetworks(stranger)
			for range 4 {
				h.advance(time.Second)
				h.reconcile()
			}
			if got := h.cloud.Networks(); len(got) != 1 || got[0] != stranger {
				t.Errorf("networks in the cloud: %v, want that of somebody else", got)
			}
			if age > 0 {
				h.wantGone()
				return
			}
			h.wantCondition("Ready", "False Blocked", "rename it in the cloud if it is this Network's")
		})
	}
}
