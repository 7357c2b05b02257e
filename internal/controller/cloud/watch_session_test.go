package cloud

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestLostSessionBeginsWithAFullSet(t *testing.T) {
	vms, servers := fleet()
	w := newWatchedWorld(t, home(), servers, vms...)
	w.advance(time.Hour)
	w.later()
	w.cloud.FailAlways(cloudfake.Watch, errRefused, false)
	w.cloud.EndWatches()
	w.eventually("the watch ended", func() bool { return testutil.ToFloat64(w.kind.gauge.watching.WithLabelValues("home")) == 0 })
	w.cloud.RemoveServers("v00", "v01", "v02")
	w.cloud.TakeCalls()
	w.cloud.Heal(cloudfake.Watch)
	w.eventually("the watch runs", func() bool { return testutil.ToFloat64(w.kind.gauge.watching.WithLabelValues("home")) == 1 })
	w.advance(2 * time.Second)
	w.reconcile()
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 3 servers")
}

func TestCloudIsListedWhileItsWatchFails(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")}, vm("a"))
	w.cloud.FailAlways(cloudfake.Watch, errRefused, false)
	w.cloud.EndWatches()
	w.eventually("the watch ended", func() bool { return testutil.ToFloat64(w.kind.gauge.watching.WithLabelValues("home")) == 0 })
	w.later()
	w.cloud.TakeCalls()
	for range 3 {
		w.later()
	}
	equal(t, "listings", 3, strings.Count(strings.Join(w.cloud.TakeCalls(cloudfake.Watch), " "), "list"))
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}

func TestWatchEndsWithItsClient(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"the Cloud is paused": func(w *world) {
			w.edit(func(c *pcapi.Cloud) { c.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} })
			w.reconcile()
		},
		"the Cloud is deleted": func(w *world) {
			c := w.stored()
			if err := w.client.Delete(w.t.Context(), c); err != nil {
				w.t.Fatal(err)
			}
			w.reconcile()
		},
		"the Cloud gets another client": func(w *world) {
			w.cloud = newCloud(nil, server("a"))
			w.edit(func(c *pcapi.Cloud) { c.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"} })
			w.reconcile()
		},
		"the process ends": func(w *world) {
			ctx, cancel := context.WithCancel(w.t.Context())
			cancel()
			if err := w.kind.watches.Start(ctx); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchedWorld(t, home(), []cloud.Server{server("a")})
			watched := w.cloud
			equal(t, "watches", 1, watched.Watchers())
			end(w)
			w.eventually("the watch ends", func() bool { return watched.Watchers() == 0 })
		})
	}
}

func TestNewClientIsWatchedOnceItListed(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")})
	old := w.cloud
	w.cloud = newCloud(withEvents, server("b"))
	w.cloud.FailAlways(cloudfake.ListServers, errRefused, false)
	w.edit(func(c *pcapi.Cloud) { c.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"} })
	w.reconcile()
	w.eventually("the watch with the old client ends", func() bool { return old.Watchers() == 0 })
	w.later()
	equal(t, "watches with the new client", 0, w.cloud.Sent(cloudfake.Watch))
	equal(t, "watch_running", float64(0), testutil.ToFloat64(w.kind.gauge.watching.WithLabelValues("home")))
	w.cloud.Heal()
	w.later()
	w.eventually("the watch with the new client runs", func() bool { return w.cloud.Watchers() == 1 })
	w.cloud.FailAlways(cloudfake.ListServers, errRefused, false)
	w.advance(time.Hour)
	w.later()
	equal(t, "watches while listings fail", 1, w.cloud.Watchers())
}

func TestWatchOfAPausedCloudGoesOnWithIt(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")})
	w.edit(func(c *pcapi.Cloud) { c.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} })
	w.reconcile()
	w.eventually("the watch ends", func() bool { return w.cloud.Watchers() == 0 })
	w.edit(func(c *pcapi.Cloud) { c.Annotations = nil })
	w.reconcile()
	w.eventually("the watch runs", func() bool { return w.cloud.Watchers() == 1 })
}

func TestCloudWithoutEventsIsNotWatched(t *testing.T) {
	w := newWorld(t, home(), newCloud(nil, server("a")))
	w.reconcile()
	w.later()
	equal(t, "watches", 0, w.cloud.Sent(cloudfake.Watch))
	equal(t, "listings", 2, w.cloud.Sent(cloudfake.ListServers))
}

// scripted is a watcher whose watches last for a time, and then fail.
type scripted struct {
	cloud.Client
	// set is how long the full set takes, and lasts how long the watch goes on after it.
	set, lasts time.Duration
	fails      error
	began      []time.Duration
	since      time.Time
}

func (s *scripted) Watch(ctx context.Context, report func(cloud.Change) error) error {
	s.began = append(s.began, time.Since(s.since))
	if s.lasts == 0 {
		return s.fails
	}
	began := time.Now()
	wait(ctx, s.set)
	if err := report(cloud.Change{AsOf: began, Complete: true}); err != nil {
		return err
	}
	wait(ctx, s.lasts)
	return s.fails
}

func TestPauseBetweenWatches(t *testing.T) {
	t.Parallel()
	throttled := &cloud.Error{Kind: cloud.Throttled, RetryAfter: 5 * time.Minute}
	for name, test := range map[string]struct {
		set   time.Duration
		lasts time.Duration
		fails error
		// most is how many watches begin within an hour at most, and least at least.
		least, most int
	}{
		"each fails":                       {fails: errRefused, least: 40, most: 130},
		"each fails, and asks for a pause": {fails: throttled, least: 11, most: 13},
		"each ends at once":                {lasts: time.Millisecond, fails: errRefused, least: 40, most: 130},
		"each lasts for 8 s":               {lasts: 8 * time.Second, fails: errRefused, least: 350, most: 430},
		"each ends after a long full set":  {set: 30 * time.Second, lasts: time.Millisecond, fails: errRefused, least: 20, most: 50},
		"each lasts after a long full set": {set: 30 * time.Second, lasts: 10 * time.Minute, fails: errRefused, least: 5, most: 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{set: test.set, lasts: test.lasts, fails: test.fails, since: time.Now()}
				inv := inventory.New(time.Now, "here").Cloud("home")
				inv.Connect(s, withEvents)
				inv.Publish(&inventory.Snapshot{Begun: time.Now()})
				all := newWatches(nil, newGauges(prometheus.NewRegistry()))
				all.keep("home", inv, s, s)
				wait(t.Context(), time.Hour)
				all.shutDown()
				if n := len(s.began); n < test.least || n > test.most {
					t.Errorf("%d watches in an hour, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

func TestOnlyALeaderWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lasts: time.Hour, fails: errRefused, since: time.Now()}
		inv := inventory.New(time.Now, "here").Cloud("home")
		inv.Connect(s, withEvents)
		inv.Publish(&inventory.Snapshot{Begun: time.Now()})
		var leading atomic.Bool
		all := newWatches(leading.Load, newGauges(prometheus.NewRegistry()))
		all.keep("home", inv, s, s)
		wait(t.Context(), 10*time.Minute)
		began := time.Now()
		leading.Store(true)
		wait(t.Context(), 2*time.Minute)
		all.shutDown()
		equal(t, "watches", 1, len(s.began))
		if s.began[0] < began.Sub(s.since) {
			t.Error("the watch began before this process led")
		}
	})
}

func TestMetricsOfAWatchGoWithTheCloud(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")})
	w.reported(1, func() { w.cloud.ModifyServer("a", func(s *cloud.Server) { s.CPU = 8 }) })
	if err := w.client.Delete(t.Context(), w.stored()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.eventually("the watch ends", func() bool { return w.cloud.Watchers() == 0 })
	equal(t, "series", 0, testutil.CollectAndCount(w.kind.gauge.watching)+testutil.CollectAndCount(w.kind.gauge.changes))
}

// lingering is a watcher whose watches end some time after their context.
type lingering struct {
	scripted
	linger     time.Duration
	open, most atomic.Int32
}

func (l *lingering) Watch(ctx context.Context, report func(cloud.Change) error) error {
	l.most.Store(max(l.most.Load(), l.open.Add(1)))
	defer l.open.Add(-1)
	err := l.scripted.Watch(ctx, report)
	<-time.After(l.linger)
	return err
}

// The end of a watch with a client must not end what the next one with it reported.
func TestWatchBeginsAfterTheEndOfTheLastOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lingering{scripted: scripted{lasts: time.Hour, fails: errRefused, since: time.Now()}, linger: 5 * time.Second}
		inv := inventory.New(time.Now, "here").Cloud("home")
		inv.Connect(l, withEvents)
		inv.Configure(inventory.Settings{PollInterval: pollInterval})
		inv.Polling()
		inv.Publish(&inventory.Snapshot{Begun: time.Now()})
		all := newWatches(nil, newGauges(prometheus.NewRegistry()))
		all.keep("home", inv, l, l)
		wait(t.Context(), time.Second)
		for range 3 {
			all.stop("home")
			all.keep("home", inv, l, l)
		}
		wait(t.Context(), time.Minute)
		inv.Polling() // the listing that the end of the first watch requested
		if inv.Reported() == nil {
			t.Error("what the second watch reports is not taken")
		}
		all.shutDown()
		equal(t, "watches at a time", int32(1), l.most.Load())
	})
}
