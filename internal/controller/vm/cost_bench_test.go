package vm

import (
	"fmt"
	"runtime"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// BenchmarkCostOfCachedVM has n VMs in the cache with the indexes of this package: the
// memory of each, and the time in which one is found by its server.
func BenchmarkCostOfCachedVM(b *testing.B) {
	for _, form := range []struct {
		name string
		lean func(any) (any, error)
	}{{"managed fields dropped", cache.TransformStripManagedFields()}, {"lean", LeanVM}} {
		b.Run(form.name, func(b *testing.B) {
			cached.Sizes(b, func(b *testing.B, n int) { findCached(b, n, form.lean) })
		})
	}
}

func findCached(b *testing.B, n int, lean func(any) (any, error)) {
	empty := heap()
	objects := make([]client.Object, n)
	for i := range objects {
		o, err := lean(decodedVM(b, i))
		if err != nil {
			b.Fatal(err)
		}
		objects[i] = o.(client.Object)
	}
	find := tenancy.NewFinder(cached.Client(b, addIndexes, objects...), &pcapi.VMList{})
	perVM := float64(heap()-empty) / float64(n)
	for i := 0; b.Loop(); i++ {
		if found := onServer(b.Context(), find, "default", fmt.Sprintf("6b1f4a52-0000-4000-8000-%012d", i*7919%n)); len(found) != 1 {
			b.Fatalf("found %v, want one VM", found)
		}
	}
	b.ReportMetric(perVM, "B/VM")
}

// heap returns the memory in use. What finalizers and pools hold is in use for longer than one collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
