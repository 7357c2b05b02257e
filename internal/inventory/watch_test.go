package inventory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

const pollInterval = 30 * time.Second

// watched is an inventory with servers, whose client watches them.
type watched struct {
	*harness
	client cloud.Client
}

// newWatched returns an inventory with servers that were listed, and of which the watch
// reported a full set as of the same time.
func newWatched(t *testing.T, servers ...cloud.Server) *watched {
	t.Helper()
	w := listedOnly(t, servers...)
	w.apply(cloud.Change{AsOf: w.clock.Now(), Complete: true, Servers: servers})
	w.later(time.Second)
	w.compare()
	w.takeEvents()
	w.pollRequests = nil
	return w
}

// listedOnly is newWatched before the watch reported anything.
func listedOnly(t *testing.T, servers ...cloud.Server) *watched {
	t.Helper()
	w := &watched{harness: newHarness(t), client: newCloud()}
	w.inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: 2 * time.Minute})
	w.inv.Connect(w.client, cloud.NewCapabilities(cloud.Events))
	w.inv.Polling()
	w.publish(servers...)
	return w
}

func (w *watched) apply(change cloud.Change) {
	w.t.Helper()
	if err := w.inv.Apply(w.client, change); err != nil {
		w.t.Fatalf("Apply: %v", err)
	}
}

func (w *watched) later(d time.Duration) { w.clock.advance(d) }

// compare publishes what was reported, as the reconcile of the Cloud does. It reports
// whether that was due.
func (w *watched) compare() bool {
	snap := w.inv.Reported()
	if snap != nil {
		w.inv.Publish(snap)
	}
	return snap != nil
}

// list lists the servers, as the reconcile of the Cloud does.
func (w *watched) listNow(servers ...cloud.Server) {
	w.t.Helper()
	w.inv.Polling()
	w.publish(servers...)
}

func (w *watched) wantServers(want ...string) {
	w.t.Helper()
	var got []string
	for s := range w.inv.View().Snapshot.All() {
		got = append(got, s.ID+" "+string(s.State))
	}
	slices.Sort(got)
	equal(w.t, "servers", want, got)
}

func updated(age time.Duration) func(*cloud.Server) {
	return func(s *cloud.Server) { s.UpdatedAt = dawn.Add(age) }
}

func TestApplyPublishesWhatChanged(t *testing.T) {
	w := newWatched(t, server("a", owned("uid-a", "c")), server("b"))
	asOf := w.clock.Now()
	w.apply(cloud.Change{AsOf: asOf, Servers: []cloud.Server{
		server("a", owned("uid-a", "c"), in(cloud.StateStopped)), server("b"),
		server("c", func(s *cloud.Server) {
			s.Labels = map[string]string{inventory.UIDLabel: "uid-c", inventory.NamespaceLabel: "ns", inventory.NameLabel: "c"}
		}),
	}})
	w.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"a", "c"}, Owners: []inventory.Ref{{Namespace: "ns", Name: "c"}}})
	w.wantServers("a STOPPED", "b ACTIVE", "c ACTIVE")
	equal(t, "owned by a", []string{"a"}, ids(w.inv.Owned("uid-a", "c")))
	equal(t, "named vm-c", []string{"c"}, ids(w.inv.Named("vm-c")))
	equal(t, "poll requests", []string(nil), w.pollRequests)
}

func TestBegunMovesOnlyAsFarAsReportsAreCompleteAndCompared(t *testing.T) {
	w := newWatched(t, server("a"), server("b"))
	begun := w.inv.View().Snapshot.Begun
	want := func(what string, at time.Time) {
		t.Helper()
		equal(t, "begun after "+what, at, w.inv.View().Snapshot.Begun)
	}
	w.later(time.Second)
	w.apply(cloud.Change{Servers: []cloud.Server{server("a", in(cloud.StateStopped))}})
	want("a change as of no time", begun)
	w.later(time.Second)
	w.apply(cloud.Change{AsOf: begun.Add(-time.Hour), Servers: []cloud.Server{server("a")}})
	want("a change as of an earlier time", begun)
	w.later(time.Second)
	first := w.clock.Now()
	w.apply(cloud.Change{AsOf: first})
	want("a change without servers", begun)
	w.later(pollInterval)
	w.compare()
	want("the comparison of a change without servers", first)
	w.later(time.Second)
	second := w.clock.Now()
	w.apply(cloud.Change{AsOf: second, Servers: []cloud.Server{server("a", in(cloud.StateStopped))}, Gone: []string{"b"}})
	want("an absence that was not compared", first)
	w.wantServers("a STOPPED", "b ACTIVE")
	w.compare()
	want("the comparison", second)
	w.wantServers("a STOPPED")
}

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

func TestReportsArePublishedAtMostEvery200Milliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events atomic.Int32
		dir := inventory.New(time.Now, "c")
		dir.Subscribe(func(inventory.Event) { events.Add(1) })
		inv, client := dir.Cloud("home"), newCloud()
		inv.Connect(client, cloud.NewCapabilities(cloud.Events))
		inv.Publish(mustList(t, client))
		events.Store(0)
		for n := range 100 {
			if err := inv.Apply(client, cloud.Change{Servers: []cloud.Server{server(fmt.Sprint(n))}}); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(time.Second)
		equal(t, "events of 100 changes within a second", int32(6), events.Load())
		equal(t, "servers", 100, inv.View().Snapshot.Len())
	})
}

func TestServerThatChangesAllTheTimeIsPublishedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var flaps, others atomic.Int32
		dir := inventory.New(time.Now, "c")
		dir.Subscribe(func(e inventory.Event) {
			if slices.Contains(e.Servers, "flaps") {
				flaps.Add(1)
			}
			if slices.Contains(e.Servers, "other") {
				others.Add(1)
			}
		})
		inv, client := dir.Cloud("home"), newCloud()
		client.AddServers(server("flaps"), server("other"))
		inv.Configure(inventory.Settings{PollInterval: time.Hour})
		inv.Connect(client, cloud.NewCapabilities(cloud.Events))
		inv.Publish(mustList(t, client))
		states := []cloud.State{cloud.StateStopped, cloud.StateActive}
		apply := func(id string, state cloud.State) {
			if err := inv.Apply(client, cloud.Change{Servers: []cloud.Server{server(id, in(state))}}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 6000 { // for a minute
			apply("flaps", states[n%2])
			<-time.After(10 * time.Millisecond)
		}
		if n := flaps.Load(); n < 20 || n > 30 {
			t.Errorf("%d events in a minute, want 10 at once and one each 3 s", n)
		}
		apply("flaps", cloud.StateError)
		apply("other", cloud.StateStopped)
		<-time.After(300 * time.Millisecond)
		equal(t, "events of another server", int32(1), others.Load())
		<-time.After(3 * time.Second)
		s, _ := inv.Server("flaps")
		equal(t, "state in the end", cloud.StateError, s.State)
		apply("flaps", cloud.StateActive)
		inv.WatchEnded(client)
		s, _ = inv.Server("flaps")
		equal(t, "state at the end of the watch", cloud.StateActive, s.State)
	})
}

func TestReportsThatWaitArePublishedAtMostEvery200Milliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events atomic.Int32
		dir := inventory.New(time.Now, "c")
		dir.Subscribe(func(inventory.Event) { events.Add(1) })
		inv, client := dir.Cloud("home"), newCloud()
		servers := make([]cloud.Server, 50)
		for n := range servers {
			servers[n] = server(fmt.Sprint(n))
		}
		client.AddServers(servers...)
		inv.Configure(inventory.Settings{PollInterval: time.Hour})
		inv.Connect(client, cloud.NewCapabilities(cloud.Events))
		inv.Publish(mustList(t, client))
		for n := range 100 { // one server after the other begins to change all the time
			changing := servers[:min(50, 1+n)]
			for i := range changing {
				changing[i].CPU++
			}
			if err := inv.Apply(client, cloud.Change{Servers: changing}); err != nil {
				t.Fatal(err)
			}
			<-time.After(217 * time.Millisecond)
		}
		events.Store(0)
		<-time.After(3 * time.Second)
		if n := events.Load(); n < 1 || n > 16 {
			t.Errorf("%d events in 3 s, want 1 to 16", n)
		}
		for _, s := range servers {
			got, _ := inv.Server(s.ID)
			equal(t, "CPU of server "+s.ID, s.CPU, got.CPU)
		}
	})
}

func TestReportThatWaitsIsNotNewerThanALaterListing(t *testing.T) {
	w := newWatched(t, server("a"))
	for n := range 30 {
		w.later(300 * time.Millisecond)
		w.apply(cloud.Change{Servers: []cloud.Server{server("a", func(s *cloud.Server) { s.CPU = n })}})
	}
	got, _ := w.inv.Server("a")
	if got.CPU == 29 {
		t.Fatal("the last report does not wait")
	}
	w.listNow(server("a", in(cloud.StateStopped)))
	w.later(pollInterval)
	w.apply(cloud.Change{Servers: []cloud.Server{server("b")}})
	w.wantServers("a STOPPED", "b ACTIVE")
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

func TestReportsAndAnswers(t *testing.T) {
	stopped, active := in(cloud.StateStopped), in(cloud.StateActive)
	for name, test := range map[string]struct {
		answer, report cloud.Server
		asOf           time.Duration // since the answer
		created        bool
		want           cloud.State
		differs        bool
	}{
		"as of a time after the answer: counts":                      {answer: server("a"), report: server("a", stopped), asOf: time.Second, want: cloud.StateStopped},
		"as of a time before the answer: hidden, and a listing soon": {answer: server("a"), report: server("a", stopped), asOf: -time.Second, want: cloud.StateActive, differs: true},
		"the same as the answer: no listing":                         {answer: server("a", active), report: server("a", active), asOf: -time.Second, want: cloud.StateActive},
		"changed later by the cloud's clock: counts": {
			answer: server("a", updated(1)), report: server("a", stopped, updated(2)), asOf: -time.Second, want: cloud.StateStopped,
		},
		"changed at the same time by the cloud's clock: hidden": {
			answer: server("a", updated(2)), report: server("a", stopped, updated(2)), asOf: -time.Second, want: cloud.StateActive, differs: true,
		},
		"changed earlier by the cloud's clock: hidden": {
			answer: server("a", updated(2)), report: server("a", stopped, updated(1)), asOf: -time.Second, want: cloud.StateActive, differs: true,
		},
		"the answer has no time: hidden": {answer: server("a"), report: server("a", stopped, updated(1)), asOf: -time.Second, want: cloud.StateActive, differs: true},
		"a created server changed later: counts": {
			answer: server("a", updated(1)), report: server("a", stopped, updated(2)), asOf: -time.Second, created: true, want: cloud.StateStopped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, server("b"))
			w.later(time.Minute)
			if test.created {
				w.inv.RecordCreated("uid", test.answer)
			} else {
				w.inv.RecordServer("uid", test.answer)
			}
			w.pollRequests = nil
			w.apply(cloud.Change{AsOf: w.clock.Now().Add(test.asOf), Servers: []cloud.Server{test.report}})
			got, _ := w.inv.Server("a")
			equal(t, "state", test.want, got.State)
			equal(t, "a listing is requested", test.differs, slices.Contains(w.pollRequests, "home 1s"))
			if test.differs {
				w.listNow(server("b"), test.report)
				w.later(time.Second)
				w.listNow(server("b"), test.report)
				got, _ = w.inv.Server("a")
				equal(t, "state after a listing", test.report.State, got.State)
			}
		})
	}
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

func TestApplyFails(t *testing.T) {
	many := make([]cloud.Server, 0, 110_000)
	for n := range cap(many) {
		many = append(many, server(fmt.Sprint(n)))
	}
	// wide returns changes of 40 servers that have a mebibyte each.
	wide := func(set func(s *cloud.Server, text string)) cloud.Change {
		var change cloud.Change
		for n := range 40 {
			change.Servers = append(change.Servers, server(fmt.Sprint(n), func(s *cloud.Server) { set(s, mebibyte) }))
		}
		return change
	}
	for name, test := range map[string]struct {
		with   func(w *watched)
		change cloud.Change
		kind   cloud.Kind
	}{
		"another client is connected":    {with: func(w *watched) { w.inv.Connect(newCloud(), nil) }, kind: cloud.Unavailable},
		"the Cloud is gone":              {with: func(w *watched) { w.dir.Remove("home") }, kind: cloud.Unavailable},
		"too many servers in changes":    {change: cloud.Change{Servers: many}, kind: cloud.Unreadable},
		"too many servers in a full set": {change: cloud.Change{AsOf: dawn, Complete: true, Servers: many}, kind: cloud.Unreadable},
		"too much memory":                {change: wide(func(s *cloud.Server, text string) { s.Folder = text }), kind: cloud.Unreadable},
		"too much memory of addresses":   {change: wide(func(s *cloud.Server, text string) { s.Interfaces = cloud.Interfaces(text) }), kind: cloud.Unreadable},
		"too many servers gone in changes": {change: cloud.Change{Gone: func() (all []string) {
			for n := range 110_000 {
				all = append(all, fmt.Sprint("g", n))
			}
			return all
		}()}, kind: cloud.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, server("a"))
			if test.with != nil {
				test.with(w)
			}
			err := w.inv.Apply(w.client, test.change)
			equal(t, "kind", test.kind, cloud.KindOf(err))
		})
	}
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

// Snapshots are read without a lock.
func TestReportsDoNotWriteToAPublishedSnapshot(t *testing.T) {
	w := newWatched(t, server("a", owned("uid-a", "c")))
	snap, read := w.inv.View().Snapshot, make(chan int)
	go func() {
		n := 0
		for range 1000 {
			for s := range snap.All() {
				n += len(s.Labels)
			}
		}
		read <- n
	}()
	for range 1000 {
		w.apply(cloud.Change{Servers: []cloud.Server{server("a", owned("uid-a", "c"))}})
	}
	equal(t, "labels", 2000, <-read)
}

func TestReportsThatExceedTheSnapshotEndTheWatch(t *testing.T) {
	all := make([]cloud.Server, 0, 100_000)
	for n := range cap(all) {
		all = append(all, server(fmt.Sprint(n)))
	}
	w := newWatched(t, all...)
	w.inv.Polling()
	w.listNow(all...)
	w.later(pollInterval * 11 / 10)
	w.compare()
	err := w.inv.Apply(w.client, cloud.Change{Servers: []cloud.Server{server("one too many")}})
	equal(t, "kind", cloud.Unreadable, cloud.KindOf(err))
	equal(t, "time until a listing", time.Duration(0), w.inv.NextPoll())
}
