package gpuinfo

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// immediate is a queue that records requests without a delay. Any other call panics.
type immediate struct {
	queue
	names map[string]bool
}

func (i immediate) Add(request reconcile.Request) { i.names[request.Name] = true }

// delayed is a queue that records when requests were added, and how often that was done.
type delayed struct {
	queue
	begun time.Time
	added map[string][]time.Duration
}

func (d delayed) Add(request reconcile.Request) {
	d.added[request.Name] = append(d.added[request.Name], time.Since(d.begun))
}

// finderOf returns a Finder that reads these GPUInfos.
func finderOf(t *testing.T, gpus ...*pcapi.GPUInfo) tenancy.Finder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&pcapi.GPUInfo{}, tenancy.CloudIndex, cloudKeys).WithIndex(&pcapi.GPUInfo{}, waitingIndex, waitingKeys)
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
	all := map[string][]time.Duration{"home": {enqueueDelay}, "away": {enqueueDelay}, "labelled": {enqueueDelay}}
	n := &corev1.Node{}
	for name, test := range map[string]struct {
		enqueue func(*kind, tenancy.Finder, queue)
		want    map[string][]time.Duration
	}{
		"a listing: the GPUInfos that may use its Cloud": {
			func(k *kind, find tenancy.Finder, q queue) { k.enqueueUsers(find, q)(inventory.Event{Cloud: "home"}) },
			map[string][]time.Duration{"home": {enqueueDelay}, "labelled": {enqueueDelay}},
		},
		"a node is created": {func(k *kind, find tenancy.Finder, q queue) {
			k.enqueueAll(find).Create(t.Context(), event.CreateEvent{Object: n}, q)
		}, all},
		"a node changes": {func(k *kind, find tenancy.Finder, q queue) {
			k.enqueueAll(find).Update(t.Context(), event.UpdateEvent{ObjectOld: n, ObjectNew: n}, q)
		}, all},
		"a node is deleted": {func(k *kind, find tenancy.Finder, q queue) {
			k.enqueueAll(find).Delete(t.Context(), event.DeleteEvent{Object: n}, q)
		}, all},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				find := finderOf(t, on("home", "home"), on("away", "away"), on("labelled", ""))
				k := &kind{collector: newCollector(enqueueDelay)}
				d := delayed{begun: time.Now(), added: map[string][]time.Duration{}}
				for range 1000 {
					test.enqueue(k, find, d)
				}
				<-time.After(2 * enqueueDelay)
				synctest.Wait()
				if diff := cmp.Diff(test.want, d.added); diff != "" {
					t.Errorf("after a thousand events, enqueued after (-want +got):\n%s", diff)
				}
				clear(d.added)
				d.begun = time.Now()
				test.enqueue(k, find, d)
				<-time.After(2 * enqueueDelay)
				synctest.Wait()
				if diff := cmp.Diff(test.want, d.added); diff != "" {
					t.Errorf("after a later event, enqueued after (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestReservationChangesEnqueueRivals(t *testing.T) {
	mine := asking(called("mine"), holding("n1", time.Hour))
	without := asking(called("mine"))
	elsewhere := asking(called("elsewhere"), holding("n2", 0))
	elsewhere.Status.Reservation.Host = "h2"
	away := asking(called("away"), func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef = &pcapi.CloudReference{Name: "away"} })
	later, earlier := asking(called("later"), holding("n1", time.Minute)), asking(called("earlier"), holding("n1", 2*time.Hour))
	others := []*pcapi.GPUInfo{asking(called("none")), asking(called("expired"), hoursOver), away, later, earlier, elsewhere}
	update := func(was, is *pcapi.GPUInfo) func(handler.EventHandler, queue) {
		return func(rivals handler.EventHandler, q queue) {
			rivals.Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, q)
		}
	}
	after := map[string][]time.Duration{"none": {enqueueDelay}, "mine": {enqueueDelay}}
	for name, test := range map[string]struct {
		is      *pcapi.GPUInfo
		hours   int
		enqueue func(handler.EventHandler, queue)
		want    map[string][]time.Duration
	}{
		"nothing changes": {mine, 0, update(mine, mine.DeepCopy()), map[string][]time.Duration{}},
		"a reservation is made: later ones on the same host":                       {mine, 25, update(without, mine), map[string][]time.Duration{"later": {0}}},
		"a reservation is made, the host was not listed: later ones on it":         {mine, 0, update(without, mine), map[string][]time.Duration{"later": {0}}},
		"a reservation is made, all fit: none":                                     {mine, 26, update(without, mine), map[string][]time.Duration{}},
		"a reservation ends: those on its Cloud that have none and are to get one": {without, 0, update(mine, without), after},
		"deleted with a reservation: those that have none and are to get one": {
			nil, 0, func(rivals handler.EventHandler, q queue) {
				rivals.Delete(t.Context(), event.DeleteEvent{Object: mine}, q)
			},
			map[string][]time.Duration{"none": {enqueueDelay}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gpus := others
				if test.is != nil {
					gpus = append(slices.Clone(others), test.is)
				}
				s := &reader{}
				for _, gpu := range gpus {
					s.items = append(s.items, *gpu)
				}
				k := newKind(s, controller.Options{Clock: func() time.Time { return noon }, Elapsed: func() time.Duration { return 0 }})
				if test.hours > 0 {
					k.hostsByName("default", []cloud.Host{{Name: "h1", AvailableHours: test.hours}})
				}
				rivals := k.followReservations(finderOf(t, gpus...))
				for _, gpu := range gpus {
					rivals.Create(t.Context(), event.CreateEvent{Object: gpu}, nil)
				}
				d := delayed{begun: time.Now(), added: map[string][]time.Duration{}}
				test.enqueue(rivals, d)
				<-time.After(2 * enqueueDelay)
				synctest.Wait()
				if diff := cmp.Diff(test.want, d.added); diff != "" {
					t.Errorf("enqueued after (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestGPUInfosThatWaitForHoursAreIndexed(t *testing.T) {
	home := func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} }
	again := func(gpu *pcapi.GPUInfo) {
		gpu.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "again"}
	}
	for name, test := range map[string]struct {
		gpu  *pcapi.GPUInfo
		want []string
	}{
		"no reservation, no Cloud is named":      {asking(), []string{""}},
		"no reservation, a Cloud is named":       {asking(home), []string{"home"}},
		"a reservation: not waiting":             {asking(home, holding("n1", 0)), nil},
		"its hours are over: not waiting":        {asking(home, hoursOver), nil},
		"its hours are over, another spec":       {asking(home, hoursOver, edited), []string{"home"}},
		"its hours are over, a request":          {asking(home, hoursOver, again), []string{"home"}},
		"its deletion is requested: not waiting": {asking(home, deleting), nil},
		"deletion of a reservation: not waiting": {asking(home, holding("n1", 0), deleting), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, waitingKeys(test.gpu)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// The queue would keep a deleted GPUInfo until its reservation would have ended, for years.
func TestDeletedGPUInfoIsReconciledAtOnce(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	gpu := asking(holding("n1", 0))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: gpu.Namespace, Name: gpu.Name}}
	q.AddWithOpts(priorityqueue.AddOpts{After: 10 * time.Hour}, request)
	if changedByUser.Delete(event.DeleteEvent{Object: gpu}) {
		q.Add(request)
	}
	taken := make(chan struct{})
	go func() {
		next, _ := q.Get()
		q.Done(next)
		close(taken)
	}()
	select {
	case <-taken:
	case <-time.After(4 * time.Minute):
		t.Error("the deletion enqueues nothing")
	}
}

func deleting(gpu *pcapi.GPUInfo) { gpu.DeletionTimestamp = &metav1.Time{Time: noon} }
