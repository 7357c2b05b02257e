package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// grace is how long after the creation of an object its Cloud may be created or allow its
// namespace before the object is Stalled: what is applied together is not created at once, and
// many tools give up on an object that is Stalled.
const grace = time.Minute

// Inaccessible returns the outcome for an object whose Cloud does not exist or may not be used
// in its namespace. It is the same for both. Events enqueue the object when that changes.
func Inaccessible(obj reconciler.Object, now time.Time, denied *tenancy.AccessError, instead string) error {
	cause := denied.Or(instead)
	if age := now.Sub(obj.GetCreationTimestamp().Time); age.Abs() < grace { // the clocks may differ
		return &reconciler.BlockedError{
			On: denied.Kind + "/" + denied.Name, Reason: pcapi.CloudUnavailableReason, Message: cause.Error(), RequeueAfter: grace - age,
		}
	}
	return reconciler.Stalled(pcapi.CloudUnavailableReason, 0, cause)
}

// LogAccess logs why an object may not use what it refers to, unless its status has the message
// already, which leaves that open.
func LogAccess(ctx context.Context, obj reconciler.Object, denied *tenancy.AccessError, message string) {
	if ready := meta.FindStatusCondition(obj.GetConditions(), pcapi.ReadyCondition); ready == nil || ready.Message != message {
		log.FromContext(ctx).Info("the object may not use what it refers to", "refersTo", denied.Kind+"/"+denied.Name, "cause", denied.Cause())
	}
}
