package reconciler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// staleDelay is how long a pass that lost a race waits for the cache to catch up.
const staleDelay = 50 * time.Millisecond

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

// settle is the one exit of a pass: the trio and observedGeneration are set
// here, the status is written once and only if it changed, and the verdict
// becomes the result.
func (r *Reconciler[T, S]) settle(ctx context.Context, before, obj T, summary Summary, verdict error) (ctrl.Result, error) {
	conditions := obj.GetConditions()
	result, err := trio(&conditions, summary, verdict)
	r.stamp(obj, conditions)
	// That nothing will change must not be said of what another manager has changed meanwhile.
	_, standstill := errors.AsType[*StalledError](verdict)
	if patchErr := r.patch(ctx, before, obj, standstill); patchErr != nil {
		return again(errors.Join(err, patchErr))
	}
	r.tell(before, obj)
	return result, err
}

// trio sets Ready, Reconciling and Stalled from the verdict, as kstatus reads them.
func trio(conditions *[]metav1.Condition, summary Summary, verdict error) (ctrl.Result, error) {
	ready := metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Message: messageOf(verdict)}
	reconciling := &metav1.Condition{Type: v1alpha1.ReconcilingCondition, Status: metav1.ConditionTrue, Message: ready.Message}
	var stalled *metav1.Condition
	var result ctrl.Result
	var err error

	if wait, ok := errors.AsType[*WaitError](verdict); ok {
		ready.Reason, reconciling.Reason = wait.Reason, v1alpha1.ProgressingReason
		result.RequeueAfter = jitter(wait.After)
	} else if blocked, ok := errors.AsType[*BlockedError](verdict); ok {
		ready.Reason, reconciling.Reason = blocked.Reason, blocked.Reason
		result.RequeueAfter = blocked.Again
	} else if stall, ok := errors.AsType[*StalledError](verdict); ok {
		ready.Reason, reconciling = stall.Reason, nil
		stalled = &metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: stall.Reason, Message: ready.Message}
		result.RequeueAfter = jitter(stall.Recheck)
	} else if verdict != nil {
		ready.Reason, reconciling.Reason = v1alpha1.ErrorReason, v1alpha1.ErrorReason
		err = verdict
	} else {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionTrue, summary.Reason, summary.Message
		reconciling = nil
		result.RequeueAfter = summary.Again
	}

	meta.SetStatusCondition(conditions, ready)
	setOrRemove(conditions, v1alpha1.ReconcilingCondition, reconciling)
	setOrRemove(conditions, v1alpha1.StalledCondition, stalled)
	return result, err
}

func setOrRemove(conditions *[]metav1.Condition, kind string, c *metav1.Condition) {
	if c == nil {
		meta.RemoveStatusCondition(conditions, kind)
		return
	}
	meta.SetStatusCondition(conditions, *c)
}

// pause says that nothing is done, and does nothing. Ready keeps what it last said.
func (r *Reconciler[T, S]) pause(ctx context.Context, before, obj T) (ctrl.Result, error) {
	conditions := obj.GetConditions()
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: v1alpha1.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.PausedReason,
		Message: "nothing is done while the annotation " + v1alpha1.PausedAnnotation + " is \"true\"; remove it to go on",
	})
	obj.SetConditions(conditions)
	if err := r.patch(ctx, before, obj, false); err != nil {
		return again(err)
	}
	r.tell(before, obj)
	return ctrl.Result{}, nil
}

// stamp is the one place where observedGeneration is written.
func (r *Reconciler[T, S]) stamp(obj T, conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].ObservedGeneration = obj.GetGeneration()
	}
	obj.SetConditions(conditions)
	obj.SetObservedGeneration(obj.GetGeneration())
}

// patch writes the status if it differs, and only onto the object it was
// computed for: another of the same name has another UID. What steps wrote of
// the metadata is no difference. If unchanged is set, the write fails with a
// conflict on an object that has changed since it was read.
func (r *Reconciler[T, S]) patch(ctx context.Context, before, obj T, unchanged bool) error {
	before.SetResourceVersion(obj.GetResourceVersion())
	before.SetFinalizers(obj.GetFinalizers())
	before.SetAnnotations(obj.GetAnnotations())
	if equality.Semantic.DeepEqual(before, obj) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, obj, sameObject{client.MergeFrom(before), unchanged}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// tell turns changes of the conditions that make the object's story into
// events, once each. Ready speaks only when no other condition did; a condition
// that begins as False leaves the word to it.
func (r *Reconciler[T, S]) tell(before, obj T) {
	told, level := false, corev1.EventTypeNormal
	if trouble(before, obj) {
		level = corev1.EventTypeWarning
	}
	for _, kind := range slices.Concat(r.Kind.Story(), []string{v1alpha1.ReadyCondition}) {
		was, is := meta.FindStatusCondition(before.GetConditions(), kind), meta.FindStatusCondition(obj.GetConditions(), kind)
		switch {
		case is == nil, was != nil && was.Status == is.Status && was.Reason == is.Reason:
			continue
		case kind == v1alpha1.ReadyCondition && told, kind != v1alpha1.ReadyCondition && was == nil && is.Status == metav1.ConditionFalse:
			continue
		}
		told = true
		r.Recorder.Eventf(obj, nil, level, is.Reason, kind, "%s", is.Message)
	}
}

// trouble tells whether somebody should look: the object stalled, a pass
// failed, or what was ready is not any more, and nobody edited or deletes it.
func trouble(before, obj Object) bool {
	is := obj.GetConditions()
	ready := meta.FindStatusCondition(is, v1alpha1.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return false
	}
	was := meta.FindStatusCondition(before.GetConditions(), v1alpha1.ReadyCondition)
	lost := obj.GetDeletionTimestamp().IsZero() && was != nil && was.Status == metav1.ConditionTrue && was.ObservedGeneration == obj.GetGeneration()
	return lost || ready.Reason == v1alpha1.ErrorReason || meta.IsStatusConditionTrue(is, v1alpha1.StalledCondition)
}

// again has a pass that read something stale made once more, without alarm.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleDelay}, nil
	}
	return ctrl.Result{}, err
}

func messageOf(verdict error) string {
	if verdict == nil {
		return ""
	}
	text := verdict.Error()
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "")
	}
	return text
}

// jitter spreads what was set back together over a tenth of the time.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*float64(d)/10) //nolint:gosec // spreads load, hides nothing
}
