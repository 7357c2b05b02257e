package vm

import (
	"context"
	"errors"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// readOnlyCache is a cache that holds one VM and its Cloud. Every other request
// counts as a call to the API server.
type readOnlyCache struct {
	client.Client
	vm    *pcapi.VM
	cloud *pcapi.Cloud
	// reads counts the reads from the cache, calls all other requests.
	reads, calls int
}

var errCalled = errors.New("a reconcile in sync called the API server")

func (s *readOnlyCache) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.reads++
	switch into := o.(type) {
	case *pcapi.VM:
		s.vm.DeepCopyInto(into)
	case *pcapi.Cloud:
		s.cloud.DeepCopyInto(into)
	default:
		s.calls++
		return errCalled
	}
	return nil
}

func (s *readOnlyCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	s.calls++
	return errCalled
}

func (s *readOnlyCache) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	s.calls++
	return errCalled
}

func (s *readOnlyCache) Status() client.SubResourceWriter { return readOnlyStatus{readOnlyCache: s} }

type readOnlyStatus struct {
	client.SubResourceWriter
	readOnlyCache *readOnlyCache
}

func (s readOnlyStatus) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.readOnlyCache.Patch(ctx, o, p)
}

// newIdleHarness returns a harness whose VM is in sync.
func newIdleHarness(tb testing.TB) (*harness, *readOnlyCache) {
	tb.Helper()
	h := newHarness(tb, everything, vmWith())
	h.mustReconcile()
	h.later(pollInterval)
	h.mustReconcile()
	var c pcapi.Cloud
	if err := h.client.Get(tb.Context(), cloudKey, &c); err != nil {
		tb.Fatalf("Get: %v", err)
	}
	cache := &readOnlyCache{vm: h.vm(), cloud: &c}
	h.kind.Client = cache
	h.reconciler.Client = cache
	h.cloud.TakeCalls(cloudfake.ListServers)
	h.events = nil
	return h, cache
}

func TestReconcileInSyncCallsNothing(t *testing.T) {
	h, cache := newIdleHarness(t)
	for range 100 {
		equal(t, "result", ctrl.Result{}, h.mustReconcile())
	}
	equal(t, "calls to the API server", 0, cache.calls)
	equal(t, "reads from the cache: the VM and its Cloud", 200, cache.reads)
	equal(t, "calls to the cloud", []string(nil), h.cloud.TakeCalls(cloudfake.ListServers))
	equal(t, "events", []string(nil), h.events)
}

func BenchmarkNoopReconcile(b *testing.B) {
	h, cache := newIdleHarness(b)
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cache.vm)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.reconciler.Reconcile(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cache.calls)/float64(b.N), "apicalls/op")
	b.ReportMetric(float64(len(h.cloud.TakeCalls(cloudfake.ListServers)))/float64(b.N), "cloudcalls/op")
}
