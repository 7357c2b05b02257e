package tenancy

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// Find returns requests for the objects that belong to a namespace or a Cloud.
type Find func(ctx context.Context, name string) []reconcile.Request

// Watch has objects of a kind woken when what this package says of them may
// change: byNamespace finds those of a namespace whose labels changed, byCloud
// those that name a Cloud which came, went or opens to other namespaces now.
func Watch(b *builder.Builder, byNamespace, byCloud Find) *builder.Builder {
	enqueue := func(find Find) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request { return find(ctx, o.GetName()) })
	}
	return b.
		Watches(namespaceMetadata(), enqueue(byNamespace), builder.OnlyMetadata, builder.WithPredicates(relabelled)).
		Watches(&v1alpha1.Cloud{}, enqueue(byCloud), builder.WithPredicates(reopened))
}

// relabelled lets through namespaces whose labels change while they exist:
// those that are there at a start wake nobody.
var relabelled = predicate.And(predicate.LabelChangedPredicate{}, predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
})

// reopened lets through Clouds that are made or gone, and those whose
// allowedNamespaces are edited. A Cloud that goes has no users but those that
// keep nothing in it.
var reopened = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Cloud), e.ObjectNew.(*v1alpha1.Cloud)
		return !equality.Semantic.DeepEqual(was.Spec.AllowedNamespaces, is.Spec.AllowedNamespaces)
	},
}
