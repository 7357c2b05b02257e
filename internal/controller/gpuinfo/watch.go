package gpuinfo

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// enqueueDelay is the time between an event that concerns all GPUInfos of a
// Cloud and their reconciles: many events, such as a thousand nodes that become
// Ready, lead to one reconcile of each.
const enqueueDelay = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watch sets up the events that enqueue GPUInfos: all that a choice depends on.
// Hosts are read after each listing of their cloud's servers.
func (k *kind) watch(ctx context.Context, b *builder.Builder, reader client.Reader) *builder.Builder {
	find := tenancy.NewFinder(reader, &pcapi.GPUInfoList{})
	changed := controller.InScope(ctx, k.scope, reader, k.cloudOf, changedByUser)
	return tenancy.Watch(b, k.scope, find.ByNamespace, find.ByCloud).
		For(&pcapi.GPUInfo{}, builder.WithPredicates(changed)).
		Watches(&pcapi.GPUInfo{}, k.ends.follow(k.clock)).
		Watches(&pcapi.GPUInfo{}, enqueueRivals(find)).
		Watches(&pcapi.Cloud{}, k.forgetLostClouds()).
		Watches(&corev1.Node{}, enqueueAll(find), builder.WithPredicates(nodeChanged)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			k.directory.Subscribe(enqueueUsers(find, q))
			return nil
		})).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: 1})
}

// forgetLostClouds returns a handler that drops what is cached of Clouds that are
// deleted, or are another manager's now.
func (k *kind) forgetLostClouds() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			if !k.scope.Selects(e.ObjectNew.GetLabels()) {
				k.forgetCloud(e.ObjectNew.GetName())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { k.forgetCloud(e.Object.GetName()) },
	}
}

func addLater(q queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.AddAfter(request, enqueueDelay)
	}
}

// changedByUser accepts updates that a user made: of the spec, and of the
// annotations that the operator reads.
var changedByUser = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		for _, key := range []string{pcapi.PausedAnnotation, pcapi.ReconcileRequestedAtAnnotation} {
			if was.GetAnnotations()[key] != is.GetAnnotations()[key] {
				return true
			}
		}
		return was.GetGeneration() != is.GetGeneration()
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// nodeChanged accepts changes of a node that a choice depends on, which does not
// include heartbeats. The nodes of the initial list enqueue nothing: GPUInfos are
// enqueued by their own.
var nodeChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return nodeOf(e.ObjectOld.(*corev1.Node)) != nodeOf(e.ObjectNew.(*corev1.Node))
	},
}

// enqueueUsers enqueues the GPUInfos that use a Cloud when it was listed or
// becomes available.
func enqueueUsers(find tenancy.Finder, q queue) func(inventory.Event) {
	return func(e inventory.Event) { addLater(q, find.ByCloud(context.Background(), e.Cloud)) }
}

// enqueueAll enqueues all GPUInfos when a node is created, changed or deleted.
func enqueueAll(find tenancy.Finder) handler.EventHandler {
	enqueue := func(ctx context.Context, q queue) { addLater(q, find.Matching(ctx)) }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q queue) { enqueue(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q queue) { enqueue(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q queue) { enqueue(ctx, q) },
	}
}

// enqueueRivals enqueues other GPUInfos when a reservation changes: those
// without one if hours became free, and those with a later one on the same host,
// whose hours two managers may have reserved at the same time.
func enqueueRivals(find tenancy.Finder) handler.EventHandler {
	enqueue := func(ctx context.Context, q queue, was, is *pcapi.GPUReservation, gpu *pcapi.GPUInfo) {
		if equality.Semantic.DeepEqual(was, is) {
			return
		}
		requests := find.Accepted(ctx, func(o client.Object) bool {
			other := o.(*pcapi.GPUInfo)
			held := other.Status.Reservation
			switch {
			case other.UID == gpu.UID:
				return false
			case held == nil:
				return was != nil
			default:
				return is != nil && held.Cloud == is.Cloud && held.Host == is.Host && claimOf(gpu).before(claimOf(other))
			}
		})
		for _, request := range requests {
			q.Add(request)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*pcapi.GPUInfo), e.ObjectNew.(*pcapi.GPUInfo)
			enqueue(ctx, q, reservationOf(was), reservationOf(is), is)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			gpu := e.Object.(*pcapi.GPUInfo)
			enqueue(ctx, q, gpu.Status.Reservation, nil, gpu)
		},
	}
}

// reservationOf returns the reservation of a GPUInfo; nil once its deletion is
// requested.
func reservationOf(gpu *pcapi.GPUInfo) *pcapi.GPUReservation {
	if !gpu.DeletionTimestamp.IsZero() {
		return nil
	}
	return gpu.Status.Reservation
}

// reservedIndex is the cache index of GPUInfos with a reservation by its Cloud.
const reservedIndex = "reservation"

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &pcapi.GPUInfo{}, reservedIndex, reservedKeys); err != nil {
		return err
	}
	return tenancy.IndexByCloud(ctx, indexer, &pcapi.GPUInfo{}, cloudKeys)
}

func reservedKeys(o client.Object) []string {
	if held := reservationOf(o.(*pcapi.GPUInfo)); held != nil {
		return []string{held.Cloud}
	}
	return nil
}

func cloudKeys(o client.Object) []string {
	return tenancy.CloudKeys(o.(*pcapi.GPUInfo).Spec.CloudRef, "")
}
