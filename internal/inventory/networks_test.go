package inventory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

// newNetworks returns a cloud with networks.
func newNetworks(networks ...cloud.Network) *fake.Cloud {
	c := fake.New(fake.Options{Capabilities: cloud.NewCapabilities(cloud.Networks)})
	c.AddNetworks(networks...)
	return c
}

func network(id string, age time.Duration) cloud.Network {
	return cloud.Network{ID: id, Name: "net-" + id, CreatedAt: dawn.Add(age)}
}

// networks returns the ids of the networks that are known, from a listing of at
// most this age.
func (h *house) networks(age time.Duration) []string {
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

func TestNetworksAreListedOnceForAll(t *testing.T) {
	h, from := newHouse(t), newNetworks(network("b", time.Second), network("c", 0), network("a", 0))
	h.inv.Connect(from, nil)
	equal(t, "networks, oldest first", []string{"a", "c", "b"}, h.networks(0))
	h.clock.advance(10 * time.Second)
	equal(t, "networks", []string{"a", "c", "b"}, h.networks(10*time.Second))
	equal(t, "listings", 1, from.Sent(fake.ListNetworks))
	h.clock.advance(time.Second)
	from.RemoveNetworks("c", "a")
	equal(t, "networks of a newer listing", []string{"b"}, h.networks(10*time.Second))
	equal(t, "listings", 2, from.Sent(fake.ListNetworks))
}

func TestWhatWeDidToNetworksIsSeenUntilAListingBegunLater(t *testing.T) {
	h, from := newHouse(t), newNetworks(network("a", 0), network("b", 0))
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
	from.OnCall(func(context.Context, fake.Verb, string) { h.inv.RecordNetwork(during) })
	equal(t, "networks of a listing begun later, and one made while it was under way", []string{"a", "b", "d"}, h.networks(0))
}

func TestAFailedListingOfNetworksIsToldAndNotHeld(t *testing.T) {
	h, from := newHouse(t), newNetworks()
	away := errors.New("away")
	from.Fail(fake.ListNetworks, away, false)
	h.inv.Connect(from, nil)
	if _, err := h.inv.Networks(t.Context(), dawn); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	h.networks(0)
	equal(t, "listings", 2, from.Sent(fake.ListNetworks))
}

func TestNetworksOfAnEarlierConnectionAreForgotten(t *testing.T) {
	h, from := newHouse(t), newNetworks(network("a", 0))
	h.inv.Connect(from, nil)
	h.networks(0)
	h.inv.RecordNetwork(network("b", 0))
	h.inv.Disconnect()
	if _, err := h.inv.Networks(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("without a connection: %v, want Unavailable", err)
	}
	h.inv.Connect(newNetworks(), nil)
	equal(t, "networks", []string(nil), h.networks(time.Hour))
}
