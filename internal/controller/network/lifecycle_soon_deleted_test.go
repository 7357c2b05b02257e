package network

import (
	"context"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// The cloud has no codes: its 404 may come from something in front of it.
func TestNetworkDeletedSoonAfterItsCreateIsGoneWithTheNextListing(t *testing.T) {
	h := newHarness(t, everything, nil, netWith())
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	h.advance(time.Second)
	h.remove()
	h.cloud.FailAlways(cloudfake.GetNetwork, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get network"}, false)
	h.cloud.OnAnswer(func(context.Context, cloudfake.Verb, string) { h.advance(time.Millisecond) })
	h.takeVerbs()
	result := h.reconcile()
	if result.RequeueAfter > 2*time.Second {
		t.Errorf("the next look is after %v, want at most 2s", result.RequeueAfter)
	}
	h.advance(2 * time.Second)
	h.reconcile()
	h.wantGone()
	h.wantCalls("list", "delete", "get", "list", "get")
}
