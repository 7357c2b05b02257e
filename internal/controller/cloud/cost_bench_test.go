package cloud

import (
	"context"
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// manyVMs returns the controller of the Cloud home, which has been listed, with n VMs and
// their servers.
func manyVMs(b *testing.B, n int) *world {
	b.Helper()
	servers, objects := make([]cloud.Server, n), []client.Object{home(claimed)}
	for i := range servers {
		name := fmt.Sprintf("vm-%05d", i)
		servers[i] = server(name, ownedBy(name, "here"))
		objects = append(objects, vm(name))
	}
	w := newWorld(b, home(claimed), newCloud(cloud.NewCapabilities(cloud.Labels, cloud.BulkStatus), servers...))
	w.reconcile()
	w.kind.client = cached.Client(b, func(ctx context.Context, indexer client.FieldIndexer) error {
		if err := tenancy.IndexByCloud(ctx, indexer, &pcapi.Network{}, func(client.Object) []string { return nil }); err != nil {
			return err
		}
		return tenancy.IndexByCloud(ctx, indexer, &pcapi.VM{}, func(o client.Object) []string { return []string{o.(*pcapi.VM).Spec.CloudRef.Name} })
	}, objects...)
	return w
}

// observed observes and plans, as a reconcile does.
func (w *world) observed(b *testing.B, c *pcapi.Cloud) *observation {
	b.Helper()
	obs, err := w.kind.Observe(b.Context(), c)
	if err != nil || obs.failed != nil {
		b.Fatal(err, obs.failed)
	}
	return obs
}

// BenchmarkCostReconcileWithoutListing observes a Cloud that need not be listed, as when an
// object requests a poll. It must not depend on the number of VMs.
func BenchmarkCostReconcileWithoutListing(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		w, c := manyVMs(b, n), home(claimed)
		w.observed(b, c)
		for b.Loop() {
			if obs := w.observed(b, c); obs.fresh != nil {
				b.Fatal("the servers were listed")
			}
		}
	})
}

// BenchmarkCostReconcileWithListing observes a Cloud that is listed. Its cost is to be in
// proportion to the VMs.
func BenchmarkCostReconcileWithListing(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		w, c := manyVMs(b, n), home(claimed)
		snap := w.inv.View().Snapshot
		for b.Loop() {
			obs := &observation{inv: w.inv, settings: settingsOf(c), fresh: snap, lister: w.cloud}
			vms, err := w.kind.vmsOf(b.Context(), c)
			if err != nil {
				b.Fatal(err)
			}
			w.kind.survey(b.Context(), c, obs, w.inv.View(), vms)
			if int(obs.counts.Managed) != n || obs.gone > 0 {
				b.Fatalf("%d of %d servers are managed, %d are gone", obs.counts.Managed, n, obs.gone)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/VM")
	})
}
