package network

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

// refKind marks the Networks among those who wait for something of a cloud.
const refKind = "Network"

// counting is how long a Network waits after a VM came or left before it counts
// again: VMs do so in numbers, and the count is for people.
const counting = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wake turns a cloud's news into requests.
func wake(q queue, news inventory.Event) {
	for _, ref := range news.Refs {
		if ref.Kind == refKind {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
		}
	}
}

// finder finds Networks in the cache.
type finder struct{ reader client.Reader }

// attachments wakes the Networks that VMs come to and leave: at once when that
// was what a deletion waited for.
func (f finder) attachments(opts Options) handler.EventHandler {
	came := func(q queue, vm *v1alpha1.VM) {
		if vm.Spec.NetworkRef != nil {
			q.AddAfter(networkOf(vm), counting)
		}
	}
	left := func(ctx context.Context, q queue, vm *v1alpha1.VM) {
		switch {
		case vm.Spec.NetworkRef == nil:
		case f.free(ctx, opts, networkOf(vm).NamespacedName):
			q.Add(networkOf(vm))
		default:
			q.AddAfter(networkOf(vm), counting)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if vm := e.Object.(*v1alpha1.VM); !e.IsInInitialList && attached(vm, opts.VMFinalizer) {
				came(q, vm)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*v1alpha1.VM), e.ObjectNew.(*v1alpha1.VM)
			on, off := attached(is, opts.VMFinalizer), attached(was, opts.VMFinalizer)
			if on == off && nameOf(was) == nameOf(is) {
				return
			}
			if off {
				left(ctx, q, was)
			}
			if on {
				came(q, is)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { left(ctx, q, e.Object.(*v1alpha1.VM)) },
	}
}

// departures wakes nobody: a Network that goes without a claim makes no pass.
func departures(k *kind) handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { k.forget(e.Object.GetUID()) }}
}

// free tells whether a Network is being deleted and no VM is attached any more.
func (f finder) free(ctx context.Context, opts Options, name client.ObjectKey) bool {
	var net v1alpha1.Network
	if err := f.reader.Get(ctx, name, &net); err != nil || net.DeletionTimestamp.IsZero() {
		return false
	}
	vms, err := opts.attachedTo(ctx, f.reader, name)
	return err == nil && len(vms) == 0
}

// attached tells whether a VM exists in the cloud, or may.
func attached(vm *v1alpha1.VM, finalizer string) bool {
	return vm.Status.VMID != "" || controllerutil.ContainsFinalizer(vm, finalizer)
}

// nameOf is the name of the Network that a VM refers to, empty for none.
func nameOf(vm *v1alpha1.VM) string {
	if vm.Spec.NetworkRef == nil {
		return ""
	}
	return vm.Spec.NetworkRef.Name
}

func networkOf(vm *v1alpha1.VM) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: vm.Namespace, Name: nameOf(vm)}}
}

// CloudIndex finds the Networks of a Cloud in the cache by its name.
const CloudIndex = "cloud"

// unresolved stands for the Cloud of a Network that names none and is on none yet.
const unresolved = ""

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1alpha1.Network{}, CloudIndex, func(o client.Object) []string {
		net := o.(*v1alpha1.Network)
		wanted := unresolved
		if net.Spec.CloudRef != nil {
			wanted = net.Spec.CloudRef.Name
		}
		if on := recordedCloud(net); on != "" {
			return slices.Compact([]string{wanted, on})
		}
		return []string{wanted}
	})
}

func (f finder) find(ctx context.Context, match client.ListOption) []reconcile.Request {
	var list v1alpha1.NetworkList
	if err := f.reader.List(ctx, &list, match, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Error(err, "the Networks that news concern cannot be found", "match", match)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

func (f finder) byNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, client.InNamespace(name))
}

func (f finder) byCloud(ctx context.Context, name string) []reconcile.Request {
	return slices.Concat(f.find(ctx, client.MatchingFields{CloudIndex: name}), f.find(ctx, client.MatchingFields{CloudIndex: unresolved}))
}
