package network

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func halfMade(n *cloud.Network) { n.CIDR, n.Gateway, n.HalfMade = "", "", true }

// wantNetwork checks that the cloud has one network, which is complete.
func (h *harness) wantNetwork() {
	h.t.Helper()
	want := []cloud.Network{networkWith()}
	got := h.cloud.Networks()
	for i := range got {
		got[i].CreatedAt = want[0].CreatedAt
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("networks (-want +got):\n%s", diff)
	}
}

func TestHalfMadeNetworkIsCompleted(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"everything": everything, "neither keys nor unique names": cloud.NewCapabilities(cloud.Networks)} {
		t.Run("of a lost create, "+name+": completed before it is recorded", func(t *testing.T) {
			h := newHarness(t, caps, nil, netWith())
			h.cloud.Fail(cloudfake.CreateNetwork, errReset, false)
			h.reconcile()
			h.cloud.AddNetworks(networkWith(halfMade))
			h.advance(5 * time.Second)
			h.cloud.Fail(cloudfake.CreateNetwork, errReset, false)
			h.reconcile()
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
			h.advance(5 * time.Second)
			h.reconcile()
			h.advance(5 * time.Second)
			h.reconcile()
			h.wantNetwork()
			h.wantCondition(pcapi.ReadyCondition, "True InSync")
		})
		t.Run("on record, "+name+": completed", func(t *testing.T) {
			h := newHarness(t, caps, []cloud.Network{networkWith(halfMade)}, onRecord())
			h.reconcile()
			h.wantNetwork()
			h.wantCondition(pcapi.ReadyCondition, "True InSync")
		})
	}
	t.Run("deleted object: deleted, not completed", func(t *testing.T) {
		h := newHarness(t, everything, []cloud.Network{networkWith(halfMade)}, netWith(deleted, func(net *pcapi.Network) {
			net.Finalizers, net.Annotations = []string{pcapi.NetworkFinalizer}, map[string]string{pcapi.ClaimedCloudAnnotation: "default"}
		}))
		for range 4 {
			h.advance(settleTime)
			h.reconcile()
		}
		h.wantGone()
		if left := h.cloud.Networks(); len(left) > 0 {
			t.Errorf("networks %v are left", left)
		}
		if n := h.cloud.Sent(cloudfake.CreateNetwork); n > 0 {
			t.Errorf("%d creates, want none", n)
		}
	})
}

// A network without a range that the cloud does not call half-made is not created again.
func TestNetworkWithoutRangeIsNotCompleted(t *testing.T) {
	h := newHarness(t, everything, []cloud.Network{networkWith(func(n *cloud.Network) { n.CIDR = "" })}, onRecord())
	h.reconcile()
	if n := h.cloud.Sent(cloudfake.CreateNetwork); n > 0 {
		t.Errorf("%d creates, want none", n)
	}
}
