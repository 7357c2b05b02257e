package external

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
)

// ChangedByUser returns the predicate of updates that a user made. An object that needs no claim
// may have one all the same, which is restored if its resource still has the owner labels.
func (l *Lifecycle[T, R, S]) ChangedByUser() predicate.Predicate {
	unclaimed := predicate.NewPredicateFuncs(func(o client.Object) bool {
		obj, ok := o.(T)
		return ok && l.kind.Record(obj).Unclaimed
	})
	return predicate.Or(
		reconciler.ChangedByUser(l.Options.Finalizer, l.claimOf),
		predicate.And(unclaimed, reconciler.FinalizerTaken(l.Options.Finalizer)),
	)
}

// claimOf is the reconciler.ClaimOf of the kind. An object has a claim as long as its
// status records a resource that the operator manages or the claim itself, or a create may
// have been sent: as this process knows or, after a restart, as the conditions say.
func (l *Lifecycle[T, R, S]) claimOf(o client.Object) map[string]string {
	obj, ok := o.(T)
	if !ok || deleted(obj) {
		return nil
	}
	record, known, had := l.kind.Record(obj), l.Tracker.ClaimOf(obj.GetUID()), obj.GetAnnotations()
	another := reconciler.ClaimOfAnother(obj)
	if another {
		had = nil
	}
	switch {
	case record.Unclaimed:
		return nil
	case record.ID != "":
		known = pending.Claim{Name: record.Name, Cloud: record.Cloud}
		if record.Renamed {
			known.Name = cmp.Or(had[pcapi.ClaimedNameAnnotation], record.Name)
		}
	case record.Claimed != "":
		known = pending.Claim{Name: record.Claimed, Cloud: record.Cloud}
	case known == pending.Claim{} && createOpen(obj, record):
		known.Name = cmp.Or(record.Claimed, had[pcapi.ClaimedNameAnnotation], record.Name)
		known.Cloud = cmp.Or(record.Cloud, had[pcapi.ClaimedCloudAnnotation])
	}
	if known.Name == "" {
		return nil
	}
	annotations := ClaimAnnotations(known.Name, known.Cloud)
	if another && record.ID == "" { // with an id on record, it does not matter who wrote the claim
		annotations[pcapi.ClaimedUIDAnnotation] = string(obj.GetUID())
	}
	maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })
	return annotations
}

// ClaimAnnotations returns the annotations of the claim of a name on a Cloud.
func ClaimAnnotations(name, cloudName string) map[string]string {
	return map[string]string{pcapi.ClaimedNameAnnotation: name, pcapi.ClaimedCloudAnnotation: cloudName}
}

// ClaimedName returns the name that an object's claim is about, empty without a claim.
func (l *Lifecycle[T, R, S]) ClaimedName(obj T) string {
	return claimedName(obj, l.kind.Record(obj), l.Options.Finalizer, l.Tracker.ClaimOf(obj.GetUID()))
}

// claimedName returns the name that an object's claim is about, empty without a claim. known is the
// claim that this process knows of.
func claimedName(obj reconciler.Object, record Record, finalizer string, known pending.Claim) string {
	switch {
	case !controllerutil.ContainsFinalizer(obj, finalizer):
		return ""
	case !reconciler.ClaimOfAnother(obj):
		return cmp.Or(record.Claimed, obj.GetAnnotations()[pcapi.ClaimedNameAnnotation], record.Name)
	case createOpen(obj, record): // somebody wrote the claim of another object over its own
		return cmp.Or(record.Claimed, known.Name, record.Name)
	default:
		return cmp.Or(record.Claimed, known.Name)
	}
}

// CreateOpen reports whether the status of an object that has no resource on record says that a create is under way
// or may have taken effect.
func (l *Lifecycle[T, R, S]) CreateOpen(obj T) bool { return createOpen(obj, l.kind.Record(obj)) }

// createOpen reports whether the status says that a create is under way or may have taken effect.
func createOpen(obj reconciler.Object, record Record) bool {
	created := meta.FindStatusCondition(obj.GetConditions(), pcapi.CreatedCondition)
	switch {
	case record.Operation.ID != "":
		return true
	case created == nil:
		return false
	case created.Reason == pcapi.AmbiguousReason:
		return record.Import == "" // that of an import is about the server of another object
	}
	return created.Reason == pcapi.OutcomeUnknownReason || created.Reason == pcapi.CreatingReason
}

// CreateRefused reports whether the conditions of an object say that the cloud refused its last create.
func CreateRefused(conditions []metav1.Condition) bool {
	created := meta.FindStatusCondition(conditions, pcapi.CreatedCondition)
	return created != nil && slices.Contains([]string{pcapi.QuotaExceededReason, pcapi.UnschedulableReason, pcapi.RejectedReason}, created.Reason)
}
