package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

const settleTime = 2 * time.Minute

func settling(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.inv.Configure(inventory.Settings{PollInterval: interval, SettleTime: settleTime})
	return h
}

// wantKnown checks whether the server a is known, as a server of u.
func (h *harness) wantKnown(when string, want ...cloud.Server) {
	h.t.Helper()
	got, known := h.inv.Server("a")
	if known != (len(want) > 0) {
		h.t.Errorf("%s: server a is known: %t, want %t", when, known, len(want) > 0)
		return
	}
	if known {
		equal(h.t, when+": server a", want[0], got)
	}
	var owned []string
	if known {
		owned = []string{"a"}
	}
	equal(h.t, when+": servers of u", owned, ids(h.inv.Owned("u", "c")))
}

func TestCreatedServerIsKnownUntilTheSettleTimeHasPassed(t *testing.T) {
	h := settling(t)
	created := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.publish()
	h.inv.RecordCreated("u", created)
	for range 4 {
		h.clock.advance(settleTime/4 - 1)
		h.publish()
		h.wantKnown("a listing lacks it before the settle time has passed", created)
	}
	h.clock.advance(3)
	before := h.list(time.Second)
	h.inv.Publish(before)
	h.wantKnown("a listing begun just before that lacks it", created)
	h.takeEvents()
	h.clock.advance(1)
	h.publish()
	h.wantKnown("a listing begun then lacks it")
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"a"}})
}

func TestCreatedServerIsAsListedOnceItIsListed(t *testing.T) {
	h := settling(t)
	created, active := server("a", owned("u", "c"), in(cloud.StateBuilding)), server("a", owned("u", "c"))
	h.inv.RecordCreated("u", created)
	h.clock.advance(time.Second)
	h.publish()
	h.takeEvents()
	h.clock.advance(time.Second)
	h.publish(active)
	h.wantKnown("listed", active)
	equal(t, "its object is enqueued", "a", h.takeEvents()[0].Servers[0])

	h.clock.advance(time.Second)
	h.publish()
	h.wantKnown("a replica of the cloud that lags behind lacks it", active)
	h.clock.advance(time.Second)
	stopped := server("a", owned("u", "c"), in(cloud.StateStopped))
	h.publish(stopped)
	h.wantKnown("listed again", stopped)
	h.clock.advance(settleTime)
	h.publish(stopped)
	h.wantKnown("after the settle time", stopped)
	h.clock.advance(time.Second)
	h.publish()
	h.wantKnown("gone after the settle time")
}

func TestLaterAnswersKeepTheSettleTimeOfACreatedServer(t *testing.T) {
	h := settling(t)
	h.inv.RecordCreated("u", server("a", in(cloud.StateBuilding)))
	h.clock.advance(time.Second)
	h.publish()
	active := server("a")
	h.inv.RecordServer("u", active)
	h.clock.advance(settleTime - 2*time.Second)
	h.publish()
	h.wantKnown("just before the settle time has passed since the create", active)
	h.clock.advance(time.Second)
	h.publish()
	h.wantKnown("the settle time has passed since the create, not since the later answer")
}

func TestWhatEndsTheRecordOfACreatedServer(t *testing.T) {
	tests := []struct {
		name string
		act  func(h *harness)
		gone bool
	}{
		{name: "nothing: it is kept", act: func(*harness) {}},
		{name: "the cloud said that it is gone: at once", act: func(h *harness) { h.inv.ForgetServer("a") }, gone: true},
		{name: "its deletion began and a listing lacks it", act: func(h *harness) { h.inv.RecordServer("u", server("a", in(cloud.StateDeleting))) }, gone: true},
		{name: "it was listed as deleting and a listing lacks it", act: func(h *harness) {
			h.clock.advance(time.Second)
			h.publish(server("a", owned("u", "c"), in(cloud.StateDeleting)))
		}, gone: true},
		{name: "the Cloud is disconnected", act: func(h *harness) { h.inv.Disconnect() }, gone: true},
		{name: "the settle time was made shorter", act: func(h *harness) { h.inv.Configure(inventory.Settings{}) }, gone: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := settling(t)
			h.inv.RecordCreated("u", server("a"))
			tc.act(h)
			h.clock.advance(time.Second)
			h.publish()
			_, known := h.inv.Server("a")
			equal(t, "gone", tc.gone, !known)
		})
	}
}

// TestCreatedServerIsNeverUnknownBeforeTheSettleTime lists at random times, with
// and without the server, and with answers on it between the listings.
func TestCreatedServerIsNeverUnknownBeforeTheSettleTime(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 10))
			h := settling(t)
			h.inv.RecordCreated("u", server("a", owned("u", "c")))
			created := h.clock.Now()
			for h.clock.Now().Sub(created) < settleTime+time.Minute {
				h.clock.advance(time.Duration(random.Int64N(int64(20 * time.Second))))
				begun, shown := h.clock.Now(), random.IntN(2) == 0
				var servers []cloud.Server
				if shown {
					servers = append(servers, server("a", owned("u", "c")))
				}
				snap := h.list(time.Duration(random.Int64N(int64(3*time.Second))), servers...)
				answered := random.IntN(4) == 0
				if answered {
					h.inv.RecordServer("u", server("a", owned("u", "c")))
				}
				h.inv.Publish(snap)
				want := shown || answered || begun.Before(created.Add(settleTime))
				if _, known := h.inv.Server("a"); known != want {
					t.Fatalf("%v after the create: known %t, want %t (listed %t, answered %t)", begun.Sub(created), known, want, shown, answered)
				}
				equal(t, "servers of u", want, len(h.inv.Owned("u", "c")) == 1)
			}
		})
	}
}

func TestCreatedNetworkIsKnownUntilTheSettleTimeHasPassed(t *testing.T) {
	h, from := settling(t), newCloud()
	h.inv.Connect(from, nil)
	h.inv.Networks.RecordCreated(network("a", 0))
	h.inv.Networks.Record(network("b", 0))
	h.clock.advance(time.Second)
	equal(t, "networks of a listing that lacks both", []string{"a"}, h.networks(0))
	changed := network("a", 0)
	changed.Gateway = "-changed"
	h.inv.Networks.Record(changed)
	h.clock.advance(time.Second)
	equal(t, "networks after a later answer", []string{"a-changed"}, h.networks(0))
	listed := network("a", 0)
	listed.Gateway = "-listed"
	from.SetNetworks(listed)
	h.clock.advance(time.Second)
	equal(t, "networks once it is listed", []string{"a-listed"}, h.networks(0))
	from.SetNetworks()
	h.clock.advance(settleTime - 3*time.Second - 1)
	equal(t, "networks of a listing that lacks it, just before the settle time has passed", []string{"a-listed"}, h.networks(0))
	h.clock.advance(1)
	equal(t, "networks of a listing that lacks it then", []string(nil), h.networks(0))
}

func TestForgottenNetworkIsNotKept(t *testing.T) {
	h, from := settling(t), newCloud(network("a", 0))
	h.inv.Connect(from, nil)
	h.inv.Networks.RecordCreated(network("a", 0))
	h.clock.advance(time.Second)
	h.networks(0)
	h.inv.Networks.Forget("a")
	equal(t, "networks", []string(nil), h.networks(time.Hour))
	from.SetNetworks()
	h.clock.advance(time.Second)
	equal(t, "networks of a later listing", []string(nil), h.networks(0))
}

func TestNetworksReturnsTheBeginOfItsListing(t *testing.T) {
	h, from := settling(t), newCloud()
	h.inv.Connect(from, nil)
	want := func(when string, notBefore, begun time.Time) {
		t.Helper()
		_, got, err := h.inv.Networks.Find(t.Context(), notBefore, "", "", "")
		if err != nil {
			t.Fatalf("Networks: %v", err)
		}
		equal(t, when, begun, got)
	}
	want("listed now", dawn, dawn)
	h.clock.advance(time.Minute)
	want("listed before, and new enough", dawn, dawn)
	want("listed anew", dawn.Add(time.Second), dawn.Add(time.Minute))
	equal(t, "listings", 2, from.Sent(fake.ListNetworks))
}
