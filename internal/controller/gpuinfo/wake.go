package gpuinfo

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// gather is how long news that concern all GPUInfos of a Cloud are gathered: a
// thousand nodes that become Ready are not a thousand passes over each.
const gather = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watch has GPUInfos woken by all that a choice depends on. Hosts are looked at
// with each listing of their cloud's servers.
func watch(b *builder.Builder, find finder, directory *inventory.Directory) *builder.Builder {
	return tenancy.Watch(b, find.byNamespace, find.byCloud).
		For(&v1alpha1.GPUInfo{}, builder.WithPredicates(worthAPass)).
		Watches(&v1alpha1.GPUInfo{}, find.rivals()).
		Watches(&corev1.Node{}, find.choosers(), builder.WithPredicates(nodeChanged)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			directory.Subscribe(find.news(q))
			return nil
		}))
}

func later(q queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.AddAfter(request, gather)
	}
}

// worthAPass lets through what people change: the spec, and the annotations
// that speak to the operator.
var worthAPass = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		for _, key := range []string{v1alpha1.PausedAnnotation, v1alpha1.ReconcileRequestedAtAnnotation} {
			if was.GetAnnotations()[key] != is.GetAnnotations()[key] {
				return true
			}
		}
		return was.GetGeneration() != is.GetGeneration()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// nodeChanged lets through what a choice looks at of nodes, which heartbeats do
// not change. GPUInfos that are there at a start are looked at in any case.
var nodeChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return nodeOf(e.ObjectOld.(*corev1.Node)) != nodeOf(e.ObjectNew.(*corev1.Node))
	},
}

// finder finds GPUInfos in the cache.
type finder struct{ reader client.Reader }

func (f finder) find(ctx context.Context, wanted func(*v1alpha1.GPUInfo) bool) []reconcile.Request {
	var list v1alpha1.GPUInfoList
	if err := f.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Error(err, "the GPUInfos that news concern cannot be found")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func (f finder) byNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, func(gpu *v1alpha1.GPUInfo) bool { return gpu.Namespace == name })
}

// byCloud finds those that use a Cloud, and those whose namespace says which.
func (f finder) byCloud(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, func(gpu *v1alpha1.GPUInfo) bool {
		return gpu.Spec.CloudRef == nil || gpu.Spec.CloudRef.Name == name
	})
}

// news has those woken that use a Cloud which was listed or is back.
func (f finder) news(q queue) func(inventory.Event) {
	return func(news inventory.Event) { later(q, f.byCloud(context.Background(), news.Cloud)) }
}

// choosers has all woken by a node that came, went or changed.
func (f finder) choosers() handler.EventHandler {
	wake := func(ctx context.Context, q queue) {
		later(q, f.find(ctx, func(*v1alpha1.GPUInfo) bool { return true }))
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { wake(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q queue) { wake(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { wake(ctx, q) },
	}
}

// rivals has others woken when a GPUInfo's reservation changes: those without
// one when hours came free, and the later ones on a host whose hours another
// manager gave away at the same time.
func (f finder) rivals() handler.EventHandler {
	wake := func(ctx context.Context, q queue, was, is *v1alpha1.GPUReservation, gpu *v1alpha1.GPUInfo) {
		if equality.Semantic.DeepEqual(was, is) {
			return
		}
		requests := f.find(ctx, func(other *v1alpha1.GPUInfo) bool {
			held := other.Status.Reservation
			switch {
			case other.UID == gpu.UID:
				return false
			case held == nil:
				return was != nil
			default:
				return is != nil && held.Cloud == is.Cloud && held.Host == is.Host &&
					claimOf(gpu).before(claimOf(other))
			}
		})
		for _, request := range requests {
			q.Add(request)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*v1alpha1.GPUInfo), e.ObjectNew.(*v1alpha1.GPUInfo)
			wake(ctx, q, reservationOf(was), reservationOf(is), is)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			gpu := e.Object.(*v1alpha1.GPUInfo)
			wake(ctx, q, gpu.Status.Reservation, nil, gpu)
		},
	}
}

// reservationOf is what a GPUInfo holds against others: nothing any more from
// the moment that its deletion is asked for.
func reservationOf(gpu *v1alpha1.GPUInfo) *v1alpha1.GPUReservation {
	if !gpu.DeletionTimestamp.IsZero() {
		return nil
	}
	return gpu.Status.Reservation
}

// reservedIndex finds the GPUInfos that have a reservation by its Cloud.
const reservedIndex = "reservation"

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1alpha1.GPUInfo{}, reservedIndex, func(o client.Object) []string {
		if held := reservationOf(o.(*v1alpha1.GPUInfo)); held != nil {
			return []string{held.Cloud}
		}
		return nil
	})
}
