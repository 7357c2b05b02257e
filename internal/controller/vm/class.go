package vm

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmclasses,verbs=list;watch

// classIndex finds the VMs that have not taken their class yet, by its name.
const classIndex = "class"

// untakenClass returns the keys of classIndex.
func untakenClass(vm *pcapi.VM) []string {
	if vm.Spec.ClassName == "" || field.ClassTaken(vm) {
		return nil
	}
	return []string{vm.Spec.ClassName}
}

// observeClass reads the class that a VM has not taken yet.
func (o *observer) observeClass(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	name := vm.Spec.ClassName
	if len(untakenClass(vm)) == 0 || !vm.DeletionTimestamp.IsZero() || observeOnly(vm) {
		return nil
	}
	class, err := tenancy.OpenClass(ctx, o.Client, vm.Namespace, name)
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		why := denied.Or("name another in spec.className")
		controller.LogAccess(ctx, vm, denied, why.Error())
		obs.unclassed = reconciler.Blocked("VMClass/"+name, pcapi.ClassUnavailableReason, "%v", why)
		return nil
	}
	if err != nil {
		return err
	}
	obs.class = &pcapi.VMClassStatus{Name: name, Hardware: class.Spec.Hardware}
	if class.Spec.OpenStack != nil {
		obs.class.Flavor = class.Spec.OpenStack.Flavor
	}
	return nil
}

// takeClass stores the size of the class.
func (k *kind) takeClass(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	return reconciler.WriteStatus(ctx, k.Client, vm, func() { vm.Status.Class = obs.class })
}

// watchClasses enqueues the VMs that have not taken their class yet when it is created, or
// changes who may use it.
func watchClasses(b *builder.Builder, find tenancy.Finder) *builder.Builder {
	waiting := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return find.Matching(ctx, client.MatchingFields{classIndex: o.GetName()})
	})
	return b.Watches(&pcapi.VMClass{}, waiting, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
}
