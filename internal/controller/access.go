package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// grace is how long after the creation of an object its Cloud may be created or allow its
// namespace before the object is Stalled: what is applied together is not created at once, and
// many tools give up on an object that is Stalled.
const grace = time.Minute

const (
	// RecheckRefused is how often what was refused is tried again unchanged: a spec, a name, the use of a Cloud.
	RecheckRefused = 10 * time.Minute
	// listingTime is how long after a start an object waits for the first listing of its cloud before its status reports the
	// wait.
	listingTime = 5 * time.Second
)

// AwaitListing returns the outcome of an object while the first listing of its cloud may still be expected, nil after that.
func AwaitListing(view inventory.View, started, now time.Time) error {
	if view.Snapshot != nil || now.Sub(started) >= listingTime {
		return nil
	}
	return &reconciler.WaitError{After: listingTime, Reason: pcapi.CloudUnavailableReason, Message: "the cloud has not been listed yet", Quiet: true}
}

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
