package inventory_test

import (
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestAbsenceIsPublishedOnceItIsCompared(t *testing.T) {
	w := newWatched(t, server("a"), server("b"), server("c"))
	if w.compare() {
		t.Fatal("a comparison is due although nothing was reported")
	}
	w.later(time.Second)
	w.apply(cloud.Change{Gone: []string{"a", "never-listed"}})
	w.wantEvents()
	w.wantServers("a ACTIVE", "b ACTIVE", "c ACTIVE")
	equal(t, "poll requests", []string{"home 200ms"}, w.pollRequests)
	if !w.compare() {
		t.Fatal("no comparison is due")
	}
	w.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"a"}})
	w.wantServers("b ACTIVE", "c ACTIVE")

	w.later(200 * time.Millisecond)
	w.apply(cloud.Change{Gone: []string{"b"}})
	if w.compare() {
		t.Fatal("two comparisons within a second")
	}
	w.later(time.Second)
	w.compare()
	w.wantServers("c ACTIVE")
}

func TestComparisonThatWasNotPublishedIsDueAgain(t *testing.T) {
	w := newWatched(t, server("a"), server("b"))
	w.later(time.Second)
	w.apply(cloud.Change{Gone: []string{"a"}})
	if w.inv.Reported() == nil {
		t.Fatal("no comparison is due")
	}
	w.later(time.Second)
	w.compare()
	w.wantServers("b ACTIVE")

	w.apply(cloud.Change{AsOf: w.clock.Now(), Complete: true, Servers: []cloud.Server{server("c")}})
	w.later(time.Second)
	if w.inv.Reported() == nil {
		t.Fatal("no comparison of the full set is due")
	}
	w.apply(cloud.Change{Servers: []cloud.Server{server("d")}})
	w.later(time.Second)
	w.compare()
	w.wantServers("c ACTIVE", "d ACTIVE")
}

func TestFullSetIsComparedWithWhatChangedSince(t *testing.T) {
	w := newWatched(t, server("a"), server("b"), server("gone"))
	w.later(time.Second)
	asOf := w.clock.Now()
	w.apply(cloud.Change{AsOf: asOf, Complete: true, More: true, Servers: []cloud.Server{server("a"), server("b")}})
	w.apply(cloud.Change{AsOf: asOf, Complete: true, Servers: []cloud.Server{server("c")}})
	w.apply(cloud.Change{AsOf: asOf.Add(time.Second), Servers: []cloud.Server{server("b", in(cloud.StateStopped)), server("d")}, Gone: []string{"c"}})
	w.wantServers("a ACTIVE", "b STOPPED", "d ACTIVE", "gone ACTIVE")
	w.takeEvents()
	w.later(time.Second)
	w.compare()
	w.wantServers("a ACTIVE", "b STOPPED", "d ACTIVE")
	w.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"gone"}})
	equal(t, "begun", asOf.Add(time.Second), w.inv.View().Snapshot.Begun)
}

func TestFullSetOlderThanTheListingIsNotCompared(t *testing.T) {
	w := listedOnly(t, server("a"))
	w.later(time.Second)
	w.listNow(server("a"), server("b"))
	w.apply(cloud.Change{AsOf: dawn, Complete: true, Servers: []cloud.Server{server("a")}})
	w.later(time.Second)
	w.compare()
	w.wantServers("a ACTIVE", "b ACTIVE")
}

func TestAbsenceOfACreatedServerWaitsForTheSettleTime(t *testing.T) {
	w := newWatched(t, server("b"))
	w.inv.RecordCreated("uid", server("a", updated(1)))
	w.apply(cloud.Change{Servers: []cloud.Server{server("a", updated(2))}})
	w.later(time.Second)
	w.apply(cloud.Change{AsOf: w.clock.Now(), Gone: []string{"a"}})
	w.compare()
	w.wantServers("b ACTIVE")
	if _, known := w.inv.Server("a"); !known {
		t.Error("a server that was created a moment ago is not known any more")
	}
	w.later(2 * time.Minute)
	w.listNow(server("b"))
	if _, known := w.inv.Server("a"); known {
		t.Error("the server is known after the settle time")
	}
}

func TestAbsenceOfADeletedServerEndsItsRecord(t *testing.T) {
	w := newWatched(t, server("a"), server("b"))
	w.inv.RecordServer("uid", server("a", in(cloud.StateDeleting)))
	w.later(time.Second)
	w.apply(cloud.Change{Gone: []string{"a"}})
	w.compare()
	if s, known := w.inv.Server("a"); known {
		t.Errorf("known: %+v", s)
	}
}

// A server can appear and disappear before any snapshot has it, but for the listing that
// is under way.
func TestAbsenceOfAServerThatOnlyTheNextSnapshotHas(t *testing.T) {
	w := newWatched(t, server("a"))
	w.inv.Polling()
	snap := w.list(time.Second, server("a"), server("new"))
	w.apply(cloud.Change{Gone: []string{"new"}})
	w.inv.Publish(snap)
	w.later(2 * time.Second)
	equal(t, "time until a comparison", time.Duration(0), w.inv.NextPoll())
	w.compare()
	w.wantServers("a ACTIVE")
}
