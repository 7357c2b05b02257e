package network

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestReconcileCreatesAndDeletesWithThreeWritesAndFourCalls(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, nil, netWith())
	if again := h.reconcile().RequeueAfter; again != pollInterval {
		t.Errorf("requeued after %v, want the poll interval", again)
	}
	h.wantCalls("create")
	h.wantCondition("Ready", "True InSync")
	h.advance(pollInterval)
	h.reconcile()
	h.wantCalls("list")
	if err := h.client.Delete(t.Context(), netWith()); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.wantCalls("delete", "get")
	if diff := cmp.Diff([]string{"object", "status", "object"}, h.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	h.wantGone()
}

func TestReadyNetworkToleratesFewFailedLooks(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord())
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	h.writes = nil
	h.fail(cloudfake.ListNetworks, slices.Repeat([]error{errAway}, tolerated+1)...)
	var waited time.Duration
	for range tolerated {
		h.advance(pollInterval)
		again := h.reconcile().RequeueAfter
		if again <= waited {
			t.Errorf("requeued after %v, want more than %v", again, waited)
		}
		waited = again
	}
	if len(h.writes) > 0 {
		t.Errorf("writes %v, want none", h.writes)
	}
	h.advance(pollInterval)
	h.reconcile()
	h.wantCondition("Ready", "False CloudUnavailable", "does not answer")
	h.wantCondition("Created", "True Created")

	h.advance(pollInterval)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")

	h.fail(cloudfake.ListNetworks, errAway)
	h.advance(pollInterval)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
}

func TestUnlistedNetworkIsReadByID(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, nil, onRecord())
	h.inv.Brake(true)
	h.reconcile()
	h.wantCalls("list")
	h.wantCondition("Ready", " ")
	h.inv.Brake(false)
	h.advance(pollInterval)
	h.reconcile()
	h.wantCalls("list", "get")
	h.wantCondition("Created", "False Lost")
}

func TestLostAnswerIsResolvedByLook(t *testing.T) {
	t.Parallel()
	taken := &cloud.Error{Kind: cloud.Taken, Op: "create network", Detail: "taken"}
	reused := &cloud.Error{Kind: cloud.KeyReused, Op: "create network", Detail: "reused"}
	for name, answer := range map[string]error{"answer lost: adopted": errReset, "name taken: adopted": taken, "key reused: adopted": reused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, nil, netWith())
			h.fail(cloudfake.CreateNetwork, answer)
			h.reconcile()
			h.wantCalls("create")
			h.wantCondition("Created", "False OutcomeUnknown", "looked for before another create")
			h.cloud.SetNetworks(networkWith())
			h.advance(time.Second)
			h.reconcile()
			h.wantCalls("list")
			h.wantCondition("Created", "True Adopted")
		})
	}
}

func TestRefusedCreateRemovesClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind cloud.Kind
		want string
	}{
		"rejected: Rejected": {cloud.Rejected, "False Rejected"}, "prohibited: Rejected": {cloud.Prohibited, "False Rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, nil, netWith())
			h.fail(cloudfake.CreateNetwork, &cloud.Error{Kind: test.kind, Op: "create network", Detail: "no"})
			h.reconcile()
			h.wantCondition("Created", test.want)
			var net pcapi.Network
			if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
				t.Fatal(err)
			}
			if len(net.Finalizers) > 0 || len(net.Annotations) > 0 {
				t.Errorf("finalizers %v and annotations %v are left", net.Finalizers, net.Annotations)
			}
		})
	}
}

// The process before this one may have sent the removal of the claim, which has no effect yet: it
// fails if the object has changed.
func TestClaimOfAnotherProcessIsWrittenBeforeAnotherCreate(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, nil, netWith(func(net *pcapi.Network) {
		net.Finalizers, net.Annotations = []string{pcapi.NetworkFinalizer}, external.ClaimAnnotations(ownName, "default")
	}))
	h.fail(cloudfake.CreateNetwork, &cloud.Error{Kind: cloud.Throttled, Op: "create network", Detail: "no"})
	before := h.network().ResourceVersion
	h.reconcile()
	h.wantCalls("list", "create")
	claimed := h.network()
	if claimed.ResourceVersion == before || claimed.Annotations[pcapi.ClaimRenewedAtAnnotation] == "" {
		t.Errorf("the claim was not written before the create: %v", claimed.Annotations)
	}
	h.advance(external.RecheckSoon)
	h.reconcile()
	h.wantCalls("list", "create")
	if diff := cmp.Diff([]string{"object", "status", "status"}, h.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestClaimIsKeptWhileCreateIsRetried(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind cloud.Kind
		want string
	}{
		"quota exceeded: QuotaExceeded": {cloud.Quota, "False QuotaExceeded"}, "throttled: Pending": {cloud.Throttled, "False Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, labelsOnly, nil, netWith())
			h.setClockToStart()
			h.fail(cloudfake.CreateNetwork, slices.Repeat([]error{&cloud.Error{Kind: test.kind, Op: "create network", Detail: "no"}}, 3)...)
			for range 3 {
				h.reconcile()
				h.advance(external.RecheckSoon / 3)
			}
			h.wantCondition("Created", test.want)
			h.wantCalls("create", "list", "create", "create")
			if diff := cmp.Diff([]string{"object", "status"}, h.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if err := h.client.Delete(t.Context(), netWith()); err != nil {
				t.Fatal(err)
			}
			h.reconcile()
			h.wantCalls("list")
			h.wantGone()
		})
	}
}

func TestDeletionWaitsForSettleTimeOfCreate(t *testing.T) {
	t.Parallel()
	unrecorded := func(net *pcapi.Network) { net.Status = pcapi.NetworkStatus{} }
	for name, test := range map[string]struct {
		net    *pcapi.Network
		before func(*harness)
	}{
		"create of an earlier process: wait": {onRecord(unrecorded), func(*harness) {}},
		"answer lost before a quota error: wait": {netWith(), func(h *harness) {
			h.fail(cloudfake.CreateNetwork, errReset, &cloud.Error{Kind: cloud.Quota, Op: "create network"})
			h.reconcile()
			h.cloud.SetNetworks()
			h.advance(time.Second)
			h.reconcile()
			h.wantCalls("create", "list", "create")
			h.wantCondition("Created", "False QuotaExceeded")
		}},
		"answer lost after a quota error: wait": {netWith(), func(h *harness) {
			h.fail(cloudfake.CreateNetwork, &cloud.Error{Kind: cloud.Quota, Op: "create network"}, errReset)
			h.reconcile()
			h.advance(time.Second)
			h.reconcile()
			h.cloud.SetNetworks()
			h.wantCalls("create", "list", "create")
			h.wantCondition("Created", "False OutcomeUnknown")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, nil, test.net)
			h.setClockToStart()
			test.before(h)
			if err := h.client.Delete(t.Context(), netWith()); err != nil {
				t.Fatal(err)
			}
			again := h.reconcile().RequeueAfter
			h.wantCondition("Deleting", "True Requested", "settleTime")
			h.advance(again)
			h.reconcile()
			h.wantGone()
		})
	}
}

func TestCorrectionInTheCloudIsObservedAtRecheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		net   *pcapi.Network
		wrong cloud.Network
		want  []string
	}{
		"CIDR corrected: in sync":                      {onRecord(), networkWith(withCIDR("10.0.0.0/16")), []string{"list"}},
		"name corrected: in sync":                      {onRecord(), networkWith(withName("another")), []string{"list"}},
		"name corrected of a deleted Network: deleted": {onRecord(deleted), networkWith(withName("other")), []string{"list", "delete", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, []cloud.Network{test.wrong}, test.net)
			h.inv.Configure(inventory.Settings{PollInterval: time.Hour, SettleTime: settleTime})
			if again := h.reconcile().RequeueAfter; again > external.RecheckSoon*11/10 {
				t.Errorf("requeued after %v, want at most a tenth more than %v", again, external.RecheckSoon)
			}
			h.wantCalls("list")
			h.cloud.SetNetworks(networkWith())
			h.reconcile()
			h.wantCalls()
			h.advance(external.RecheckSoon)
			h.reconcile()
			h.wantCalls(test.want...)
		})
	}
}

func TestDeletedNetworkIsForgotten(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, nil)
	k := h.kind
	k.Backoff.When("uid")
	k.Looks.When("uid")
	k.Tracker.Unknown("uid", h.now)
	k.Tracker.Refused("uid")
	k.Tracker.DeletedSince("uid", h.now)
	h.reconciler.Forget(k.ForgetDeleted).Delete(t.Context(), event.DeleteEvent{Object: netWith()}, nil)
	if k.Backoff.NumRequeues("uid")+k.Looks.NumRequeues("uid")+k.Tracker.Len() > 0 {
		t.Errorf("%+v, %d and %d tries are left", k.Tracker, k.Backoff.NumRequeues("uid"), k.Looks.NumRequeues("uid"))
	}
}

func TestDeletionWithoutRecordListsAgain(t *testing.T) {
	t.Parallel()
	claimed := func(net *pcapi.Network) { net.Status = pcapi.NetworkStatus{} }
	h := newHarness(t, everything, nil, onRecord(claimed, deleted))
	if _, _, err := h.inv.Networks.Find(t.Context(), h.now, "", "", ""); err != nil {
		t.Fatal(err)
	}
	h.advance(time.Second)
	h.cloud.SetNetworks(networkWith()) // by another manager
	h.takeVerbs()
	h.reconcile()
	h.wantCalls("list", "delete", "get")
	if len(h.cloud.Networks()) > 0 {
		t.Errorf("networks %v are left", h.cloud.Networks())
	}
}
