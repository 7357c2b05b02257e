package reconciler

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// ClaimOf returns the annotations of the claim that an object must have, nil for
// an object that needs no claim.
type ClaimOf func(client.Object) map[string]string

// FinalizerAlone is the ClaimOf of a kind whose claim is its finalizer. The operator
// removes it only of deleted objects.
func FinalizerAlone(client.Object) map[string]string { return map[string]string{} }

// ChangedByUser returns a predicate that accepts an update if a user made it:
// of the spec, of the annotations that the operator reads, a deletion, or an update that
// removes or changes the claim which the object must have.
func ChangedByUser(finalizer string, claim ClaimOf) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		for _, key := range []string{pcapi.PausedAnnotation, pcapi.ReconcileRequestedAtAnnotation, pcapi.DeletionProtectionAnnotation, pcapi.ApprovedPlanAnnotation} {
			if was.GetAnnotations()[key] != is.GetAnnotations()[key] {
				return true
			}
		}
		return was.GetGeneration() != is.GetGeneration() || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
			claimRemoved(was, is, finalizer, claim)
	}}
}

// FinalizerTaken accepts an update that removes the finalizer of an object that is not deleted.
func FinalizerTaken(finalizer string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		taken := controllerutil.ContainsFinalizer(e.ObjectOld, finalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, finalizer)
		return taken && !deleting(e.ObjectNew)
	}}
}

// claimRemoved reports whether an update removed or changed a part of the claim that the object must have.
func claimRemoved(was, is client.Object, finalizer string, claim ClaimOf) bool {
	finalized := controllerutil.ContainsFinalizer(was, finalizer) == controllerutil.ContainsFinalizer(is, finalizer)
	if finalized && maps.Equal(was.GetAnnotations(), is.GetAnnotations()) || deleting(is) {
		return false
	}
	must := claim(is)
	return must != nil && !hasClaim(is, finalizer, must)
}

// hasClaim reports whether an object has a finalizer and these annotations.
func hasClaim(obj client.Object, finalizer string, annotations map[string]string) bool {
	for key, value := range annotations {
		if obj.GetAnnotations()[key] != value {
			return false
		}
	}
	return controllerutil.ContainsFinalizer(obj, finalizer)
}
