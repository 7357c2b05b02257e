package reconciler

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// ChangedByUser returns a predicate that accepts an update if a user made it:
// of the spec, of the annotations paused, reconcile-requested-at,
// deletion-protection and approved-plan, a deletion, or the removal of the finalizer. The operator removes the finalizer
// together with the claim's annotation. For a kind whose claim has no annotation
// (""), the operator removes the finalizer only of deleted objects.
func ChangedByUser(finalizer, annotation string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		for _, key := range []string{pcapi.PausedAnnotation, pcapi.ReconcileRequestedAtAnnotation, pcapi.DeletionProtectionAnnotation, pcapi.ApprovedPlanAnnotation} {
			if was.GetAnnotations()[key] != is.GetAnnotations()[key] {
				return true
			}
		}
		_, claimed := is.GetAnnotations()[annotation]
		stripped := is.GetDeletionTimestamp().IsZero() && (claimed || annotation == "") &&
			controllerutil.ContainsFinalizer(was, finalizer) && !controllerutil.ContainsFinalizer(is, finalizer)
		return was.GetGeneration() != is.GetGeneration() || stripped ||
			was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero()
	}}
}

// Protected reports whether a user protects an object from deletion.
func Protected(obj client.Object) bool {
	return obj.GetAnnotations()[pcapi.DeletionProtectionAnnotation] == "true"
}
