package objectmetrics

import (
	"context"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// beside returns a reporter of n VMs that run, in 20 namespaces, on 5 Clouds.
func beside(b *testing.B, n int) *reporter {
	b.Helper()
	var objects []client.Object
	for i := range 5 {
		objects = append(objects, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cloud-%d", i)}})
	}
	noIndex := func(context.Context, client.FieldIndexer) error { return nil }
	r := newReporter(cached.Client(b, noIndex, objects...), tenancy.Scope{}, newCollector(prometheus.NewRegistry()))
	r.collector.add(r)
	for i := range n {
		r.OnAdd(numbered(i, running(5)), true)
	}
	return r
}

func numbered(i int, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := vm(fmt.Sprintf("vm-%05d", i), append(change, on(fmt.Sprintf("cloud-%d", i%5)))...)
	vm.Namespace = fmt.Sprintf("namespace-%02d", i%20)
	return vm
}

// BenchmarkCostEvent counts the change of one VM beside n.
func BenchmarkCostEvent(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		r := beside(b, n)
		was, is := numbered(7, running(5)), numbered(7, not("Reconciling", "Creating"))
		for b.Loop() {
			r.OnUpdate(was, is)
			was, is = is, was
		}
	})
}

// BenchmarkCostScrape collects the metrics of n VMs.
func BenchmarkCostScrape(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		r := beside(b, n)
		to := make(chan prometheus.Metric, 1000)
		for b.Loop() {
			r.collector.Collect(to)
			if len(to) != 20 {
				b.Fatalf("%d series, want one for each namespace", len(to))
			}
			for range 20 {
				<-to
			}
		}
	})
}
