package reconciler

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// EventCondition is a condition whose changes are recorded as events.
type EventCondition struct {
	Type string
	// Warnings are reasons of the condition that need attention whether the object is
	// Ready or not. If there are any, changes to them alone are recorded, as warnings, and
	// beside Ready. With none, each change is recorded, and Ready decides the level.
	Warnings []string
}

// EventConditions returns conditions each of whose changes is recorded.
func EventConditions(kinds ...string) []EventCondition {
	conditions := make([]EventCondition, len(kinds))
	for i, kind := range kinds {
		conditions[i].Type = kind
	}
	return conditions
}

// record logs each transition of a condition, and records those of the kind's
// event conditions as events, once each. Ready is recorded only if no condition before it
// in the list is, or if a person should look for another reason than that condition has; a
// condition that begins as False is left to Ready, but for its Warnings.
func (r *Reconciler[T, S]) record(ctx context.Context, before, obj T) {
	logTransitions(ctx, before.GetConditions(), obj.GetConditions())
	recorded, level := false, corev1.EventTypeNormal
	if needsAttention(before, obj) {
		level = corev1.EventTypeWarning
	}
	ready := meta.FindStatusCondition(obj.GetConditions(), pcapi.ReadyCondition)
	for _, condition := range r.Kind.EventConditions() {
		kind := condition.Type
		was, is := meta.FindStatusCondition(before.GetConditions(), kind), meta.FindStatusCondition(obj.GetConditions(), kind)
		switch {
		case is == nil, !transition(was, is):
			continue
		case len(condition.Warnings) > 0:
			if slices.Contains(condition.Warnings, is.Reason) {
				r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, is.Reason, kind, "%s", is.Message)
			}
			continue
		case kind == pcapi.ReadyCondition && recorded, kind != pcapi.ReadyCondition && was == nil && is.Status == metav1.ConditionFalse:
			continue
		}
		as := level
		if level == corev1.EventTypeWarning && is.Status == metav1.ConditionTrue && ready != nil && is.Reason != ready.Reason {
			as = corev1.EventTypeNormal
		} else {
			recorded = true
		}
		r.Recorder.Eventf(obj, nil, as, is.Reason, kind, "%s", is.Message)
	}
}

// maxWarned bounds the objects whose last warning about an annotation is remembered.
const maxWarned = 10_000

// warnings remembers what was warned of. The zero value is ready for use.
type warnings struct {
	once sync.Once
	// last has a hash of the last text of each object.
	last *lru.Cache
	seed maphash.Seed
}

// isNew reports whether a text is another one than the last of an object.
func (w *warnings) isNew(uid types.UID, text string) bool {
	w.once.Do(func() { w.last, w.seed = lru.New(maxWarned), maphash.MakeSeed() })
	last, _ := w.last.Get(uid)
	if text == "" {
		w.last.Remove(uid)
		return false
	}
	hash := maphash.String(w.seed, text)
	w.last.Add(uid, hash)
	return last != any(hash)
}

func (w *warnings) forget(uid types.UID) { w.isNew(uid, "") }

// warnOfAnnotations records once that the operator does not understand an annotation.
func (r *Reconciler[T, S]) warnOfAnnotations(obj T) {
	if text := pcapi.UnknownAnnotation(obj); r.warnings.isNew(obj.GetUID(), text) {
		r.Recorder.Eventf(obj, nil, corev1.EventTypeWarning, pcapi.UnknownAnnotationReason, "Read", "%s", text)
	}
}

// transition reports whether a condition changed in more than its message.
func transition(was, is *metav1.Condition) bool {
	return was == nil || was.Status != is.Status || was.Reason != is.Reason
}

// logTransitions logs a line for each condition that changed. Reconciling and Stalled
// follow from the outcome that Ready reports: if it changed too, its line says which holds.
func logTransitions(ctx context.Context, before, after []metav1.Condition) {
	logger := log.FromContext(ctx)
	ready := meta.FindStatusCondition(after, pcapi.ReadyCondition)
	readyChanged := ready != nil && transition(meta.FindStatusCondition(before, pcapi.ReadyCondition), ready)
	implied := func(kind string) bool {
		return readyChanged && (kind == pcapi.ReconcilingCondition || kind == pcapi.StalledCondition)
	}
	for i := range after {
		is := &after[i]
		if implied(is.Type) || !transition(meta.FindStatusCondition(before, is.Type), is) {
			continue
		}
		fields := []any{"condition", is.Type, "status", is.Status, "reason", is.Reason, "message", is.Message}
		if is == ready && meta.IsStatusConditionTrue(after, pcapi.StalledCondition) {
			fields = append(fields, "stalled", true)
		}
		logger.Info("condition changed", fields...)
	}
	for i := range before {
		if kind := before[i].Type; !implied(kind) && meta.FindStatusCondition(after, kind) == nil {
			logger.Info("condition removed", "condition", kind)
		}
	}
}

// needsAttention reports whether a person should look: the object stalled, a
// reconcile failed, or an object that was Ready no longer is, although nobody
// edited or deleted it.
func needsAttention(before, obj Object) bool {
	is := obj.GetConditions()
	ready := meta.FindStatusCondition(is, pcapi.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return false
	}
	was := meta.FindStatusCondition(before.GetConditions(), pcapi.ReadyCondition)
	lost := obj.GetDeletionTimestamp().IsZero() && was != nil && was.Status == metav1.ConditionTrue && was.ObservedGeneration == obj.GetGeneration()
	return lost || ready.Reason == pcapi.ErrorReason || meta.IsStatusConditionTrue(is, pcapi.StalledCondition)
}
