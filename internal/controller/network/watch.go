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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
)

const (
	// countDelay is how long after a VM came or left its Network is enqueued to count
	// again: VMs come in groups, and the count is informative. It is that of a Network
	// with vmsPerDelay VMs at the last count, and longer for more in proportion: all are
	// read to be counted.
	countDelay  = time.Second
	vmsPerDelay = 10_000
	// fewVMs is the largest number of attached VMs at the last count with which it is
	// worth to look whether the last one left.
	fewVMs = 100
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// attachments enqueues the Networks that VMs come to and leave: at once if a
// deletion waited for the VM to leave, and there were few others at the last count.
func attachments(reader client.Reader) handler.EventHandler {
	enqueueOne := func(ctx context.Context, q queue, request reconcile.Request, leaves bool) {
		var net pcapi.Network
		err := reader.Get(ctx, request.NamespacedName, &net, client.UnsafeDisableDeepCopy)
		if err == nil && leaves && free(ctx, reader, &net) {
			q.Add(request)
			return
		}
		q.AddAfter(request, countDelay*time.Duration(max(vmsPerDelay, net.Status.AttachedVMs))/vmsPerDelay)
	}
	enqueue := func(ctx context.Context, q queue, vm *pcapi.VM, leaves bool) {
		for _, name := range controller.NetworksOf(vm) {
			enqueueOne(ctx, q, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: vm.Namespace, Name: name}}, leaves)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if vm := e.Object.(*pcapi.VM); !e.IsInInitialList && attached(vm) {
				enqueue(ctx, q, vm, false)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM)
			on, off := attached(is), attached(was)
			if on == off && slices.Equal(controller.NetworksOf(was), controller.NetworksOf(is)) {
				return
			}
			if off {
				enqueue(ctx, q, was, true)
			}
			if on {
				enqueue(ctx, q, is, false)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object.(*pcapi.VM), true) },
	}
}

// free reports whether a Network is being deleted and no VM is attached any more. It does
// not look if many were attached at the last count: all are read for that.
func free(ctx context.Context, reader client.Reader, net *pcapi.Network) bool {
	if net.DeletionTimestamp.IsZero() || net.Status.AttachedVMs > fewVMs {
		return false
	}
	vms, err := attachedTo(ctx, reader, client.ObjectKeyFromObject(net), client.DisableReadYourWritesConsistency)
	return err == nil && len(vms) == 0
}

// attached reports whether a VM exists in the cloud, or may exist.
func attached(vm *pcapi.VM) bool {
	return vm.Status.VMID != "" || controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
}
