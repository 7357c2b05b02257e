package gpuinfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// recorder is a queue that records delayed requests. Any other call panics.
type recorder struct {
	queue
	delays map[string]time.Duration
}

func (r recorder) AddAfter(request reconcile.Request, after time.Duration) {
	r.delays[request.Name] = after
}

// immediate is a queue that records requests without a delay. Any other call panics.
type immediate struct {
	queue
	names map[string]bool
}

func (i immediate) Add(request reconcile.Request) { i.names[request.Name] = true }

// finderOf returns a Finder that reads these GPUInfos.
func finderOf(t *testing.T, gpus ...*pcapi.GPUInfo) tenancy.Finder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&pcapi.GPUInfo{}, tenancy.CloudIndex, cloudKeys).WithIndex(&pcapi.GPUInfo{}, reservedIndex, reservedKeys)
	for _, gpu := range gpus {
		b = b.WithObjects(gpu)
	}
	return tenancy.NewFinder(b.Build(), &pcapi.GPUInfoList{})
}

func called(name string) func(*pcapi.GPUInfo) {
	return func(gpu *pcapi.GPUInfo) { gpu.Name, gpu.UID = name, types.UID(name) }
}

func TestEventsThatConcernAllGPUInfosEnqueueThemLater(t *testing.T) {
	on := func(name, cloud string) *pcapi.GPUInfo {
		gpu := asking(called(name))
		if cloud != "" {
			gpu.Spec.CloudRef = &pcapi.CloudReference{Name: cloud}
		}
		return gpu
	}
	find := finderOf(t, on("home", "home"), on("away", "away"), on("labelled", ""))
	all := map[string]time.Duration{"home": enqueueDelay, "away": enqueueDelay, "labelled": enqueueDelay}
	nodes, n := enqueueAll(find), &corev1.Node{}
	for name, test := range map[string]struct {
		enqueue func(queue)
		want    map[string]time.Duration
	}{
		"a listing: the GPUInfos that may use its Cloud": {
			func(q queue) { enqueueUsers(find, q)(inventory.Event{Cloud: "home"}) }, map[string]time.Duration{"home": enqueueDelay, "labelled": enqueueDelay},
		},
		"a node is created": {func(q queue) { nodes.Create(t.Context(), event.CreateEvent{Object: n}, q) }, all},
		"a node changes":    {func(q queue) { nodes.Update(t.Context(), event.UpdateEvent{ObjectOld: n, ObjectNew: n}, q) }, all},
		"a node is deleted": {func(q queue) { nodes.Delete(t.Context(), event.DeleteEvent{Object: n}, q) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorder{delays: map[string]time.Duration{}}
			test.enqueue(r)
			if diff := cmp.Diff(test.want, r.delays); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReservationChangesEnqueueRivals(t *testing.T) {
	mine := asking(called("mine"), holding("n1", time.Hour))
	without := asking(called("mine"))
	elsewhere := asking(called("elsewhere"), holding("n2", 0))
	elsewhere.Status.Reservation.Host = "h2"
	find := finderOf(t, mine, asking(called("none")), asking(called("later"), holding("n1", time.Minute)), asking(called("earlier"), holding("n1", 2*time.Hour)), elsewhere)
	rivals := enqueueRivals(find)
	update := func(was, is *pcapi.GPUInfo) func(queue) {
		return func(q queue) { rivals.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q) }
	}
	for name, test := range map[string]struct {
		enqueue func(queue)
		want    map[string]bool
	}{
		"nothing changes": {update(mine, mine.DeepCopy()), map[string]bool{}},
		"a reservation is made: later ones on the same host": {update(without, mine), map[string]bool{"later": true}},
		"a reservation ends: those without one":              {update(mine, without), map[string]bool{"none": true}},
		"deleted with a reservation: those without one": {
			func(q queue) { rivals.Delete(t.Context(), event.DeleteEvent{Object: mine}, q) }, map[string]bool{"none": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := immediate{names: map[string]bool{}}
			test.enqueue(i)
			if diff := cmp.Diff(test.want, i.names); diff != "" {
				t.Errorf("enqueued (-want +got):\n%s", diff)
			}
		})
	}
}
