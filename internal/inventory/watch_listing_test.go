package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestListingHasWhatWasReportedWhileItWasMade(t *testing.T) {
	w := newWatched(t, server("a"), server("b"), server("c"))
	w.inv.Polling()
	listing := w.list(time.Second, server("a"), server("b"), server("c"))
	w.apply(cloud.Change{Servers: []cloud.Server{server("a", in(cloud.StateStopped)), server("d")}, Gone: []string{"c"}})
	w.inv.Publish(listing)
	w.wantServers("a STOPPED", "b ACTIVE", "c ACTIVE", "d ACTIVE")
	w.later(time.Second)
	w.compare()
	w.wantServers("a STOPPED", "b ACTIVE", "d ACTIVE")

	w.later(time.Minute)
	w.listNow(server("a"), server("b"))
	w.wantServers("a ACTIVE", "b ACTIVE") // the listing is newer than the reports
}

// TestReportedServerIsNotListed: reads may lag behind what a watch reports.
func TestReportedServerIsNotListed(t *testing.T) {
	w := newWatched(t, server("a"))
	listed := func(id string) bool {
		_, ok := w.inv.Listed(w.inv.View().Snapshot, id)
		return ok
	}
	for range 2 {
		w.apply(cloud.Change{Servers: []cloud.Server{server("a"), server("b")}, AsOf: w.clock.Now()})
		w.later(time.Minute)
		equal(t, "listed: reported again", true, listed("a"))
		equal(t, "reported only", false, listed("b"))
	}
	w.listNow(server("a"), server("b"))
	equal(t, "reported, and then listed", true, listed("b"))
	w.apply(cloud.Change{Servers: []cloud.Server{server("b")}, AsOf: w.clock.Now()})
	w.later(time.Minute)
	equal(t, "listed, and then reported", true, listed("b"))
}

func TestWatchedServersAreListedLessOften(t *testing.T) {
	between := func(w *watched, what string, low, high time.Duration) {
		t.Helper()
		// Comparisons, which need no call, are due each poll interval.
		var due time.Duration
		w.inv.Polling()
		for due = 0; due <= high; due += time.Second {
			w.compare()
			if w.inv.NextPoll() == 0 && w.inv.Reported() == nil {
				break
			}
			w.later(time.Second)
		}
		if due < low || due > high {
			t.Errorf("%s: the next listing is due after %s, want %s to %s", what, due, low, high)
		}
	}
	w := newWatched(t, server("a"))
	between(w, "with a watch", 9*pollInterval, 11*pollInterval+time.Second)
	w.inv.RecordServer("uid", server("a", in(cloud.StateBuilding)))
	between(w, "with an answer that hides the snapshot", pollInterval*9/10, pollInterval*11/10+time.Second)
	w.listNow(server("a"))
	w.inv.EnqueueAfterListing(inventory.Ref{Name: "x"}, w.clock.Now().Add(time.Hour))
	between(w, "with an object that waits", time.Second, 5*time.Second)

	w = newWatched(t, server("a"))
	w.inv.WatchEnded(w.client)
	between(w, "after the watch ended", pollInterval*9/10, pollInterval*11/10+time.Second)
	w = listedOnly(t, server("a"))
	between(w, "before the full set", pollInterval*9/10, pollInterval*11/10+time.Second)

	w = newWatched(t, server("a"))
	w.inv.Connect(w.client, cloud.NewCapabilities(cloud.Events, cloud.BulkStatus))
	w.apply(cloud.Change{AsOf: w.clock.Now(), Complete: true, Servers: []cloud.Server{server("a")}})
	w.later(time.Second)
	w.compare()
	between(w, "with utilization in the listing", time.Minute, time.Minute+time.Second)
	w.inv.Configure(inventory.Settings{PollInterval: 10 * time.Minute, SettleTime: 2 * time.Minute})
	w.listNow(server("a"))
	between(w, "with utilization in the listing and a longer poll interval", 9*time.Minute, 11*time.Minute+time.Second)
}

func TestEndOfAWatchRequestsAListing(t *testing.T) {
	w := newWatched(t, server("a"))
	w.inv.Polling()
	w.apply(cloud.Change{Gone: []string{"a"}})
	w.pollRequests = nil
	w.later(time.Second)
	w.inv.WatchEnded(newCloud()) // of another client
	equal(t, "poll requests", []string(nil), w.pollRequests)
	w.inv.WatchEnded(w.client)
	equal(t, "poll requests", []string{"home 1s"}, w.pollRequests)
	if w.compare() {
		t.Error("an absence is compared although the watch ended")
	}
}

func TestReportsServeWhatWaitsForAListing(t *testing.T) {
	w := newWatched(t, server("a"))
	ref := inventory.Ref{Name: "x"}
	since := w.clock.Now().Add(time.Second)
	w.inv.EnqueueAfterListing(ref, since)
	w.apply(cloud.Change{AsOf: since.Add(-1)})
	w.later(time.Second)
	equal(t, "compared", false, w.compare())
	w.pollRequests = nil
	w.apply(cloud.Change{AsOf: since})
	equal(t, "poll requests", []string{"home 200ms"}, w.pollRequests)
	w.takeEvents()
	equal(t, "compared", true, w.compare())
	w.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})
}

func TestWatchCannotBeginBeforeTheFirstListing(t *testing.T) {
	h, client := newHarness(t), newCloud()
	h.inv.Connect(client, nil)
	err := h.inv.Apply(client, cloud.Change{AsOf: dawn, Complete: true})
	equal(t, "kind", cloud.Unavailable, cloud.KindOf(err))
}

// What was reported one by one is the same as a listing of the result.
func TestReportsAmountToAListing(t *testing.T) {
	states := []cloud.State{cloud.StateActive, cloud.StateBuilding, cloud.StateStopped}
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		servers := map[string]cloud.Server{}
		anyServer := func(id string) cloud.Server {
			return server(id, named(fmt.Sprint("n", random.IntN(5))), in(states[random.IntN(3)]), func(s *cloud.Server) {
				s.Host = fmt.Sprint("h", random.IntN(2))
				if random.IntN(3) > 0 {
					owned(fmt.Sprint("uid", random.IntN(5)), "c")(s)
				}
			})
		}
		all := func() (found []cloud.Server) {
			for _, s := range servers {
				found = append(found, s)
			}
			return found
		}
		for n := range random.IntN(8) {
			servers[fmt.Sprint(n)] = anyServer(fmt.Sprint(n))
		}
		w := newWatched(t, all()...)
		for range 30 {
			change := cloud.Change{}
			for range random.IntN(3) {
				id := fmt.Sprint(random.IntN(8))
				if _, exists := servers[id]; exists && random.IntN(3) == 0 {
					delete(servers, id)
					change.Gone = append(change.Gone, id)
					change.Servers = slices.DeleteFunc(change.Servers, func(s cloud.Server) bool { return s.ID == id })
				} else if !slices.Contains(change.Gone, id) {
					servers[id] = anyServer(id)
					change.Servers = append(change.Servers, servers[id])
				}
			}
			w.later(time.Second)
			w.apply(change)
			w.compare()
		}
		w.later(pollInterval) // after which a server is compared that changes often
		w.compare()
		other := newHarness(t)
		other.publish(all()...)
		for n := range 5 {
			key := fmt.Sprint("uid", n)
			equal(t, key, ids(other.inv.Owned(key, "c")), ids(w.inv.Owned(key, "c")))
			key = fmt.Sprint("n", n)
			equal(t, key, ids(other.inv.Named(key)), ids(w.inv.Named(key)))
		}
		for id := range servers {
			want, _ := other.inv.Server(id)
			got, _ := w.inv.Server(id)
			equal(t, "server "+id, want, got)
		}
		equal(t, "servers", len(servers), w.inv.View().Snapshot.Len())
	}
}

func mustList(t *testing.T, from *fake.Cloud) *inventory.Snapshot {
	t.Helper()
	snap, err := inventory.List(t.Context(), from, time.Now)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	return snap
}
