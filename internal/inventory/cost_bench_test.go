package inventory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// The benchmarks of this file have one operation on one object beside n others. Its time
// must not grow with n.

// sized runs a benchmark beside 1,000, 10,000 and 50,000 objects.
func sized(b *testing.B, bench func(b *testing.B, n int)) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			bench(b, n)
		})
	}
}

// manyServers is an inventory whose n servers a watch reports, with the time that it reads.
type manyServers struct {
	*inventory.Inventory
	client  *fake.Cloud
	servers []cloud.Server
	now     time.Time
}

// newManyServers returns an inventory that has listed n servers, and then their full set.
func newManyServers(b *testing.B, n int) *manyServers {
	b.Helper()
	w := &manyServers{client: newCloud(), servers: benchServers(n, func(int, *cloud.Server) {}), now: dawn}
	clock := func() time.Time { return w.now }
	w.Inventory = inventory.New(clock, "cluster").Cloud("home")
	w.Configure(inventory.Settings{PollInterval: time.Hour, SettleTime: 24 * time.Hour})
	w.Connect(w.client, nil)
	snap, err := inventory.List(b.Context(), pages(w.servers), clock)
	if err != nil {
		b.Fatal(err)
	}
	w.Polling()
	w.Publish(snap)
	w.apply(b, cloud.Change{AsOf: w.now, Complete: true, Servers: w.servers})
	w.now = w.now.Add(time.Second)
	w.compare(b)
	return w
}

func (w *manyServers) apply(b *testing.B, change cloud.Change) {
	b.Helper()
	if err := w.Apply(w.client, change); err != nil {
		b.Fatal(err)
	}
}

// compare publishes what was reported, as the Cloud controller does.
func (w *manyServers) compare(b *testing.B) {
	b.Helper()
	snap := w.Reported()
	if snap == nil {
		b.Fatal("no comparison is due")
	}
	w.Publish(snap)
}

// resize reports that a server has another size, a second after the report before.
func (w *manyServers) resize(b *testing.B, i int) {
	w.now = w.now.Add(time.Second)
	changed := w.servers[i%len(w.servers)]
	changed.CPU = 5 + i%100
	w.apply(b, cloud.Change{AsOf: w.now, Servers: []cloud.Server{changed}})
}

func BenchmarkCostReportOfOneServer(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		for i := 0; b.Loop(); i++ {
			w.resize(b, i)
		}
	})
}

func BenchmarkCostReportBesideAnswersThatAreListed(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		for _, s := range w.servers {
			w.RecordCreated(s.Labels[inventory.UIDLabel], s)
		}
		w.resize(b, 0) // which compares each answer, once
		for i := 1; b.Loop(); i++ {
			w.resize(b, i)
		}
	})
}

func BenchmarkCostReportBesideAnswersThatAreNotListed(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, 1_000)
		for _, s := range benchServers(n, func(_ int, s *cloud.Server) { s.ID += "-new" }) {
			w.RecordCreated(s.Labels[inventory.UIDLabel], s)
		}
		w.resize(b, 0) // which compares each answer, once
		for i := 1; b.Loop(); i++ {
			w.resize(b, i)
		}
	})
}

func BenchmarkCostReportBesideObjectsThatWaitForAListing(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, 1_000)
		for i := range n {
			w.EnqueueAfterListing(inventory.Ref{Namespace: "namespace", Name: fmt.Sprintf("vm-%05d", i)}, w.now.Add(1000*time.Hour))
		}
		for i := 0; b.Loop(); i++ {
			w.resize(b, i)
		}
	})
}

// BenchmarkCostNextPoll asks when the next poll is due, as each reconcile of the Cloud does.
func BenchmarkCostNextPoll(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		for i, s := range w.servers {
			w.RecordCreated(s.Labels[inventory.UIDLabel], s)
			w.EnqueueAfterListing(inventory.Ref{Namespace: "namespace", Name: fmt.Sprintf("vm-%05d", i)}, w.now)
		}
		w.resize(b, 0)
		for b.Loop() {
			w.NextPoll()
		}
	})
}

func BenchmarkCostNamedAlike(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		for i := 0; b.Loop(); i++ {
			if found := w.NamedAlike(w.servers[i%n].Name); len(found) > 0 {
				b.Fatalf("found %v", found)
			}
		}
	})
}

func BenchmarkCostLookups(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		for i := 0; b.Loop(); i++ {
			s := w.servers[i*7919%n]
			if _, known := w.Server(s.ID); !known || len(w.Named(s.Name)) != 1 || len(w.Owned(s.Labels[inventory.UIDLabel], "cluster")) != 1 {
				b.Fatalf("server %s was not found by each of its keys", s.ID)
			}
		}
	})
}

// BenchmarkCostListing lists and publishes n servers: the time and the allocations are to
// be in proportion.
func BenchmarkCostListing(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		w := newManyServers(b, n)
		from := pages(w.servers)
		list := func() *inventory.Snapshot {
			w.now = w.now.Add(time.Second)
			snap, err := inventory.List(b.Context(), from, func() time.Time { return w.now })
			if err != nil {
				b.Fatal(err)
			}
			return snap
		}
		for b.Loop() {
			w.Publish(list())
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/server")
	})
}

// BenchmarkCostListingAgain lists and publishes n servers of which some have changed since
// the last listing.
func BenchmarkCostListingAgain(b *testing.B) {
	for _, every := range []int{0, 100, 1} {
		b.Run(fmt.Sprintf("changed=1in%d", every), func(b *testing.B) {
			sized(b, func(b *testing.B, n int) { listAgain(b, n, every) })
		})
	}
}

// listAgain changes one server in every so many before each listing; none if that is 0.
func listAgain(b *testing.B, n, every int) {
	directory, now := inventory.New(time.Now, "cluster"), dawn
	inv := directory.Cloud("home")
	servers := benchServers(n, func(int, *cloud.Server) {})
	list := func() {
		now = now.Add(time.Second)
		snap, err := directory.List(b.Context(), pages(servers), inv.View().Snapshot, func() time.Time { return now })
		if err != nil {
			b.Fatal(err)
		}
		inv.Publish(snap)
	}
	list()
	for i := 0; b.Loop(); i++ {
		for s := 0; every > 0 && s < n; s += every {
			servers[s].CPU = 5 + i%100
		}
		list()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/server")
}

func BenchmarkCostNetworks(b *testing.B) {
	sized(b, func(b *testing.B, n int) {
		networks := make([]cloud.Network, n)
		for i := range networks {
			networks[i] = cloud.Network{ID: fmt.Sprintf("id-%05d", i), Name: fmt.Sprintf("net-%05d", i), CreatedAt: dawn.Add(-time.Duration(i) * time.Second)}
		}
		inv := inventory.New(time.Now, "cluster").Cloud("home")
		inv.Connect(listedNetworks{networks: networks}, nil)
		if _, _, err := inv.Networks.Find(b.Context(), dawn, "", "", ""); err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			n := networks[i*7919%n]
			if found, _, err := inv.Networks.Find(b.Context(), dawn, n.ID, n.Name, ""); err != nil || len(found) != 1 {
				b.Fatalf("found %v: %v", found, err)
			}
		}
	})
}

// listedNetworks is a cloud that has networks.
type listedNetworks struct {
	cloud.Client
	networks []cloud.Network
}

func (l listedNetworks) ListNetworks(context.Context) ([]cloud.Network, error) {
	return l.networks, nil
}
