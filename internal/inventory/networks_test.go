package inventory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

// network returns a network. All have the same name.
func network(id string, age time.Duration) cloud.Network {
	return cloud.Network{ID: id, Name: "net", CreatedAt: dawn.Add(age)}
}

// networks returns the IDs of the known networks, from a listing of at most this age.
func (h *harness) networks(age time.Duration) []string {
	h.t.Helper()
	found, _, err := h.inv.Networks.Find(h.t.Context(), h.clock.Now().Add(-age), "", "net", "")
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
	h, from := newHarness(t), newCloud(network("b", time.Second), network("c", 0), network("a", 0))
	h.inv.Connect(from, nil)
	equal(t, "networks, oldest first", []string{"a", "c", "b"}, h.networks(0))
	h.clock.advance(10 * time.Second)
	equal(t, "networks", []string{"a", "c", "b"}, h.networks(10*time.Second))
	equal(t, "listings", 1, from.Sent(fake.ListNetworks))
	h.clock.advance(time.Second)
	from.RemoveNetworks("a", "c")
	equal(t, "networks of a newer listing", []string{"b"}, h.networks(10*time.Second))
	equal(t, "listings", 2, from.Sent(fake.ListNetworks))
}

func TestRecordedNetworksHideListingsBegunEarlier(t *testing.T) {
	h, from := newHarness(t), newCloud(network("a", 0), network("b", 0))
	h.inv.Connect(from, nil)
	h.networks(0)
	changed := network("a", 0)
	changed.Gateway = "-changed"
	h.inv.Networks.Record(changed)
	h.inv.Networks.Record(network("c", time.Second))
	h.inv.Networks.Forget("b")
	want := []string{"a-changed", "c"}
	equal(t, "networks", want, h.networks(time.Hour))

	h.clock.advance(time.Second)
	during := network("d", time.Minute)
	from.OnCall(func(context.Context, fake.Verb, string) { h.inv.Networks.Record(during) })
	equal(t, "networks of a listing begun later, and one that was recorded meanwhile", []string{"a", "b", "d"}, h.networks(0))
}

func TestNetworksDoesNotKeepAnErrorThatIsNoCloudError(t *testing.T) {
	h, from, failure := newHarness(t), newCloud(), errors.New("no cloud error")
	from.FailAlways(fake.ListNetworks, failure, false)
	h.inv.Connect(unclassified{from}, nil)
	if _, _, err := h.inv.Networks.Find(t.Context(), dawn, "", "net", ""); !errors.Is(err, failure) || cloud.KindOf(err) != "" {
		t.Errorf("got %v, want %v", err, failure)
	}
	from.Heal()
	h.networks(0)
	equal(t, "listings", 2, from.Sent(fake.ListNetworks))
}

func TestNetworksKeepsACloudErrorForThreeSeconds(t *testing.T) {
	h, from := newHarness(t), newCloud()
	failure := &cloud.Error{Kind: cloud.Unavailable, Op: "list networks", Detail: "connection refused"}
	from.FailAlways(fake.ListNetworks, failure, false)
	h.inv.Connect(from, nil)
	want := func(calls int) {
		t.Helper()
		if _, _, err := h.inv.Networks.Find(t.Context(), h.clock.Now(), "", "net", ""); !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
		equal(t, "calls", calls, from.Sent(fake.ListNetworks))
	}
	want(1)
	h.clock.advance(3*time.Second - 1)
	want(1)
	h.clock.advance(1)
	want(2)
	failure = &cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Minute}
	from.FailAlways(fake.ListNetworks, failure, false)
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
		old := newCloud(network("old", 0))
		delay(old, time.Second)
		h.inv.Connect(old, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.networks(0)
		}()
		synctest.Wait()
		h.inv.Disconnect()
		h.inv.Connect(newCloud(network("new", 0)), nil)
		<-done
		equal(t, "networks of the new connection", []string{"new"}, h.networks(time.Hour))
	})
}

func TestDisconnectDropsTheNetworks(t *testing.T) {
	h, from := newHarness(t), newCloud(network("a", 0))
	h.inv.Connect(from, nil)
	h.networks(0)
	h.inv.Networks.Record(network("b", 0))
	h.inv.Disconnect()
	if _, _, err := h.inv.Networks.Find(t.Context(), dawn, "", "net", ""); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("without a connection: %v, want Unavailable", err)
	}
	h.inv.Connect(newCloud(), nil)
	equal(t, "networks", []string(nil), h.networks(time.Hour))
}

func TestNetworksFindsByIDAndByName(t *testing.T) {
	called := func(id, name string) cloud.Network { return cloud.Network{ID: id, Name: name, CreatedAt: dawn} }
	h, from := settling(t), newCloud(called("a", "net"), called("b", " NET "), called("c", "other"), called("d", "gone"), called("e", "renamed"))
	h.inv.Connect(from, nil)
	want := func(what, id, name string, want ...string) {
		t.Helper()
		found, _, err := h.inv.Networks.Find(t.Context(), dawn, id, name, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range found {
			got = append(got, n.ID)
		}
		equal(t, what, want, got)
	}
	want("by a name: and those that are alike", "", "net", "a", "b")
	want("by another spelling of it", "", "Net", "a", "b")
	want("by an id", "c", "", "c")
	want("by an id and the name of others", "c", "net", "a", "b", "c")
	want("by an id and its own name: once", "a", "net", "a", "b")
	want("by a name that none has", "", "absent")
	h.inv.Networks.Forget("d")
	h.inv.Networks.Record(called("e", "net"))
	h.inv.Networks.RecordCreated(called("f", "Net"))
	want("by a name: recorded ones as well", "", "net", "a", "b", "e", "f")
	want("by a name that one had", "", "renamed")
	want("by a name of one that is gone", "d", "gone")
	h.inv.Networks.Record(called("f", "other"))
	want("by the name that one has now", "", "other", "c", "f")
	want("by the name that it had", "", "net", "a", "b", "e")
}
