package vm

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// maxWanting bounds the VMs that are looked at when one that has what they want is deleted: only one of them can have it.
// What an earlier check refused is checked again after a while in any case.
const maxWanting = 1_000

// freed enqueues the VMs without a server that want the name, the server or a static address of a VM, when that is going
// to be deleted and when it is gone.
type freed struct {
	find     tenancy.Finder
	reader   client.Reader
	cloudOf  func(context.Context, *pcapi.VM) (string, error)
	refusals refusals
}

// handler returns the handler of events of VMs.
func (f freed) handler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if was, is := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM); leaving(was) != leaving(is) {
				f.enqueueWaiting(ctx, is, !leaving(is), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if vm := e.Object.(*pcapi.VM); leaving(vm) { // it has the finalizer, although that was removed
				f.enqueueWaiting(ctx, vm, true, q)
			}
		},
	}
}

// enqueueWaiting enqueues the VMs that wait for the name, the server or the addresses of a VM. gone: the VM does not have them any more.
func (f freed) enqueueWaiting(ctx context.Context, vm *pcapi.VM, gone bool, q queue) {
	on, err := f.cloudOf(ctx, vm)
	var same []string
	if err == nil {
		same, err = tenancy.SameCloud(ctx, f.reader, on)
	}
	if err != nil {
		log.FromContext(ctx).Info("cannot enqueue the VMs that wait for what a deleted VM had", "vm", client.ObjectKeyFromObject(vm), "error", err.Error())
		return
	}
	if gone {
		f.refusals.free(vm, same)
	}
	wants := func(accept func(*pcapi.VM) bool, match ...client.ListOption) {
		add(q, priorityUnderWay, f.find.Accepted(ctx, func(o client.Object) bool {
			other := o.(*pcapi.VM)
			return other.Status.VMID == "" && other.UID != vm.UID && accept(other)
		}, append(match, client.Limit(maxWanting))...)...)
	}
	for _, on := range append(same, unresolved) {
		for index, wanted := range map[string]string{nameIndex: nameKey(vm, on), serverIndex: serverKey(on, vm.Status.VMID)} {
			wants(func(other *pcapi.VM) bool { return has(other, index, wanted) }, matching(index, wanted))
		}
	}
	for _, address := range addressKeys(vm) {
		wants(func(*pcapi.VM) bool { return true }, client.InNamespace(vm.Namespace), client.MatchingFields{addressIndex: address})
	}
}
