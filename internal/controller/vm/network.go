package vm

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// observeNetwork finds out whether the Network that a new VM names can take it.
// A Network that is being deleted takes none: it goes once those that have, or
// may have, a server are gone.
func (k *kind) observeNetwork(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if vm.Spec.NetworkRef == nil || knownID(vm) != "" || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	var net v1alpha1.Network
	name := vm.Spec.NetworkRef.Name
	err := k.client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: name}, &net)
	switch {
	case apierrors.IsNotFound(err):
		obs.detached = unattachable(name, "does not exist: create it, or name another in spec.networkRef")
	case err != nil:
		return fmt.Errorf("read Network %q: %w", name, err)
	case !net.DeletionTimestamp.IsZero():
		obs.detached = unattachable(name, "is being deleted: name another in spec.networkRef, or create it anew when it is gone")
	case net.Status.NetworkID == "":
		obs.detached = unattachable(name, "is not made yet: see its conditions")
	case meta.IsStatusConditionFalse(net.Status.Conditions, v1alpha1.CreatedCondition):
		obs.detached = unattachable(name, "is lost: see its conditions, or name another in spec.networkRef")
	case net.Status.Cloud != obs.cloud:
		obs.detached = stall(v1alpha1.NetworkNotReadyReason, fmt.Errorf(
			"Network %q is on Cloud %q and this VM on Cloud %q: name a Network of the same Cloud, or set spec.cloudRef to that of the Network", name, net.Status.Cloud, obs.cloud), recheckRefused)
	default:
		obs.networkID = net.Status.NetworkID
	}
	return nil
}

func unattachable(name, why string) error {
	return reconciler.Blocked("Network/"+name, v1alpha1.NetworkNotReadyReason, "Network %q %s", name, why)
}

// planDetached is for a VM that cannot be made for want of its Network. A claim
// of which nothing came is given up: it would keep the Network, and so a deletion
// that the VM waits for would wait for the VM.
func planDetached(obs *scope) ([]string, error) {
	switch {
	case obs.claimed == "", len(obs.candidates) > 0:
		return nil, obs.detached
	case obs.settles > 0:
		return nil, reconciler.Wait(obs.settles, v1alpha1.OutcomeUnknownReason,
			"a create may have been sent; waiting out the Cloud's settleTime to be sure that no server comes of it, since now %v", obs.detached)
	}
	return []string{stepUnclaim}, obs.detached
}

// networkNews wakes the VMs without a server that a Network may take now, or
// takes no more.
func networkNews(find finder) handler.EventHandler {
	type state struct {
		id, cloud         string
		deleting, created bool
	}
	stateOf := func(o client.Object) state {
		net := o.(*v1alpha1.Network)
		return state{
			id: net.Status.NetworkID, cloud: net.Status.Cloud, deleting: !net.DeletionTimestamp.IsZero(),
			created: meta.IsStatusConditionTrue(net.Status.Conditions, v1alpha1.CreatedCondition),
		}
	}
	wake := func(ctx context.Context, o client.Object, q queue) {
		var vms v1alpha1.VMList
		err := find.reader.List(ctx, &vms, client.InNamespace(o.GetNamespace()), client.MatchingFields{NetworkIndex: o.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			log.FromContext(ctx).Error(err, "the VMs that wait for a Network cannot be found", "network", o.GetName())
			return
		}
		for i := range vms.Items {
			if vms.Items[i].Status.VMID == "" {
				add(q, priorityUnderWay, requestFor(&vms.Items[i]))
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList {
				wake(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if stateOf(e.ObjectOld) != stateOf(e.ObjectNew) {
				wake(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
	}
}
