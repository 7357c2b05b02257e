package vm

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observeHolders finds out whether a name that the cloud reports as taken is only that of VMs which are being deleted.
func (k *kind) observeHolders(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if !cloud.Is(obs.nameErr, cloud.Taken) {
		return nil
	}
	holders, err := k.others(ctx, vm, obs, nameIndex, cloud.NormalName(vm.Spec.VMName), func(other *pcapi.VM) bool {
		return !released(other) && k.hasName(other) && (!obs.Capabilities().Has(cloud.FolderNames) || other.Spec.Folder == vm.Spec.Folder)
	})
	obs.freeSoon = freeSoon(vm, holders)
	return err
}

// hasName reports whether the status of a VM says that its server may have the name. Users can write finalizers.
func (k *kind) hasName(vm *pcapi.VM) bool {
	return vm.Status.VMID != "" || vm.Status.NameInCloud != "" || k.CreateOpen(vm)
}

// freeSoon returns the outcome for a VM that wants what holders have, if all of these are being deleted; else nil. It
// names none of another namespace.
func freeSoon(vm *pcapi.VM, holders []pcapi.VM) error {
	if len(holders) == 0 || slices.ContainsFunc(holders, func(holder pcapi.VM) bool { return !leaving(&holder) }) {
		return nil
	}
	who := "a VM object of another namespace"
	for i := range holders {
		if holders[i].Namespace == vm.Namespace {
			who = fmt.Sprintf("VM %q", holders[i].Name)
		}
	}
	what := fmt.Sprintf("the name %q", vm.Spec.VMName)
	if vm.Spec.Import != nil {
		what = "VM " + vm.Spec.Import.VMID
	}
	return awaitDeletion(what, who)
}

// maxWanting bounds the VMs that are looked at when one that has what they want is deleted: only one of them can have it.
// What an earlier check refused is checked again after a while in any case.
const maxWanting = 1_000

// freed enqueues the VMs without a server that want the name, the server or a static address of a VM, when that is going
// to be deleted and when it is gone.
func (k *kind) freed(find tenancy.Finder) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if was, is := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM); leaving(was) != leaving(is) {
				k.enqueueWanting(ctx, find, is, !leaving(is), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if vm := e.Object.(*pcapi.VM); leaving(vm) { // it has the finalizer, although that was removed
				k.enqueueWanting(ctx, find, vm, true, q)
			}
		},
	}
}

func (k *kind) enqueueWanting(ctx context.Context, find tenancy.Finder, vm *pcapi.VM, gone bool, q queue) {
	on, err := k.CloudOf(ctx, vm)
	var same []string
	if err == nil {
		same, err = tenancy.SameCloud(ctx, k.Client, on)
	}
	if err != nil {
		log.FromContext(ctx).Info("cannot enqueue the VMs that wait for what a deleted VM had", "vm", client.ObjectKeyFromObject(vm), "error", err.Error())
		return
	}
	if gone {
		k.refusals.free(vm, same)
	}
	wants := func(accept func(*pcapi.VM) bool, match ...client.ListOption) {
		add(q, priorityUnderWay, find.Accepted(ctx, func(o client.Object) bool {
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
