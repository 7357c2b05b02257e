package network

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// The cloud answers the PATCH with the gateway that was asked for, and its listing
// shows the former one: the Network is not in sync.
func TestAcceptedChangeThatIsNotAppliedIsNotReady(t *testing.T) {
	h := newHarness(t, everything, []cloud.Network{networkWith(func(n *cloud.Network) { n.Gateway = "10.0.0.9" })}, onRecord())
	h.reconcile()
	for range 4 {
		h.cloud.ModifyNetwork("n1", func(n *cloud.Network) { n.Gateway = "10.0.0.9" })
		h.advance(pollInterval)
		h.reconcile()
	}
	h.wantCondition("Ready", "False Progressing", "does not show it")
	h.advance(pollInterval)
	h.reconcile() // applied now
	h.advance(pollInterval)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
}

// A cloud that changes the case of names: the network of a lost create is found, is
// not created again and not left behind.
func TestNetworkOfLostAnswerIsFoundUnderNormalizedName(t *testing.T) {
	upper := func(h *harness) {
		for _, n := range h.cloud.Networks() {
			h.cloud.ModifyNetwork(n.ID, func(n *cloud.Network) { n.Name = strings.ToUpper(n.Name) })
		}
	}
	for _, removed := range []bool{false, true} {
		h := newHarness(t, cloud.NewCapabilities(cloud.Networks), nil, netWith())
		h.fail(cloudfake.CreateNetwork, errReset)
		h.reconcile()
		upper(h)
		if removed {
			if err := h.client.Delete(t.Context(), netWith()); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			h.advance(settleTime)
			h.reconcile()
			upper(h)
		}
		want := 1
		if removed {
			want = 0
			h.wantGone()
		}
		if got := h.cloud.Networks(); len(got) != want {
			t.Errorf("removed %t: networks %v in the cloud, want %d", removed, got, want)
		}
	}
}

// The recorded network is gone, and one create made another of its name.
func TestDeletionOfGoneNetworkWithDuplicateDoesNotPanic(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(cloud.Networks), []cloud.Network{networkWith(withID("n7"))}, onRecord(deleted))
	defer func() {
		if cause := recover(); cause != nil {
			t.Fatalf("panic: %v", cause)
		}
	}()
	for range 4 {
		h.advance(time.Minute)
		h.reconcile()
	}
	h.wantGone()
	if left := h.cloud.Networks(); len(left) > 0 {
		t.Errorf("networks %v are left", left)
	}
}

// Reads lag behind: a PATCH of a new network answers 404.
func TestChangeOfNetworkThatReadsDoNotShowYetDoesNotStall(t *testing.T) {
	h := newHarness(t, everything, nil, netWith())
	h.reconcile()
	h.fail(cloudfake.UpdateNetwork, &cloud.Error{Kind: cloud.NotFound, Op: "update network"})
	var net pcapi.Network
	key := onRecord()
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(key), &net); err != nil {
		t.Fatal(err)
	}
	net.Spec.Gateway = "10.0.0.2"
	net.Generation++
	if err := h.client.Update(t.Context(), &net); err != nil {
		t.Fatal(err)
	}
	h.advance(time.Second)
	h.reconcile()
	h.wantCondition("Stalled", " ")
}
