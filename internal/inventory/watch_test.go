package inventory_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
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
