package network

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

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
