package reconciler

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/jitter"
)

// staleDelay is how long a reconcile that met a conflict waits for the cache to catch up.
const staleDelay = 50 * time.Millisecond

// lateWrite is how long after its error a write of a status may take effect: the API server ends requests
// that take a minute. No event reports that to the object's controller, so the object is reconciled again then,
// as are the objects whose status an earlier process may have written just before this one began.
const lateWrite = time.Minute

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

// finish is the one exit of a reconcile. It sets the summary conditions and
// observedGeneration, writes the status once and only if it changed, and turns
// the outcome into the result.
func (r *Reconciler[T, S]) finish(w *work, before, obj T, obs S, summary Summary, outcome error) (ctrl.Result, error) {
	conditions := obj.GetConditions()
	result, err := summarize(&conditions, summary, outcome)
	acting := r.mayAct(w)
	if acting {
		setObservedGeneration(obj, conditions)
	} else {
		// It only records what it made. Its conditions would replace those of the process that may act,
		// until something enqueues the object there.
		obj.SetConditions(before.GetConditions())
	}
	// A StalledError must not be written onto an object that another manager has
	// changed meanwhile.
	resend := !IsStalled(outcome) && acting
	ctx, cancel := w.recording()
	defer cancel()
	patchErr := r.patchStatus(ctx, before, obj, resend)
	gone, _ := errors.AsType[*goneError](patchErr)
	switch {
	case gone != nil && r.claims.has(obj.GetUID()) && obj.GetDeletionTimestamp().IsZero():
		return r.abandonIfClaimed(w, obj)
	case apierrors.IsInvalid(patchErr):
		result, outcome = ctrl.Result{RequeueAfter: r.reject(ctx, before, obj, patchErr)}, patchErr
		err = nil
	case patchErr != nil && gone == nil:
		if mayTakeEffect(patchErr) {
			r.unanswered.add(obj.GetUID(), lateWrite)
		}
		return requeue(errors.Join(err, patchErr))
	default:
		r.rejections.forget(obj.GetUID())
	}
	r.record(ctx, before, obj)
	if r.Reported != nil {
		r.Reported(obj, obs, outcome)
	}
	if err == nil {
		result.RequeueAfter = earliest(result.RequeueAfter, r.untilWritten(before))
	}
	return result, err
}

// untilWritten returns the time until no earlier write of the object's status can take effect any more; 0 if none can.
func (r *Reconciler[T, S]) untilWritten(obj T) time.Duration {
	left := r.unanswered.left(obj.GetUID(), lateWrite)
	if since := time.Since(r.began); r.Leading != nil && len(obj.GetConditions()) > 0 && since < lateWrite {
		left = max(left, lengthened(lateWrite-since))
	}
	return left
}

// mayTakeEffect reports whether the write that failed with err may have taken effect, or still may.
func mayTakeEffect(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return true
	default:
		return false
	}
}

// summarize sets Ready, Reconciling and Stalled from the outcome, as kstatus
// defines them. A periodic reconcile of an object in sync has low priority; a
// reconcile that waits for something keeps the priority of its request.
func summarize(conditions *[]metav1.Condition, summary Summary, outcome error) (ctrl.Result, error) {
	ready := metav1.Condition{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Message: messageOf(outcome)}
	reconciling := &metav1.Condition{Type: pcapi.ReconcilingCondition, Status: metav1.ConditionTrue, Message: ready.Message}
	var stalled *metav1.Condition
	var result ctrl.Result
	var err error

	if wait, ok := errors.AsType[*WaitError](outcome); ok {
		ready.Reason, reconciling.Reason = wait.Reason, pcapi.ProgressingReason
		result.RequeueAfter = lengthened(wait.After)
	} else if blocked, ok := errors.AsType[*BlockedError](outcome); ok {
		ready.Reason, reconciling.Reason = blocked.Reason, blocked.Reason
		result.RequeueAfter = blocked.RequeueAfter
	} else if stall, ok := errors.AsType[*StalledError](outcome); ok {
		ready.Reason, reconciling = stall.Reason, nil
		stalled = &metav1.Condition{Type: pcapi.StalledCondition, Status: metav1.ConditionTrue, Reason: stall.Reason, Message: ready.Message}
		result.RequeueAfter = lengthened(stall.Recheck)
	} else if outcome != nil {
		ready.Reason, reconciling.Reason = pcapi.ErrorReason, pcapi.ErrorReason
		err = outcome
	} else {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, summary.Reason, summary.Message
		reconciling = nil
		if summary.RequeueAfter > 0 {
			result.RequeueAfter, result.Priority = summary.RequeueAfter, new(handler.LowPriority)
		}
	}

	meta.SetStatusCondition(conditions, ready)
	setOrRemove(conditions, pcapi.ReconcilingCondition, reconciling)
	setOrRemove(conditions, pcapi.StalledCondition, stalled)
	return result, err
}

func setOrRemove(conditions *[]metav1.Condition, kind string, c *metav1.Condition) {
	if c == nil {
		meta.RemoveStatusCondition(conditions, kind)
		return
	}
	meta.SetStatusCondition(conditions, *c)
}

// pause reports that the object is not reconciled. Ready stays as it is.
func (r *Reconciler[T, S]) pause(w *work, obj T) (ctrl.Result, error) {
	if r.Paused != nil {
		r.Paused(obj)
	}
	before := obj.DeepCopyObject().(T)
	conditions := obj.GetConditions()
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: pcapi.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: pcapi.PausedReason,
		Message: "the object is paused by the annotation " + pcapi.PausedAnnotation + ": remove the annotation or set it to \"false\" to continue",
	})
	obj.SetConditions(conditions)
	return requeue(r.writeConditions(w, before, obj))
}

// waitForEarlier reports that an earlier object of this name, which Kubernetes
// does not show any more, is still being deleted. Otherwise both would use the
// name at a time.
func (r *Reconciler[T, S]) waitForEarlier(w *work, obj T, why string) error {
	before := obj.DeepCopyObject().(T)
	conditions := obj.GetConditions()
	_, _ = summarize(&conditions, Summary{}, Wait(0, pcapi.ProgressingReason,
		"an earlier object of this name is still being deleted%s", why))
	obj.SetConditions(conditions)
	_, err := requeue(r.writeConditions(w, before, obj))
	return err
}

// writeConditions writes conditions that say nothing about the spec, and records them.
func (r *Reconciler[T, S]) writeConditions(w *work, before, obj T) error {
	ctx, cancel := w.recording()
	defer cancel()
	err := r.patchStatus(ctx, before, obj, true)
	if _, gone := errors.AsType[*goneError](err); err != nil && !gone {
		return err
	}
	r.record(ctx, before, obj)
	return nil
}

// setObservedGeneration is the one place where observedGeneration is written.
func setObservedGeneration[T Object](obj T, conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].ObservedGeneration = obj.GetGeneration()
	}
	obj.SetConditions(conditions)
	obj.SetObservedGeneration(obj.GetGeneration())
}

// requeue reconciles an object again whose read was stale, without an error.
func requeue(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleDelay}, nil
	}
	return ctrl.Result{}, err
}

func messageOf(outcome error) string {
	if outcome == nil {
		return ""
	}
	return Cut(outcome.Error(), maxMessage)
}

// Cut returns the first most bytes of a text, less a letter that does not fit.
func Cut(text string, most int) string {
	if len(text) > most {
		text = strings.Clone(strings.ToValidUTF8(text[:most], "")) // does not keep the rest in memory
	}
	return text
}

// lengthened returns d with up to a tenth more, so that objects that wait for the same
// time are not all reconciled at the same moment.
func lengthened(d time.Duration) time.Duration {
	return d + jitter.Below(d/10)
}
