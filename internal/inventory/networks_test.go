package inventory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// networkCloud answers ListNetworks and counts the calls.
type networkCloud struct {
	cloud.Client
	networks []cloud.Network
	err      error
	asked    int
	// each is called before a listing is answered.
	each func()
}

func (w *networkCloud) ListNetworks(context.Context) ([]cloud.Network, error) {
	w.asked++
	if w.each != nil {
		w.each()
	}
	return w.networks, w.err
}

func network(id string, age time.Duration) cloud.Network {
	return cloud.Network{ID: id, Name: "net-" + id, CreatedAt: dawn.Add(age)}
}

// networks returns the IDs of the known networks, from a listing of at most this age.
func (h *harness) networks(age time.Duration) []string {
	h.t.Helper()
	found, err := h.inv.Networks(h.t.Context(), h.clock.Now().Add(-age))
	if err != nil {
		h.t.Fatalf("Networks: %v", err)
	}
	var ids []string
	for _, n := range found {
		ids = append(ids, n.ID+n.Gateway)
	}
	return ids
}

func TestNetworksSharesAListingThatIsNewEnough(t *testing.T) {
	h, from := newHarness(t), &networkCloud{networks: []cloud.Network{network("b", time.Second), network("c", 0), network("a", 0)}}
	h.inv.Connect(from, nil)
	equal(t, "networks, oldest first", []string{"a", "c", "b"}, h.networks(0))
	h.clock.advance(10 * time.Second)
	equal(t, "networks", []string{"a", "c", "b"}, h.networks(10*time.Second))
	equal(t, "listings", 1, from.asked)
	h.clock.advance(time.Second)
	from.networks = from.networks[:1]
	equal(t, "networks of a newer listing", []string{"b"}, h.networks(10*time.Second))
	equal(t, "listings", 2, from.asked)
}

func TestRecordedNetworksHideListingsBegunEarlier(t *testing.T) {
	h, from := newHarness(t), &networkCloud{networks: []cloud.Network{network("a", 0), network("b", 0)}}
	h.inv.Connect(from, nil)
	h.networks(0)
	changed := network("a", 0)
	changed.Gateway = "-changed"
	h.inv.RecordNetwork(changed)
	h.inv.RecordNetwork(network("c", time.Second))
	h.inv.ForgetNetwork("b")
	want := []string{"a-changed", "c"}
	equal(t, "networks", want, h.networks(time.Hour))

	h.clock.advance(time.Second)
	during := network("d", time.Minute)
	from.each = func() { h.inv.RecordNetwork(during) }
	equal(t, "networks of a listing begun later, and one that was recorded meanwhile", []string{"a", "b", "d"}, h.networks(0))
}

func TestNetworksDoesNotKeepAnErrorThatIsNoCloudError(t *testing.T) {
	h, from := newHarness(t), &networkCloud{err: errors.New("no cloud error")}
	h.inv.Connect(from, nil)
	if _, err := h.inv.Networks(t.Context(), dawn); !errors.Is(err, from.err) {
		t.Errorf("got %v, want %v", err, from.err)
	}
	from.err = nil
	h.networks(0)
	equal(t, "listings", 2, from.asked)
}

func TestNetworksKeepsACloudErrorForThreeSeconds(t *testing.T) {
	h, from := newHarness(t), &networkCloud{err: &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: "connection refused"}}
	h.inv.Connect(from, nil)
	want := func(calls int) {
		t.Helper()
		if _, err := h.inv.Networks(t.Context(), h.clock.Now()); !errors.Is(err, from.err) {
			t.Errorf("got %v, want %v", err, from.err)
		}
		equal(t, "calls", calls, from.asked)
	}
	want(1)
	h.clock.advance(3*time.Second - 1)
	want(1)
	h.clock.advance(1)
	want(2)
	from.err = &cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Minute}
	h.clock.advance(3 * time.Second)
	want(3)
	h.clock.advance(time.Minute - 1)
	want(3)
	h.clock.advance(1)
	want(4)
}

func TestDisconnectDropsANetworkListingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		old := &networkCloud{networks: []cloud.Network{network("old", 0)}, each: func() { <-time.After(time.Second) }}
		h.inv.Connect(old, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.networks(0)
		}()
		synctest.Wait()
		h.inv.Disconnect()
		h.inv.Connect(&networkCloud{networks: []cloud.Network{network("new", 0)}}, nil)
		<-done
		equal(t, "networks of the new connection", []string{"new"}, h.networks(time.Hour))
	})
}

func TestDisconnectDropsTheNetworks(t *testing.T) {
	h, from := newHarness(t), &networkCloud{networks: []cloud.Network{network("a", 0)}}
	h.inv.Connect(from, nil)
	h.networks(0)
	h.inv.RecordNetwork(network("b", 0))
	h.inv.Disconnect()
	if _, err := h.inv.Networks(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("without a connection: %v, want Unavailable", err)
	}
	h.inv.Connect(&networkCloud{}, nil)
	equal(t, "networks", []string(nil), h.networks(time.Hour))
}
