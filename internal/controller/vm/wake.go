package vm

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Priorities of the queue: what a person asked for, then members of groups,
// which come by the thousand, then work under way, then what the cloud changed
// by itself. After a start, all VMs come last.
const (
	priorityRequest  = 100
	priorityMember   = 75
	priorityUnderWay = 50
	priorityNews     = 0
	priorityStart    = handler.LowPriority
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

// enqueue puts VMs on the queue as they are written.
type enqueue struct{}

var _ handler.EventHandler = enqueue{}

func (enqueue) Create(_ context.Context, e event.CreateEvent, q queue) {
	priority := requested(e.Object)
	if e.IsInInitialList {
		priority = priorityStart
	}
	add(q, priority, requestFor(e.Object))
}

func (enqueue) Update(_ context.Context, e event.UpdateEvent, q queue) {
	add(q, requested(e.ObjectNew), requestFor(e.ObjectNew))
}

// requested is the priority of what somebody asks of a VM: of it alone, or of its group.
func requested(o client.Object) int {
	if metav1.GetControllerOf(o) != nil {
		return priorityMember
	}
	return priorityRequest
}

func (enqueue) Delete(context.Context, event.DeleteEvent, queue)   {}
func (enqueue) Generic(context.Context, event.GenericEvent, queue) {}

// worthAPass lets through what people change.
var worthAPass = reconciler.ChangedByUser(Finalizer, ClaimedCloudAnnotation)

// waker turns a cloud's news into requests.
type waker struct {
	finder
	queue queue
}

func (w waker) wake(news inventory.Event) {
	ctx := context.Background()
	requests := make([]reconcile.Request, 0, len(news.Refs))
	for _, ref := range news.Refs {
		if ref.Kind != "" {
			continue
		}
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
	}
	add(w.queue, priorityUnderWay, requests...)
	if news.All {
		add(w.queue, priorityNews, w.find(ctx, client.MatchingFields{CloudIndex: news.Cloud})...)
		return
	}
	for _, id := range news.Servers {
		add(w.queue, priorityNews, w.find(ctx, client.MatchingFields{serverIndex: serverKey(news.Cloud, id)})...)
	}
}

// finder finds VMs in the cache.
type finder struct{ reader client.Reader }

func (f finder) find(ctx context.Context, match client.ListOption) []reconcile.Request {
	var list v1alpha1.VMList
	if err := f.reader.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Error(err, "the VMs that news concern cannot be found", "match", match)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, requestFor(&list.Items[i]))
	}
	return requests
}

func (f finder) byNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, client.InNamespace(name))
}

func (f finder) byCloud(ctx context.Context, name string) []reconcile.Request {
	return slices.Concat(f.find(ctx, client.MatchingFields{CloudIndex: name}), f.find(ctx, client.MatchingFields{CloudIndex: unresolved}))
}

// The indexes of VMs in the cache.
const (
	// CloudIndex finds the VMs of a Cloud by its name.
	CloudIndex = "cloud"
	// serverIndex finds the VMs that have or want to import a server of a cloud.
	serverIndex = "server"
	// nameIndex finds the VMs that want a name on a cloud.
	nameIndex = "vmname"
	// NetworkIndex finds the VMs of a namespace that refer to a Network by its name.
	NetworkIndex = "network"
)

// unresolved stands for the Cloud of a VM that names none and is on none yet.
const unresolved = ""

func serverKey(cloud, id string) string { return cloud + "/" + id }

// indexedCloud is the Cloud that the indexes put a VM under.
func indexedCloud(vm *v1alpha1.VM) string {
	if on := recordedCloud(vm); on != "" {
		return on
	}
	return wantedCloud(vm)
}

func wantedCloud(vm *v1alpha1.VM) string {
	if vm.Spec.CloudRef == nil {
		return unresolved
	}
	return vm.Spec.CloudRef.Name
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for index, keys := range map[string]func(*v1alpha1.VM) []string{
		CloudIndex: func(vm *v1alpha1.VM) []string { return slices.Compact([]string{wantedCloud(vm), indexedCloud(vm)}) },
		nameIndex:  func(vm *v1alpha1.VM) []string { return []string{indexedCloud(vm) + "/" + vm.Spec.VMName} },
		NetworkIndex: func(vm *v1alpha1.VM) []string {
			if vm.Spec.NetworkRef == nil {
				return nil
			}
			return []string{vm.Spec.NetworkRef.Name}
		},
		serverIndex: func(vm *v1alpha1.VM) []string {
			switch {
			case vm.Status.VMID != "":
				return []string{serverKey(indexedCloud(vm), vm.Status.VMID)}
			case vm.Spec.Import != nil:
				return []string{serverKey(indexedCloud(vm), vm.Spec.Import.VMID)}
			default:
				return nil
			}
		},
	} {
		err := indexer.IndexField(ctx, &v1alpha1.VM{}, index, func(o client.Object) []string { return keys(o.(*v1alpha1.VM)) })
		if err != nil {
			return err
		}
	}
	return nil
}
