package tenancy

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Find returns requests for the objects of a namespace, or of a Cloud.
type Find func(ctx context.Context, name string) []reconcile.Request

// Watch enqueues objects when their Cloud, or their access to it, may have
// changed: byNamespace finds the objects of a namespace whose labels changed,
// byCloud those of a Cloud that was created or deleted, whose deletion was
// requested, that changed which namespaces may use it, what they may import and
// which flavors they may name, or that entered or left the scope.
func Watch(b *builder.Builder, scope Scope, byNamespace, byCloud Find) *builder.Builder {
	enqueue := func(find Find) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request { return find(ctx, o.GetName()) })
	}
	return b.
		Watches(NamespaceMetadata(), enqueue(byNamespace), builder.OnlyMetadata, builder.WithPredicates(labelsChanged)).
		Watches(&pcapi.Cloud{}, enqueue(byCloud), builder.WithPredicates(usableClouds(scope)))
}

// labelsChanged selects updates of namespaces that change their labels. The
// initial list enqueues nothing.
var labelsChanged = predicate.And(predicate.LabelChangedPredicate{}, predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

// usableClouds selects what accessChanged does. Of Clouds that exist it selects
// those of the scope, and those that enter or leave it.
func usableClouds(scope Scope) predicate.Predicate {
	updated := scope.FilterClouds(accessChanged)
	return predicate.Funcs{CreateFunc: accessChanged.Create, UpdateFunc: updated.Update}
}

// accessChanged selects Clouds that are created or deleted, and updates that
// request the deletion or change a field of the spec that decides which namespaces may use the
// Cloud, what they may import and which flavors they may name. The initial list enqueues nothing.
// Objects that still refer to a deleted Cloud have nothing in it.
var accessChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*pcapi.Cloud), e.ObjectNew.(*pcapi.Cloud)
		return Closing(before) != Closing(after) ||
			!equality.Semantic.DeepEqual(before.Spec.AllowedNamespaces, after.Spec.AllowedNamespaces) ||
			before.Spec.Imports != after.Spec.Imports || !slices.Equal(before.Spec.Importable, after.Spec.Importable) ||
			before.Spec.NetworkImports != after.Spec.NetworkImports || !slices.Equal(before.Spec.ImportableNetworks, after.Spec.ImportableNetworks) ||
			flavorsChanged(&before.Spec, &after.Spec)
	},
}
