package vm

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Priorities of the queue: what a person requested, then members of groups,
// which come by the thousand, then work under way, then what changed in the
// cloud. VMs that exist at a start without a pending request, and periodic reconciles,
// come last.
const (
	priorityRequest  = 100
	priorityMember   = 75
	priorityUnderWay = 50
	priorityChange   = 0
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func add(q queue, priority int, requests ...reconcile.Request) {
	if pq, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, r := range requests {
		q.Add(r)
	}
}

func requestFor(o client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
}

func requestOf(key probe.Key) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: key.Namespace, Name: key.Name}}
}

// enqueue enqueues VMs when they are written.
type enqueue struct{}

var _ handler.EventHandler = enqueue{}

func (enqueue) Create(_ context.Context, e event.CreateEvent, q queue) {
	priority := requested(e.Object)
	if e.IsInInitialList && !requestPending(e.Object) {
		priority = handler.LowPriority
	}
	add(q, priority, requestFor(e.Object))
}

func (enqueue) Update(_ context.Context, e event.UpdateEvent, q queue) {
	add(q, requested(e.ObjectNew), requestFor(e.ObjectNew))
}

// Delete enqueues a VM that is gone, so that the queue does not keep it until the time for which it was enqueued last.
func (enqueue) Delete(_ context.Context, e event.DeleteEvent, q queue) {
	add(q, handler.LowPriority, requestFor(e.Object))
}

func (enqueue) Generic(context.Context, event.GenericEvent, queue) {}

// requestPending reports whether somebody requested what the status does not reflect yet: a
// VM that was created, changed or deleted while no manager ran must not wait until all others
// have been reconciled.
func requestPending(o client.Object) bool {
	vm, isVM := o.(*pcapi.VM)
	return isVM && (!vm.DeletionTimestamp.IsZero() || vm.Status.ObservedGeneration != vm.Generation)
}

// requested returns the priority of what somebody requests of a VM, or of its group.
func requested(o client.Object) int {
	if metav1.GetControllerOf(o) != nil {
		return priorityMember
	}
	return priorityRequest
}

// subscriber enqueues VMs for events of an inventory.
type subscriber struct {
	find   tenancy.Finder
	reader client.Reader
	queue  queue
}

func (s subscriber) enqueue(e inventory.Event) {
	ctx := context.Background()
	requests := make([]reconcile.Request, 0, len(e.Refs))
	for _, ref := range e.Refs {
		if ref.Kind == "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
		}
	}
	for _, owner := range e.Owners {
		if key := (client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}); s.exists(ctx, key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	add(s.queue, priorityUnderWay, requests...)
	if e.All {
		add(s.queue, priorityChange, s.find.Matching(ctx, client.MatchingFields{tenancy.CloudIndex: e.Cloud})...)
		return
	}
	for _, id := range e.Servers {
		add(s.queue, priorityChange, onServer(ctx, s.find, e.Cloud, id)...)
	}
}

// exists reports whether there is such a VM, as far as it can be read.
func (s subscriber) exists(ctx context.Context, key client.ObjectKey) bool {
	var vm pcapi.VM
	return !apierrors.IsNotFound(s.reader.Get(ctx, key, &vm, client.UnsafeDisableDeepCopy))
}
