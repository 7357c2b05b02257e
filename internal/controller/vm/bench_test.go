package vm

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// still is a cache that holds one VM and its Cloud. Everything but reading
// these two, which costs a cache a copy, is a call to the API server.
type still struct {
	client.Client
	vm    *v1alpha1.VM
	cloud *v1alpha1.Cloud
	// reads are those from the cache, calls all others.
	reads, calls int
}

var errCalled = errors.New("a pass at rest called the API server")

func (s *still) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.reads++
	switch into := o.(type) {
	case *v1alpha1.VM:
		s.vm.DeepCopyInto(into)
	case *v1alpha1.Cloud:
		s.cloud.DeepCopyInto(into)
	default:
		s.calls++
		return errCalled
	}
	return nil
}

func (s *still) List(context.Context, client.ObjectList, ...client.ListOption) error {
	s.calls++
	return errCalled
}

func (s *still) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	s.calls++
	return errCalled
}

func (s *still) Status() client.SubResourceWriter { return stillStatus{still: s} }

type stillStatus struct {
	client.SubResourceWriter
	still *still
}

func (s stillStatus) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.still.Patch(ctx, o, p)
}

// atRest is a world whose VM runs as its spec says, with nothing left to do.
func atRest(tb testing.TB) (*world, *still) {
	tb.Helper()
	w := newWorld(tb, everything, vmWith())
	w.mustPass()
	w.later(pollInterval)
	w.mustPass()
	var c v1alpha1.Cloud
	if err := w.client.Get(tb.Context(), ctrlKey("default"), &c); err != nil {
		tb.Fatalf("Get: %v", err)
	}
	cache := &still{vm: w.vm(), cloud: &c}
	w.kind.Client, w.runs.Client = cache, cache
	w.cloud.TakeCalls(cloudfake.ListServers)
	w.events = nil
	return w, cache
}

func TestAPassAtRestCallsNobody(t *testing.T) {
	w, cache := atRest(t)
	for range 100 {
		equal(t, "result", ctrl.Result{}, w.mustPass())
	}
	equal(t, "calls to the API server", 0, cache.calls)
	equal(t, "reads from the cache: the VM and its Cloud", 200, cache.reads)
	equal(t, "calls to the cloud", []string(nil), w.cloud.TakeCalls(cloudfake.ListServers))
	equal(t, "events", []string(nil), w.events)
}

func BenchmarkNoopReconcile(b *testing.B) {
	w, cache := atRest(b)
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cache.vm)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.runs.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cache.calls)/float64(b.N), "apicalls/op")
	b.ReportMetric(float64(len(w.cloud.TakeCalls(cloudfake.ListServers)))/float64(b.N), "cloudcalls/op")
}
