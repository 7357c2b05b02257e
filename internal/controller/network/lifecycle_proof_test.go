package network

import (
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestNetworkIsNotLostBeforeSettleTime(t *testing.T) {
	for _, kind := range []cloud.Kind{cloud.NotFound, cloud.NotFoundUnproven} {
		t.Run(string(kind), func(t *testing.T) {
			h := newHarness(t, everything, nil, netWith())
			h.reconcile()
			h.wantCondition("Ready", "True InSync")
			created := h.cloud.Networks()
			// The cloud's reads lag behind.
			h.cloud.SetNetworks()
			h.cloud.FailAlways(cloudfake.GetNetwork, &cloud.Error{Kind: kind, Op: "get network"}, false)
			for waited := pollInterval; waited < settleTime; waited += pollInterval {
				h.advance(pollInterval)
				h.reconcile()
				h.wantCondition("Created", "True Created")
			}
			h.advance(pollInterval)
			h.reconcile()
			h.advance(pollInterval)
			h.reconcile()
			h.wantCondition("Created", "False Lost")

			h.cloud.Heal(cloudfake.GetNetwork)
			h.cloud.SetNetworks(created...)
			h.advance(2 * time.Minute)
			h.reconcile()
			h.wantCondition("Ready", "True InSync")
		})
	}
}

func TestUnprovenNotFoundNeedsNewListing(t *testing.T) {
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
	unproven := &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "delete network"}
	h.cloud.FailAlways(cloudfake.DeleteNetwork, unproven, false)
	h.cloud.FailAlways(cloudfake.GetNetwork, unproven, false)
	h.reconcile()
	for range 3 { // a gateway answers, and the listing shows the network
		h.advance(time.Minute)
		h.reconcile()
		if len(h.cloud.Networks()) == 0 {
			t.Fatal("the network is gone")
		}
		h.wantCondition("Deleting", "True Requested")
	}
	h.cloud.Heal(cloudfake.DeleteNetwork)
	for range 3 {
		h.advance(time.Minute)
		h.reconcile()
	}
	h.wantGone()
	if left := h.cloud.Networks(); len(left) > 0 {
		t.Errorf("networks %v are left", left)
	}
}
