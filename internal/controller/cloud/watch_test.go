package cloud

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

var withEvents = cloud.NewCapabilities(cloud.Events)

// newWatchedWorld returns a world whose cloud reports changes by itself, with its watch
// running. The fake's clock is that of the world.
func newWatchedWorld(t *testing.T, c *pcapi.Cloud, servers []cloud.Server, objects ...client.Object) *world {
	t.Helper()
	var w *world
	f := cloudfake.New(cloudfake.Options{Capabilities: withEvents, Clock: func() time.Time { return w.Now() }})
	w = newWorld(t, c, f, objects...)
	f.AddServers(servers...)
	w.reconcile()
	w.eventually("the watch runs", func() bool { return testutil.ToFloat64(w.kind.gauge.watching.WithLabelValues("home")) == 1 })
	w.advance(2 * time.Second)
	w.reconcile()
	return w
}

// eventually waits for what a watch does.
func (w *world) eventually(what string, met func() bool) {
	w.t.Helper()
	timeout := time.After(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); !met(); {
		select {
		case <-tick.C:
		case <-timeout:
			w.t.Fatalf("timed out: %s", what)
		}
	}
}

// reported waits until the watch reported n servers more than before.
func (w *world) reported(n int, change func()) {
	w.t.Helper()
	counted := func() int { return int(testutil.ToFloat64(w.kind.gauge.changes.WithLabelValues("home"))) }
	before := counted()
	change()
	w.eventually(fmt.Sprintf("%d changes are reported", n), func() bool { return counted() >= before+n })
}

func TestChangeIsKnownWithoutAListing(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")}, vm("a"))
	w.cloud.TakeCalls()
	w.cloud.ModifyServer("a", func(s *cloud.Server) { s.State = cloud.StateStopped })
	w.eventually("the server is STOPPED", func() bool { s, _ := w.inv.Server("a"); return s.State == cloud.StateStopped })
	w.later()
	equal(t, "calls", []string(nil), w.cloud.TakeCalls())
	for range 9 {
		w.later()
	}
	equal(t, "calls", []string{"list"}, w.cloud.TakeCalls())
	equal(t, "writes", []string{"object", "status"}, w.writes)
}

func TestAbsenceIsComparedWithoutAListing(t *testing.T) {
	vms, servers := fleet()
	w := newWatchedWorld(t, home(), servers, vms...)
	w.advance(time.Hour)
	w.later()
	w.cloud.TakeCalls()
	w.advance(2 * time.Second)
	w.reported(1, func() { w.cloud.RemoveServers("v00") })
	equal(t, "published before it is compared", true, w.inv.View().Snapshot.Has("v00"))
	w.reconcile()
	equal(t, "published", false, w.inv.View().Snapshot.Has("v00"))
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	equal(t, "managed", int32(7), w.stored().Status.Servers.Managed)
	equal(t, "calls", []string(nil), w.cloud.TakeCalls())
}

func TestReportedAbsencesSetTheBrake(t *testing.T) {
	for name, test := range map[string]struct {
		// steps are how many servers disappear before each comparison.
		steps []int
		// pause is the time between two steps.
		pause  time.Duration
		braked bool
	}{
		"all at once":                            {steps: []int{8}, pause: time.Second, braked: true},
		"one of eight":                           {steps: []int{1}, pause: time.Second, braked: false},
		"one by one within a poll interval":      {steps: []int{1, 1}, pause: 2 * time.Second, braked: true},
		"one by one, far apart":                  {steps: []int{1, 1}, pause: 2 * pollInterval, braked: false},
		"the first alone, and then all the rest": {steps: []int{1, 7}, pause: 2 * time.Second, braked: true},
	} {
		t.Run(name, func(t *testing.T) {
			vms, servers := fleet()
			w := newWatchedWorld(t, home(), servers, vms...)
			w.advance(time.Hour)
			w.later() // from now on the servers are older than the settle time
			gone := 0
			for _, n := range test.steps {
				w.advance(test.pause)
				w.reported(n, func() {
					for range n {
						w.cloud.RemoveServers(servers[gone].ID)
						gone++
					}
				})
				w.reconcile()
			}
			equal(t, "braked", test.braked, w.inv.View().Braked)
			equal(t, "the snapshot has a server that is gone", false, w.inv.View().Snapshot.Has(servers[0].ID))
		})
	}
}

// Without an AsOf nothing proves that the servers existed for the settle time.
func TestUndatedAbsenceOfYoungServersIsListed(t *testing.T) {
	for name, test := range map[string]struct {
		gone     int
		age      time.Duration
		listings int
		braked   bool
	}{
		"all servers, older than the settle time":   {gone: 8, age: settleTime + time.Second, listings: 1, braked: true},
		"one server, older than the settle time":    {gone: 1, age: settleTime + time.Second, listings: 1},
		"all servers, younger than the settle time": {gone: 8, age: settleTime - time.Second},
		"all servers, older than the last listing":  {gone: 8, age: time.Hour, braked: true},
	} {
		t.Run(name, func(t *testing.T) {
			vms, servers := fleet()
			for _, o := range vms {
				o.(*pcapi.VM).Status.CreatedTime = new(metav1.NewTime(dawn.Add(4*time.Minute - test.age)))
			}
			w := newWatchedWorld(t, home(), servers, vms...)
			w.cloud.SetUndated(true)
			w.advance(4*time.Minute - 2*time.Second)
			w.cloud.TakeCalls()
			w.reported(test.gone, func() {
				for n := range test.gone {
					w.cloud.RemoveServers(servers[n].ID)
				}
			})
			w.reconcile()
			equal(t, "listings", test.listings, w.cloud.Sent(cloudfake.ListServers)-1)
			equal(t, "braked", test.braked, w.inv.View().Braked)
		})
	}
}

// The absence of young servers does not count. It must not count as one that was
// counted once they are older, only because the watch reported that nothing changed.
func TestReportOfATimeProvesNoAbsenceThatWasNotCounted(t *testing.T) {
	vms, servers := fleet()
	for _, o := range vms {
		o.(*pcapi.VM).Status.CreatedTime = new(metav1.NewTime(dawn.Add(-time.Second)))
	}
	w := newWatchedWorld(t, home(), servers, vms...)
	w.advance(2 * time.Second)
	w.reported(len(servers), func() {
		for _, s := range servers {
			w.cloud.RemoveServers(s.ID)
		}
	})
	w.reconcile()
	equal(t, "braked while the servers are young", false, w.inv.View().Braked)
	equal(t, "servers", 0, w.inv.View().Snapshot.Len())
	w.advance(settleTime)
	if err := w.inv.Apply(w.inv.View().Client, cloud.Change{AsOf: w.Now()}); err != nil {
		t.Fatal(err)
	}
	proved := !w.inv.View().Snapshot.Begun.Before(dawn.Add(-time.Second).Add(settleTime))
	equal(t, "the absence is proved before it is compared", false, proved)
	w.later()
	equal(t, "braked", true, w.inv.View().Braked)
}

// The labels of a server that was released may be shown for the settle time after its VM
// is gone, however old the listing is to which the watch adds its reports.
func TestOrphanOfAWatchIsRemovedAfterTheSettleTime(t *testing.T) {
	w := newWatchedWorld(t, home(func(c *pcapi.Cloud) { c.Spec.OrphanPolicy = pcapi.OrphanPolicyDelete }),
		[]cloud.Server{server("a", ownedBy("a", "here"))}, vm("a"))
	w.cloud.SetUndated(true)
	list := func() {
		w.advance(2 * time.Second)
		w.inv.RequestPoll()
		w.reconcile()
	}
	w.advance(settleTime + pollInterval)
	w.reported(1, func() { w.cloud.ModifyServer("a", func(s *cloud.Server) { s.State = cloud.StateStopped }) })
	if err := w.client.Delete(t.Context(), vm("a")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	list()
	equal(t, "deletions within the settle time", 0, w.cloud.Sent(cloudfake.DeleteServer))
	w.advance(settleTime)
	list()
	equal(t, "deleted after the settle time", true, w.cloud.Sent(cloudfake.DeleteServer) > 0)
}

func TestIgnoredFieldOfAWatchedCloudIsReportedForTwoPollIntervals(t *testing.T) {
	w := newWatchedWorld(t, home(), []cloud.Server{server("a")}, vm("a"))
	w.cloud.SetUndated(true)
	w.later()
	w.later()
	w.ignored = []string{"createdAt: not a time"}
	w.later()
	w.ignored = nil
	w.inv.RequestPoll()
	w.advance(2 * time.Second)
	w.reconcile() // a listing, long after the last one
	w.wantCondition(pcapi.ConformantCondition, "False FieldsIgnored")
	w.later()
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
}

// A group replaces members that are lost: their absences count all the same.
func TestReplacedVMsCountInTheWindow(t *testing.T) {
	for name, between := range map[string]func(w *world){
		"at rest":                                func(*world) {},
		"an object is created":                   func(w *world) { w.inv.EnqueueAfterListing(inventory.Ref{Namespace: "ns", Name: "new"}, w.Now()) },
		"a listing is requested":                 func(w *world) { w.inv.RequestPoll() },
		"the poll interval of a comparison ends": func(w *world) { w.advance(pollInterval - 10*time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			vms, servers := fleet()
			w := newWatchedWorld(t, home(), servers, vms...)
			w.advance(time.Hour)
			w.later()
			w.advance(6 * time.Second)
			for n := range 2 {
				w.advance(2 * time.Second)
				w.reported(1, func() { w.cloud.RemoveServers(servers[n].ID) })
				w.reconcile()
				if err := w.client.Delete(t.Context(), vms[n]); err != nil {
					t.Fatal(err)
				}
				between(w)
				w.advance(2 * time.Second)
				w.reconcile()
			}
			equal(t, "braked", true, w.inv.View().Braked)
		})
	}
}

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
