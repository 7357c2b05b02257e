package vm

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observeGroup finds out whether the VmGroup of a deleted VM protects its members. Kubernetes deletes
// them with their group, whatever its annotations are.
func (o *observer) observeGroup(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	owner := metav1.GetControllerOf(vm)
	if vm.DeletionTimestamp.IsZero() || owner == nil || owner.Kind != "VmGroup" {
		return nil
	}
	var g pcapi.VmGroup
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: owner.Name}, &g, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read VmGroup %q: %w", owner.Name, err)
	}
	if g.UID == owner.UID && pcapi.Protected(&g) {
		obs.KeptBy = fmt.Sprintf("VmGroup %q", g.Name)
	}
	return nil
}

// membersOf enqueues the members of a VmGroup that are being deleted.
func membersOf(find tenancy.Finder) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, g client.Object) []reconcile.Request {
		return find.Accepted(ctx, func(o client.Object) bool {
			owner := metav1.GetControllerOf(o)
			return o.GetDeletionTimestamp() != nil && owner != nil && owner.UID == g.GetUID()
		}, client.InNamespace(g.GetNamespace()))
	})
}

// protectionEnded accepts VmGroups that are not protected any more.
var protectionEnded = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool { return pcapi.Protected(e.ObjectOld) && !pcapi.Protected(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return pcapi.Protected(e.Object) },
}
