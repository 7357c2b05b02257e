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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// observeNetworks finds out whether the Networks that a new VM names can take it, with the
// addresses that it asks for.
func (o *observer) observeNetworks(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, i := range controller.InterfacesOf(vm) {
		net, err := o.observeNetwork(ctx, vm, obs, i)
		if err == nil && obs.detached == nil {
			err = o.observeAddresses(ctx, vm, obs, i, net)
		}
		if err != nil || obs.detached != nil {
			return err
		}
		attachment := cloud.Attachment{NetworkID: net.Status.NetworkID}
		for _, address := range i.Addresses {
			attachment.Addresses = append(attachment.Addresses, string(address))
		}
		obs.interfaces = append(obs.interfaces, attachment)
	}
	return nil
}

// observeNetwork finds out whether the Network of an interface of a new VM can take it.
// A Network that is being deleted takes none: it goes once those that have, or
// may have, a server are gone.
func (o *observer) observeNetwork(ctx context.Context, vm *pcapi.VM, obs *observation, i pcapi.VMInterface) (*pcapi.Network, error) {
	var net pcapi.Network
	name, field := i.NetworkRef.Name, networkField(i)
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: name}, &net)
	switch {
	case apierrors.IsNotFound(err):
		obs.detached = unattachable(name, "does not exist: create it, or name another in "+field)
	case err != nil:
		return nil, fmt.Errorf("read Network %q: %w", name, err)
	case !net.DeletionTimestamp.IsZero():
		obs.detached = unattachable(name, "is being deleted: name another in "+field+", or create it anew when it is gone")
	case net.Status.NetworkID == "":
		obs.detached = unattachable(name, "is not made yet: see its conditions")
	case meta.IsStatusConditionFalse(net.Status.Conditions, pcapi.CreatedCondition):
		obs.detached = unattachable(name, "is lost: see its conditions, or name another in "+field)
	case net.Status.Cloud != obs.Cloud:
		obs.detached = reconciler.Stalled(pcapi.NetworkNotReadyReason, controller.RecheckRefused, fmt.Errorf(
			"Network %q is on Cloud %q and this VM on Cloud %q: name a Network of the same Cloud, or set spec.cloudRef to that of the Network", name, net.Status.Cloud, obs.Cloud))
	}
	return &net, nil
}

func unattachable(name, why string) error {
	return reconciler.Blocked("Network/"+name, pcapi.NetworkNotReadyReason, "Network %q %s", name, why)
}

// networkField is the field of the spec that names the Network of an interface.
func networkField(i pcapi.VMInterface) string {
	if i.Name == "" {
		return "spec.networkRef"
	}
	return fmt.Sprintf("spec.network.interfaces[%s].networkRef", i.Name)
}

// networkChanges enqueues the VMs without a server when a Network that they
// refer to becomes able to take them, or unable.
func networkChanges(reader client.Reader) handler.EventHandler {
	type state struct {
		id, cloud, cidr, gateway string
		deleting, created        bool
	}
	stateOf := func(o client.Object) state {
		net := o.(*pcapi.Network)
		return state{
			id: net.Status.NetworkID, cloud: net.Status.Cloud, cidr: net.Status.CIDR, gateway: net.Status.Gateway, deleting: !net.DeletionTimestamp.IsZero(),
			created: meta.IsStatusConditionTrue(net.Status.Conditions, pcapi.CreatedCondition),
		}
	}
	enqueue := func(ctx context.Context, o client.Object, q queue) {
		var vms pcapi.VMList
		err := reader.List(ctx, &vms, client.InNamespace(o.GetNamespace()), client.MatchingFields{controller.VMNetworkIndex: o.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			log.FromContext(ctx).Error(err, "cannot list the VMs that wait for a Network", "network", o.GetName())
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
				enqueue(ctx, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if stateOf(e.ObjectOld) != stateOf(e.ObjectNew) {
				enqueue(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}
