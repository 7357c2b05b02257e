package external

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// RecheckSoon is how often something that a person must correct in the cloud is looked at again.
	RecheckSoon = time.Minute
	// Safety is how long a reconcile relies on an event of the inventory.
	Safety = time.Minute

	// firstBackoff and lastBackoff bound the delay after calls that fail in a row.
	firstBackoff = time.Second
	lastBackoff  = 2 * time.Minute
	// quiet is how long an accepted deletion may take before the status reports it.
	quiet = 5 * time.Second
	// slowProof is the delay from which the next listing no longer enqueues an object that
	// waits for the proof that its resource is gone.
	slowProof = 30 * time.Second
	// tolerated is how many looks on demand may fail in a row before the status of
	// an object that is Ready reports it: half a minute.
	tolerated = 5
)

// Outcomes is what the parts of a lifecycle share: the options, and what this process remembers of the
// objects. Its methods return the outcomes of failed calls and of waits.
type Outcomes[R any] struct {
	Options
	// Tracker holds the open creates of this process.
	Tracker *pending.Tracker
	// Backoff delays calls that change something, and Looks those that look.
	Backoff, Looks workqueue.TypedRateLimiter[types.UID]
}

// newOutcomes returns the outcomes of a lifecycle with these options.
func newOutcomes[R any](opts Options) *Outcomes[R] {
	backoff := func() workqueue.TypedRateLimiter[types.UID] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff)
	}
	opts.Elsewhere = cmp.Or(opts.Elsewhere, tenancy.Elsewhere)
	return &Outcomes[R]{Options: opts, Tracker: pending.NewTracker(), Backoff: backoff(), Looks: backoff()}
}

// forget drops what is remembered of an object that is gone.
func (out *Outcomes[R]) forget(uid types.UID) {
	out.Tracker.Forget(uid)
	out.Backoff.Forget(uid)
	out.Looks.Forget(uid)
}

// unmet returns why a step with these needs cannot run now; nil if it can.
func unmet[R any](o *Observation[R], needs reconciler.Needs) error {
	switch {
	case !needs.Has(reconciler.NeedsCloud):
		return nil
	case !o.Available():
		return reconciler.Blocked("Cloud/"+o.Cloud, pcapi.CloudUnavailableReason, "waiting for Cloud %q: %s", o.Cloud, o.View.Unavailable)
	case o.View.Braked && needs.Has(reconciler.NeedsBrakeOff):
		return reconciler.Blocked("Cloud/"+o.Cloud, pcapi.BrakedReason,
			"the brake of Cloud %q is on: nothing is created or deleted there until it is acknowledged; see its Braked condition", o.Cloud)
	}
	return nil
}

// blocked waits for the Cloud, and enqueues the object when the Cloud is available.
func (out *Outcomes[R]) blocked(obj client.Object, o *Observation[R], format string, args ...any) error {
	o.Inventory.EnqueueWhenAvailable(out.ref(obj), o.View)
	return reconciler.Blocked("Cloud/"+o.Cloud, pcapi.CloudUnavailableReason, format, args...)
}

// Failed returns the outcome of a failed call. A failure that concerns the cloud
// as a whole is reported by its Cloud, for which a poll is requested.
// An error that is an outcome already is returned as it is.
func (out *Outcomes[R]) Failed(obj client.Object, o *Observation[R], err error) error {
	if reconciler.Reason(err) != "" {
		return err
	}
	if unavailable(err) || (!out.OnDemand && cloud.Is(err, cloud.Conflict)) {
		o.Inventory.RequestPoll()
	}
	return out.outcomeOf(obj, o, out.Backoff, err)
}

// ChangeFailed returns the outcome of a failed change of resource id. That it does not
// exist may come from a read that lags behind: a look decides.
func (out *Outcomes[R]) ChangeFailed(obj client.Object, o *Observation[R], id string, err error) error {
	if !notFound(err) {
		return out.Failed(obj, o, err)
	}
	if !out.OnDemand {
		o.Inventory.EnqueueAfterListing(out.ref(obj), out.Clock())
	}
	return reconciler.Wait(out.Backoff.When(obj.GetUID()), pcapi.NotFoundReason,
		"the cloud does not show %s %s at the moment: it is changed when a listing shows it", out.Noun, id)
}

// Repeated records that the cloud answered a change of the resource, and reports
// whether it answered the same a short time ago, so that it did not apply it then.
// Later, somebody else changed the resource again.
func (out *Outcomes[R]) Repeated(obj client.Object, o *Observation[R], change string) bool {
	now, digest := out.Clock(), fnv.New64a()
	_, _ = fmt.Fprint(digest, obj.GetGeneration(), " ", change)
	before := out.Tracker.Changed(obj.GetUID(), digest.Sum64(), now)
	return now.Sub(before) < 2*o.View.Settings.PollInterval+lastBackoff
}

// NotApplied returns the outcome of a change of resource id that the cloud accepted and
// does not show. The caller must not remember an answer that shows it: a listing decides.
func (out *Outcomes[R]) NotApplied(obj client.Object, o *Observation[R], id string) error {
	return reconciler.Wait(max(out.Backoff.When(obj.GetUID()), o.View.Settings.PollInterval), pcapi.ProgressingReason,
		"the cloud accepted a change of %s %s and does not show it: it is sent again", out.Noun, id)
}

// unavailable reports whether an error says more of the cloud than of the one call.
func unavailable(err error) bool {
	return cloud.Is(err, cloud.Unavailable, cloud.Misconfigured, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable)
}

// outcomeOf returns the outcome of a failed call, delayed by backoff.
func (out *Outcomes[R]) outcomeOf(obj client.Object, o *Observation[R], backoff workqueue.TypedRateLimiter[types.UID], err error) error {
	switch {
	case deleted(obj) && cloud.KindOf(err) != "" && !unavailable(err) && !cloud.Is(err, cloud.Throttled, cloud.NotFoundUnproven, cloud.Displaced):
		return retried(obj, backoff, pcapi.RejectedReason, cloud.Public(err))
	case cloud.Is(err, cloud.Throttled):
		wait := max(cloud.RetryAfter(err), time.Second)
		if out.OnDemand {
			wait = max(wait, backoff.When(obj.GetUID()))
		}
		return reconciler.Wait(wait, pcapi.PendingReason, "%v", cloud.Public(err))
	case unavailable(err), cloud.Is(err, cloud.Conflict, cloud.NotFoundUnproven):
		o.Inventory.EnqueueWhenAvailable(out.ref(obj), o.View)
		return reconciler.Wait(backoff.When(obj.GetUID()), pcapi.CloudUnavailableReason, "%v", cloud.Public(err))
	case cloud.Is(err, cloud.Busy):
		return reconciler.Wait(backoff.When(obj.GetUID()), pcapi.ProgressingReason, "%v", cloud.Public(err))
	case cloud.Is(err, cloud.Failed):
		return reconciler.Wait(backoff.When(obj.GetUID()), pcapi.OperationFailedReason, "%v", cloud.Public(err))
	case cloud.Is(err, cloud.Displaced):
		return displacedOutcome(obj, err)
	case cloud.Is(err, cloud.NeedsStop):
		return reconciler.Stalled(pcapi.NeedsRestartReason, controller.RecheckRefused, cloud.Public(err))
	case cloud.Is(err, cloud.Quota, cloud.NoHost):
		return reconciler.Wait(RecheckSoon, noRoom(err), "%v", cloud.Public(err))
	case cloud.Is(err, cloud.Forbidden):
		return retried(obj, backoff, pcapi.RejectedReason, cloud.Public(err))
	case cloud.Is(err, cloud.Unsupported):
		return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, cloud.Public(err))
	case cloud.KindOf(err) != "":
		return reconciler.Stalled(pcapi.RejectedReason, controller.RecheckRefused, cloud.Public(err))
	default:
		return err
	}
}

// displacedOutcome returns the outcome for a resource that exists where the operator changes nothing.
func displacedOutcome(obj client.Object, err error) error {
	if !deleted(obj) {
		return reconciler.Stalled(pcapi.DriftReason, RecheckSoon, cloud.Public(err))
	}
	return reconciler.Stalled(pcapi.BlockedReason, RecheckSoon, fmt.Errorf(
		"%w, after which it is deleted, or set spec.deletionPolicy to Orphan to release this object", cloud.Public(err)))
}

// noRoom returns the reason of an error that says that the cloud has no room.
func noRoom(err error) string {
	if cloud.Is(err, cloud.NoHost) {
		return pcapi.UnschedulableReason
	}
	return pcapi.QuotaExceededReason
}

// Retried returns the outcome of a change that the cloud refuses for a reason that may pass.
func (out *Outcomes[R]) Retried(obj client.Object, reason string, cause error) error {
	return retried(obj, out.Backoff, reason, cause)
}

// retried returns the outcome of a call that was refused for a reason that may pass. A
// deletion is always sent again, since an edit of the spec seldom corrects it. The object is
// Stalled unless the reason passes by itself.
func retried(obj client.Object, backoff workqueue.TypedRateLimiter[types.UID], reason string, cause error) error {
	wait := backoff.When(obj.GetUID())
	cause = again(cause, wait)
	if cloud.Is(cause, cloud.Busy, cloud.Failed) {
		return reconciler.Wait(wait, pcapi.ProgressingReason, "%v", cause)
	}
	return reconciler.Stalled(reason, wait, cause)
}

// again adds to cause when the call is sent again.
func again(cause error, after time.Duration) error {
	return fmt.Errorf("%w; tried again after %s, then at growing intervals of at most %s, or at once when the annotation %s changes",
		cause, after, lastBackoff, pcapi.ReconcileRequestedAtAnnotation)
}

// unsupported returns the outcome on a cloud that has no such resources.
func (out *Outcomes[R]) unsupported(o *Observation[R]) error {
	if len(out.Needs) == 0 || !o.Available() || slices.ContainsFunc(out.Needs, o.Capabilities().Has) {
		return nil
	}
	return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf(
		"Cloud %q has no %ss: %s", o.Cloud, out.Noun, out.Elsewhere))
}

// Progress returns the outcome for a resource that is in transition or broken; nil if it is neither.
func (l *Lifecycle[T, R, S]) Progress(r R) error { return l.progress(l.kind.Identify(r)) }

// progress is Progress for the resource with this identity.
func (out *Outcomes[R]) progress(identity Identity) error {
	switch identity.State {
	case cloud.StateBuilding:
		return reconciler.Wait(Safety, pcapi.CreatingReason, "the cloud is building %s %s", out.Noun, identity.ID)
	case cloud.StateDeleting:
		return reconciler.Wait(Safety, pcapi.DeletingReason, "%s %s is being deleted in the cloud, and not by this operator", out.Noun, identity.ID)
	case cloud.StateError:
		return reconciler.Stalled(pcapi.ServerErrorReason, controller.RecheckRefused, cloud.Public(&cloud.Error{
			Kind: cloud.Failed, Op: fmt.Sprintf("the cloud reports %s %s in error", out.Noun, identity.ID), Detail: cmp.Or(identity.Fault, "look there for the cause"),
		}))
	case cloud.StateUnknown:
		op := fmt.Sprintf("the cloud reports %s %s in a state that this operator does not know", out.Noun, identity.ID)
		if identity.Fault == "" {
			return reconciler.Stalled(pcapi.UnknownStateReason, controller.RecheckRefused, errors.New(op))
		}
		return reconciler.Stalled(pcapi.UnknownStateReason, controller.RecheckRefused, cloud.Public(&cloud.Error{Kind: cloud.Failed, Op: op, Detail: strconv.Quote(identity.Fault)}))
	default:
		return nil
	}
}

// Moved is the outcome for an object whose resource is on the Cloud that its spec named before.
func (out *Outcomes[R]) Moved(o *Observation[R], id string) error {
	return reconciler.Stalled(pcapi.DriftReason, controller.RecheckRefused, fmt.Errorf(
		"%s %s is on Cloud %q already, which spec.cloudRef named before: set it back to that, or delete this %[4]s and create another", out.Noun, id, o.Cloud, out.Kind))
}

// lost is the outcome for an object whose recorded resource is gone. Where no
// event reports that it is back, it is looked for again.
func (out *Outcomes[R]) lost(id string) error {
	recheck := time.Duration(0)
	if out.OnDemand {
		recheck = RecheckSoon
	}
	return reconciler.Stalled(pcapi.LostReason, recheck, fmt.Errorf(
		"%s %s is gone from the cloud and not by this operator; it is not created again: %s", out.Noun, id, out.LostAdvice))
}

// Unproved is the outcome for a recorded or imported resource that the cloud does not
// show, as long as that does not prove that it is gone.
func (out *Outcomes[R]) Unproved(o *Observation[R], id string) error {
	return &reconciler.WaitError{
		After: out.untilProof(o), Reason: pcapi.NotFoundReason, Quiet: o.SettleTimeLeft <= 2*time.Second,
		Message: fmt.Sprintf("the cloud does not show %s %s at the moment; nothing is done until a complete listing confirms it after the Cloud's settleTime%s", out.Noun, id, incompleteNote(o)),
	}
}

// untilProof returns when to look again for a resource that the cloud does not
// show. Once the settle time has passed, the next listing enqueues the object.
func (out *Outcomes[R]) untilProof(o *Observation[R]) time.Duration {
	switch {
	case o.SettleTimeLeft > 0:
		return o.SettleTimeLeft
	case out.OnDemand:
		return time.Second
	}
	return Safety
}

// unconfirmed waits for the proof that a resource which is being deleted is gone. The
// status reports it only once it takes long.
func (out *Outcomes[R]) unconfirmed(obj client.Object, o *Observation[R], id string) *reconciler.WaitError {
	return reportLate(obj, o, &reconciler.WaitError{
		After: out.untilProof(o), Reason: pcapi.RequestedReason,
		Message: fmt.Sprintf("the cloud does not show %s %s any more; waiting for a complete listing that confirms it%s", out.Noun, id, incompleteNote(o)),
	})
}

// incompleteNote adds to the message of a wait for a complete listing that listings are incomplete.
func incompleteNote[R any](o *Observation[R]) string {
	if !o.Incomplete {
		return ""
	}
	return ": " + incomplete(o)
}

// incomplete returns why a complete listing is not available.
func incomplete[R any](o *Observation[R]) string {
	return fmt.Sprintf("the listing of Cloud %q lacks servers that exist, see its condition Conformant", o.Cloud)
}

// underDeletion waits for a deletion that the cloud works on. The status reports
// it only once it takes long.
func (out *Outcomes[R]) underDeletion(obj client.Object, o *Observation[R], id string) error {
	return reportLate(obj, o, &reconciler.WaitError{After: Safety, Reason: pcapi.RequestedReason, Message: out.deleting(id)})
}

// protected is the outcome of the deletion of an object whose resource is not deleted
// while deletion protection is on.
func (out *Outcomes[R]) protected(id, by string) error {
	if by != "" {
		by = " of " + by
	}
	return reconciler.Stalled(pcapi.BlockedReason, controller.RecheckRefused, fmt.Errorf(
		"deletion protection is on, so %s %s is kept: remove the annotation %s%s to delete it", out.Noun, id, pcapi.DeletionProtectionAnnotation, by))
}

// protected reports whether an object is protected from deletion, by itself or by another object.
func protected(obj client.Object, by string) bool { return pcapi.Protected(obj) || by != "" }

// reportLate makes the wait of a deletion quiet until the deletion takes long, which
// the object is reconciled again to report.
func reportLate[R any](obj client.Object, o *Observation[R], wait *reconciler.WaitError) *reconciler.WaitError {
	if left := obj.GetDeletionTimestamp().Add(quiet).Sub(o.Now); left > 0 {
		wait.After, wait.Quiet = min(wait.After, left), true
	}
	return wait
}

func (out *Outcomes[R]) deleting(id string) string {
	return "the cloud is deleting " + out.Noun + " " + id
}
