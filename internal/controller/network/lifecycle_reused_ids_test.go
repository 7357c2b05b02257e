package network

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/google/go-cmp/cmp"

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
	if got := h.cloud.Networks(); len(got) != 1 || !cmp.Equal(got[0], stranger) {
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
			if got := h.cloud.Networks(); len(got) != 1 || !cmp.Equal(got[0], stranger) {
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

// unrecorded returns a harness whose network was created and whose status writes fail from then on.
func unrecorded(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, everything, nil, netWith())
	h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.CreateNetwork {
			h.statusErr = errAPIAway
		}
	})
	h.reconcileWithoutStatus()
	return h
}

// reconcileWithoutStatus reconciles while the status cannot be written.
func (h *harness) reconcileWithoutStatus() {
	h.t.Helper()
	_, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "net"}})
	if err != nil && !errors.Is(err, errAPIAway) {
		h.t.Fatalf("Reconcile: %v", err)
	}
	h.advance(time.Second)
}

var errAPIAway = errors.New("the API server is unavailable")

// The id of the network is not on record, its deletion takes effect and its answer is lost, and a network of somebody else
// gets the id.
func TestDeletionOfANetworkBeforeTheIDIsOnRecordIsNotSentAgainToTheNextOneWithTheID(t *testing.T) {
	for name, tc := range map[string]struct {
		created time.Duration
		listed  bool
	}{
		"the cloud says when it was created":                {time.Second, true},
		"the cloud does not say when it was created":        {0, true},
		"a read shows it before a listing does":             {time.Second, false},
		"a read shows it, without the time of its creation": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := unrecorded(t)
			id := h.cloud.Networks()[0].ID
			h.remove()
			h.fail(cloudfake.DeleteNetwork, errReset)
			h.reconcileWithoutStatus()
			h.cloud.RemoveNetworks(id)
			h.cloud.TakeCalls()
			stranger := cloud.Network{ID: id, Name: "of-others", CIDR: "10.9.0.0/24", Gateway: "10.9.0.1"}
			if tc.created > 0 {
				stranger.CreatedAt = h.now.Add(tc.created)
			}
			h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
				if verb == cloudfake.ListNetworks && !tc.listed {
					h.cloud.SetNetworks()
				} else if h.cloud.Sent(cloudfake.DeleteNetwork) == 1 {
					h.cloud.SetNetworks(stranger)
				}
			})
			for range 4 {
				h.reconcileWithoutStatus()
			}
			h.advance(2 * settleTime)
			h.reconcileWithoutStatus()
			if n := h.cloud.Sent(cloudfake.DeleteNetwork); n != 1 {
				t.Errorf("%d deletions were sent, want one", n)
			}
			h.wantGone()
		})
	}
}

// The deletion has no effect and no answer: it is sent again after a read.
func TestDeletionOfANetworkBeforeTheIDIsOnRecordIsSentAgainAfterARead(t *testing.T) {
	h := unrecorded(t)
	h.remove()
	h.fail(cloudfake.DeleteNetwork, errReset)
	h.reconcileWithoutStatus()
	h.takeVerbs()
	h.reconcileWithoutStatus()
	h.wantCalls("get", "delete", "get")
	h.wantGone()
}

// Nothing but the record of the create still shows the network, and something in front of the cloud answers the reads.
func TestDeletionOfANetworkBeforeTheIDIsOnRecordIsNotSentAgainWhileReadsDoNotFindIt(t *testing.T) {
	h := unrecorded(t)
	id := h.cloud.Networks()[0].ID
	h.remove()
	h.fail(cloudfake.DeleteNetwork, errReset)
	h.reconcileWithoutStatus()
	h.cloud.RemoveNetworks(id)
	h.cloud.FailAlways(cloudfake.GetNetwork, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get network"}, false)
	for range 3 {
		h.reconcileWithoutStatus()
	}
	h.advance(2 * settleTime)
	h.reconcileWithoutStatus()
	if n := h.cloud.Sent(cloudfake.DeleteNetwork); n != 1 {
		t.Errorf("%d deletions were sent, want one", n)
	}
	h.wantGone()
}
