package cloud

import (
	"fmt"
	"testing"
	"time"

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
