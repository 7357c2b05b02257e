package network

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
)

func TestCloudRefusesOrDelaysChange(t *testing.T) {
	t.Parallel()
	t.Run("duplicate in use: Ambiguous", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, labelsOnly, []cloud.Network{networkWith(), networkWith(withID("n2"))}, onRecord())
		h.fail(cloudfake.DeleteNetwork, errAttached)
		h.reconcile()
		h.wantCalls("list", "get", "delete")
		h.wantCondition("Stalled", "True Ambiguous", "network n2 is in use", "1 servers are attached")
		h.advance(external.RecheckSoon)
		h.reconcile()
		if diff := cmp.Diff([]cloud.Network{networkWith()}, h.cloud.Networks()); diff != "" {
			t.Errorf("networks (-want +got):\n%s", diff)
		}
	})
	t.Run("duplicate whose router is in use: Ambiguous, with the next step of the cloud alone", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, labelsOnly, []cloud.Network{networkWith(), networkWith(withID("n2"))}, onRecord())
		h.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.Conflict, Code: cloud.CodeRouterInUse, Op: "delete network", Detail: "detach router r1"})
		h.reconcile()
		h.wantCondition("Stalled", "True Ambiguous", "network n2 is in use", "detach router r1")
		if c := meta.FindStatusCondition(h.status().Conditions, "Stalled"); c == nil || strings.Contains(c.Message, "move its servers") {
			t.Errorf("Stalled is %+v, want no other step", c)
		}
	})
	t.Run("foreign servers attached: deletion Blocked", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		h.fail(cloudfake.DeleteNetwork, errAttached)
		if again := h.reconcile().RequeueAfter; again > 2*time.Second {
			t.Errorf("requeued after %v, want a second at first", again)
		}
		h.wantCondition("Deleting", "True Blocked", "1 servers are attached", "detach in the cloud", "tried again after 1s, then at growing intervals of at most 2m0s")
	})
	t.Run("gateway unchanged after update: Drift", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, []cloud.Network{networkWith(withGateway("10.0.0.9"))}, onRecord())
		h.cloud.Ignore(cloudfake.UpdateNetwork)
		h.reconcile()
		h.wantCalls("list", "update")
		h.wantCondition("Stalled", "True Drift", "was asked for gateway 10.0.0.1 and set 10.0.0.9")
	})
	t.Run("network exists after delete returned NotFound: Requested", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		h.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.NotFound, Op: "delete network", Detail: "no such network"})
		h.reconcile()
		h.wantCalls("list", "delete", "get")
		h.wantCondition("Deleting", "True Requested", "deleting network n1")
	})
	t.Run("slow deletion: looks back off", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		h.cloud.Ignore(cloudfake.DeleteNetwork)
		var waited time.Duration
		for range 7 {
			again := h.reconcile().RequeueAfter
			h.wantCondition("Deleting", "True Requested", "deleting network n1")
			if again < waited*3/2 {
				t.Errorf("requeued after %v, want more than %v", again, waited)
			}
			waited = again
			h.advance(again)
		}
		h.cloud.Heal(cloudfake.DeleteNetwork)
		h.reconcile()
		if n := h.kind.Backoff.NumRequeues("uid"); n != 0 || len(h.cloud.Networks()) > 0 {
			t.Errorf("%d failures are remembered and networks %v are left", n, h.cloud.Networks())
		}
	})
}

func TestFailedReturnsOutcome(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"throttled: waits for RetryAfter": {&cloud.Error{Kind: cloud.Throttled, RetryAfter: 7 * time.Second}, "waiting: Pending, again in 7s"},
		"unavailable: waits":              {errAway, "waiting: CloudUnavailable, again in 1s"},
		"unreadable: waits":               {&cloud.Error{Kind: cloud.Unreadable}, "waiting: CloudUnavailable, again in 1s"},
		"unsupported: stalled":            {&cloud.Error{Kind: cloud.Unsupported}, "stalled: Unsupported, again in 10m0s"},
		"rejected: stalled":               {&cloud.Error{Kind: cloud.Rejected}, "stalled: Rejected, again in 10m0s"},
		"no cloud error: returned":        {errors.New("boom"), "error: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, nil)
			if got := describe(h.kind.Failed(netWith(), &external.Observation[cloud.Network]{Inventory: h.inv}, test.err)); got != test.want {
				t.Errorf("outcome of %v: %s, want %s", test.err, got, test.want)
			}
		})
	}
}

func TestOnlyFailedChangesRequestPoll(t *testing.T) {
	t.Parallel()
	conflict := &cloud.Error{Kind: cloud.Conflict, Op: "update network", Detail: "busy"}
	edge := networkWith(withGateway("10.0.0.9"))
	for name, test := range map[string]struct {
		net      *pcapi.Network
		networks []cloud.Network
		verb     cloudfake.Verb
		err      error
		want     bool
	}{
		"list unavailable: no poll":             {onRecord(), []cloud.Network{networkWith()}, cloudfake.ListNetworks, errAway, false},
		"get unavailable: no poll":              {onRecord(), nil, cloudfake.GetNetwork, errAway, false},
		"get unavailable after delete: no poll": {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.GetNetwork, errAway, false},
		"update conflicts: no poll":             {onRecord(), []cloud.Network{edge}, cloudfake.UpdateNetwork, conflict, false},
		"update unavailable: poll":              {onRecord(), []cloud.Network{edge}, cloudfake.UpdateNetwork, errAway, true},
		"delete unavailable: poll":              {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.DeleteNetwork, errAway, true},
		"create unavailable: poll":              {netWith(), nil, cloudfake.CreateNetwork, errAway, true},
		"create answer lost: poll":              {netWith(), nil, cloudfake.CreateNetwork, errReset, true},
		"create throttled: no poll":             {netWith(), nil, cloudfake.CreateNetwork, &cloud.Error{Kind: cloud.Throttled}, false},
		"delete conflicts: no poll":             {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.DeleteNetwork, errAttached, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, test.networks, test.net)
			h.inv.Polling()
			h.fail(test.verb, test.err)
			h.reconcile()
			if soon := h.inv.NextPoll() <= time.Second; soon != test.want {
				t.Errorf("the next poll is in %v, want it requested: %t", h.inv.NextPoll(), test.want)
			}
		})
	}
}

func TestFailedNetworkListingIsNotRepeatedByOtherNetworks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err    error
		silent time.Duration
	}{
		"unavailable: not repeated for three seconds": {errAway, 3 * time.Second},
		"throttled: not repeated before RetryAfter":   {&cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Minute}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord())
			h.fail(cloudfake.ListNetworks, test.err)
			h.advance(time.Hour)
			h.reconcile()
			h.wantCalls("list")
			h.advance(test.silent - time.Millisecond)
			h.reconcile()
			h.wantCalls()
			h.advance(time.Millisecond)
			h.reconcile()
			h.wantCalls("list")
			h.advance(time.Hour)
			h.reconcile()
			h.wantCalls("list")
		})
	}
	t.Run("canceled: repeated by the next reconcile", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord())
		h.reconcile()
		h.wantCalls("list")
		ended, end := context.WithCancel(t.Context())
		end()
		h.advance(pollInterval)
		if _, _, err := h.inv.Networks.Find(ended, h.now, "", "", ""); !errors.Is(err, context.Canceled) {
			t.Errorf("Networks failed with %v, want the end of its context", err)
		}
		h.reconcile()
		h.wantCalls("list")
	})
}
