package reconciler

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// Touched lets through what people change of a kind with this finalizer and this
// annotation of a claim: the spec, a deletion, the annotations that speak to the
// operator, and the finalizer taken off by hand. What the operator itself writes
// is none of these: it takes annotation and finalizer off together, or, of a kind
// whose claim has no annotation (""), the finalizer only of what is deleted.
func Touched(finalizer, annotation string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		for _, key := range []string{v1alpha1.PausedAnnotation, v1alpha1.ReconcileRequestedAtAnnotation} {
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
