package network

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

// countDelay is how long after a VM came or left its Network is enqueued to
// count again: VMs come in groups, and the count is informative.
const countDelay = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueReferred enqueues the Networks that wait for something of a cloud.
func enqueueReferred(directory *inventory.Directory) func(context.Context, queue) error {
	return func(_ context.Context, q queue) error {
		directory.Subscribe(func(event inventory.Event) {
			for _, ref := range event.Refs {
				if ref.Kind == "Network" {
					q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
				}
			}
		})
		return nil
	}
}

// attachments enqueues the Networks that VMs come to and leave: at once if a
// deletion waited for the VM to leave.
func attachments(reader client.Reader) handler.EventHandler {
	came := func(q queue, vm *pcapi.VM) {
		if vm.Spec.NetworkRef != nil {
			q.AddAfter(networkOf(vm), countDelay)
		}
	}
	left := func(ctx context.Context, q queue, vm *pcapi.VM) {
		switch {
		case vm.Spec.NetworkRef == nil:
		case free(ctx, reader, networkOf(vm).NamespacedName):
			q.Add(networkOf(vm))
		default:
			q.AddAfter(networkOf(vm), countDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if vm := e.Object.(*pcapi.VM); !e.IsInInitialList && attached(vm) {
				came(q, vm)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM)
			on, off := attached(is), attached(was)
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
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { left(ctx, q, e.Object.(*pcapi.VM)) },
	}
}

// free reports whether a Network is being deleted and no VM is attached any more.
func free(ctx context.Context, reader client.Reader, name client.ObjectKey) bool {
	var net pcapi.Network
	if err := reader.Get(ctx, name, &net); err != nil || net.DeletionTimestamp.IsZero() {
		return false
	}
	vms, err := attachedTo(ctx, reader, name)
	return err == nil && len(vms) == 0
}

// attached reports whether a VM exists in the cloud, or may exist.
func attached(vm *pcapi.VM) bool {
	return vm.Status.VMID != "" || controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
}

// nameOf returns the name of the Network that a VM refers to, empty for none.
func nameOf(vm *pcapi.VM) string {
	if vm.Spec.NetworkRef == nil {
		return ""
	}
	return vm.Spec.NetworkRef.Name
}

func networkOf(vm *pcapi.VM) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: vm.Namespace, Name: nameOf(vm)}}
}
