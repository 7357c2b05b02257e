package gpuinfo

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		Watches(&pcapi.GPUInfo{}, k.followReservations(find)).
		Watches(&pcapi.Cloud{}, k.forgetLostClouds()).
		Watches(&corev1.Node{}, k.enqueueAll(find), builder.WithPredicates(nodeChanged)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			k.directory.Subscribe(k.enqueueUsers(find, q))
			return nil
		})).
		WithOptions(controller.FairAmongNamespaces(1))
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

// addLater enqueues what find returns when the events of enqueueDelay are collected.
func (k *kind) addLater(q queue, of concern, find func(context.Context) []reconcile.Request) {
	k.collector.add(of, func() { add(q, find(context.Background())) })
}

func add(q queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.Add(request)
	}
}

// changedByUser accepts updates that a user made: of the spec, and of the
// annotations that the operator reads; and deletions, so that the queue does not keep a
// deleted GPUInfo until its reservation would have ended.
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
func (k *kind) enqueueUsers(find tenancy.Finder, q queue) func(inventory.Event) {
	return func(e inventory.Event) {
		k.addLater(q, concern{"listing", e.Cloud}, func(ctx context.Context) []reconcile.Request { return find.ByCloud(ctx, e.Cloud) })
	}
}

// enqueueAll enqueues all GPUInfos when a node is created, changed or deleted.
func (k *kind) enqueueAll(find tenancy.Finder) handler.EventHandler {
	enqueue := func(q queue) {
		k.nodes.changed()
		k.addLater(q, concern{what: "nodes"}, func(ctx context.Context) []reconcile.Request { return find.Matching(ctx) })
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { enqueue(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { enqueue(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { enqueue(q) },
	}
}

// followReservations returns a handler that follows the reservations of all GPUInfos,
// and enqueues other GPUInfos when one changes. One handler does both, so that those who
// are enqueued find the change.
func (k *kind) followReservations(find tenancy.Finder) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ queue) {
			k.claims.follow(ctx, client.ObjectKeyFromObject(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			k.claims.follow(ctx, client.ObjectKeyFromObject(e.ObjectNew))
			was, is := e.ObjectOld.(*pcapi.GPUInfo), e.ObjectNew.(*pcapi.GPUInfo)
			k.enqueueRivals(find, q, reservationOf(was), reservationOf(is), is)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			gpu := e.Object.(*pcapi.GPUInfo)
			k.claims.follow(ctx, client.ObjectKeyFromObject(gpu))
			k.ends.forget(gpu.UID)
			k.enqueueRivals(find, q, gpu.Status.Reservation, nil, gpu)
		},
	}
}

// enqueueRivals enqueues other GPUInfos when a reservation changes: those that wait for
// one if hours became free, and those with a later one on the same host if they do not
// all fit, because two managers may have reserved the same hours at the same time.
func (k *kind) enqueueRivals(find tenancy.Finder, q queue, was, is *pcapi.GPUReservation, gpu *pcapi.GPUInfo) {
	if equality.Semantic.DeepEqual(was, is) {
		return
	}
	if was != nil {
		k.addLater(q, concern{"hours", was.Cloud}, func(ctx context.Context) []reconcile.Request { return waiting(ctx, find, was.Cloud) })
	}
	if is == nil {
		return
	}
	at, now := hostKey{is.Cloud, is.Host}, k.clock()
	if hours, known := k.hoursOf(at); !known || k.claims.taken(at, types.NamespacedName{}, now)/hour > hours {
		add(q, k.claims.later(at, claimOf(gpu), now))
	}
}

// waiting returns requests for the GPUInfos that may get hours on a Cloud once they are free.
func waiting(ctx context.Context, find tenancy.Finder, cloudName string) []reconcile.Request {
	return slices.Concat(
		find.Matching(ctx, client.MatchingFields{waitingIndex: cloudName}),
		find.Matching(ctx, client.MatchingFields{waitingIndex: ""}),
	)
}

// reservationOf returns the reservation of a GPUInfo; nil once its deletion is
// requested.
func reservationOf(gpu *pcapi.GPUInfo) *pcapi.GPUReservation {
	if !gpu.DeletionTimestamp.IsZero() {
		return nil
	}
	return gpu.Status.Reservation
}

// waitingIndex is the cache index of GPUInfos that have no reservation and may get one, by
// the key of their Cloud in tenancy.CloudIndex.
const waitingIndex = "waiting"

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &pcapi.GPUInfo{}, waitingIndex, waitingKeys); err != nil {
		return err
	}
	return tenancy.IndexByCloud(ctx, indexer, &pcapi.GPUInfo{}, cloudKeys)
}

// waitingKeys leaves out the GPUInfos whose hours are over: only a request or another spec
// lets them choose again.
func waitingKeys(o client.Object) []string {
	gpu := o.(*pcapi.GPUInfo)
	expired := gpu.Status.ExpiredGeneration == gpu.Generation && requestOf(gpu) == gpu.Status.LastHandledReconcileAt
	if reservationOf(gpu) != nil || expired || !gpu.DeletionTimestamp.IsZero() {
		return nil
	}
	return cloudKeys(o)
}

func cloudKeys(o client.Object) []string {
	return tenancy.CloudKeys(o.(*pcapi.GPUInfo).Spec.CloudRef, "")
}
