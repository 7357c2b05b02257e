package network

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestThrottledListingIsReportedAndSlowsDown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord())
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	h.cloud.FailAlways(cloudfake.ListNetworks, &cloud.Error{Kind: cloud.Throttled, Op: "list networks", Detail: "slow down"}, false)
	var waited time.Duration
	for range tolerated + 1 {
		h.advance(pollInterval)
		waited = h.reconcile().RequeueAfter
	}
	h.wantCondition("Ready", "False Pending", "no more requests")
	if waited < 30*time.Second {
		t.Errorf("requeued after %v, want a delay that grew", waited)
	}
}

func TestDeletionIsConfirmedLessOftenWhileTheNetworkCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
	h.cloud.Ignore(cloudfake.DeleteNetwork)
	h.cloud.FailAlways(cloudfake.GetNetwork, errAway, false)
	var waited time.Duration
	for range 5 {
		again := h.reconcile().RequeueAfter
		if again < waited*3/2 {
			t.Errorf("requeued after %v, want more than %v", again, waited)
		}
		waited = again
		h.advance(again)
	}
}

func TestAnsweredCreateIsAdoptedAlthoughTheListingLags(t *testing.T) {
	t.Parallel()
	h := newHarness(t, labelsOnly, nil, netWith())
	h.reconcile()
	h.wantCalls("create")
	// The status write is lost, and the listing does not show the network yet.
	var net pcapi.Network
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		t.Fatal(err)
	}
	created := h.cloud.Networks()
	id := net.Status.NetworkID
	net.Status = pcapi.NetworkStatus{}
	if err := h.client.Status().Update(t.Context(), &net); err != nil {
		t.Fatal(err)
	}
	h.kind.Tracker.Created(net.UID, id, h.now)
	h.advance(time.Second)
	h.cloud.OnCall(func(_ context.Context, verb cloudfake.Verb, _ string) {
		if verb == cloudfake.ListNetworks {
			h.cloud.SetNetworks()
		} else {
			h.cloud.SetNetworks(created...)
		}
	})
	h.reconcile()
	h.wantCalls("list")
	h.wantCondition("Created", "True Adopted")
}

func TestVMsAreCountedAlthoughALookFails(t *testing.T) {
	t.Parallel()
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Finalizers: []string{pcapi.VMFinalizer}},
		Spec:       pcapi.VMSpec{NetworkRef: &pcapi.NetworkReference{Name: "net"}},
	}
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(), vm)
	h.cloud.FailAlways(cloudfake.ListNetworks, errAway, false)
	h.reconcile()
	var net pcapi.Network
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		t.Fatal(err)
	}
	if net.Status.AttachedVMs != 1 {
		t.Errorf("attachedVMs is %d, want 1", net.Status.AttachedVMs)
	}
}
