package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// firstRejection and lastRejection bound the delay after statuses that the API
	// server refuses in a row.
	firstRejection = 2 * time.Second
	lastRejection  = time.Minute
	// maxCause bounds one cause in a message, in bytes. It may quote the value.
	maxCause = 200
)

// reject stores what is valid of a status that the API server refused, and
// reports the refusal in the summary conditions. First the fields that the
// refusal names keep their stored values; if that is refused too, only the
// summary conditions are stored. It returns the time until the next reconcile.
func (r *Reconciler[T, S]) reject(ctx context.Context, before, obj T, refusal error) time.Duration {
	log.FromContext(ctx).Error(refusal, "the API server refuses the status")
	outcome := Stalled(pcapi.StatusRejectedReason, 0, refusalOf(refusal))
	candidates := []T{before.DeepCopyObject().(T)}
	if valid, ok := r.withoutRefused(before, obj, refusal); ok {
		candidates = slices.Insert(candidates, 0, valid)
	}
	for _, candidate := range candidates {
		conditions := candidate.GetConditions()
		for _, kind := range []string{pcapi.ReadyCondition, pcapi.ReconcilingCondition, pcapi.StalledCondition} {
			meta.RemoveStatusCondition(&conditions, kind)
			if stored := meta.FindStatusCondition(before.GetConditions(), kind); stored != nil {
				conditions = append(conditions, *stored)
			}
		}
		_, _ = summarize(&conditions, Summary{}, outcome)
		setObservedGeneration(candidate, conditions)
		candidate.SetResourceVersion(obj.GetResourceVersion())
		err := r.sendStatus(ctx, before, candidate)
		if err == nil {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(candidate).Elem())
			break
		}
		log.FromContext(ctx).Error(err, "the refusal of the status was not stored")
		if !apierrors.IsInvalid(err) {
			break
		}
	}
	return r.rejections.add(obj)
}

// refusalOf returns the API server's objections, with a bounded part of each.
func refusalOf(err error) error {
	var texts []string
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			texts = append(texts, Cut(cause.Field+": "+cause.Message, maxCause))
		}
	}
	if len(texts) == 0 {
		texts = []string{Cut(err.Error(), maxCause)}
	}
	return fmt.Errorf("the API server refuses the status of this object: %s", strings.Join(texts, "; "))
}

// withoutRefused returns obj with the status fields that a refusal names as they
// are stored; ok is false if it names none.
func (r *Reconciler[T, S]) withoutRefused(before, obj T, refusal error) (valid T, ok bool) {
	fields := refusedFields(refusal)
	stored, errBefore := runtime.DefaultUnstructuredConverter.ToUnstructured(before)
	computed, errObj := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if len(fields) == 0 || errBefore != nil || errObj != nil {
		return valid, false
	}
	from, _ := stored["status"].(map[string]any)
	to, _ := computed["status"].(map[string]any)
	for _, field := range fields {
		delete(to, field)
		if value, had := from[field]; had && to != nil {
			to[field] = value
		}
	}
	valid = r.Kind.New()
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(computed, valid)
	return valid, err == nil
}

// refusedFields returns the fields of the status that a refusal names, such as
// host for status.host and conditions for status.conditions[1].message.
func refusedFields(refusal error) []string {
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	named := map[string]bool{}
	for _, cause := range status.ErrStatus.Details.Causes {
		path, ofStatus := strings.CutPrefix(cause.Field, "status.")
		if end := strings.IndexAny(path, ".["); end >= 0 {
			path = path[:end]
		}
		if ofStatus {
			named[path] = true
		}
	}
	return slices.Sorted(maps.Keys(named))
}

// rejections holds back the objects whose status was refused. The zero value is
// ready for use.
type rejections struct {
	mu sync.Mutex
	of map[types.UID]rejection
	// swept is when the entries that were too old were last removed.
	swept time.Time
}

// rejection is the last refusal of the status of an object.
type rejection struct {
	// version is the resourceVersion of the object then. A change of the object
	// ends the delay.
	version string
	delay   time.Duration
	until   time.Time
}

// add returns the time until the object is reconciled again.
func (r *rejections) add(obj client.Object) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[types.UID]rejection{}
	}
	if time.Since(r.swept) > lastRejection {
		maps.DeleteFunc(r.of, func(_ types.UID, last rejection) bool { return time.Since(last.until) > 2*lastRejection })
		r.swept = time.Now()
	}
	delay := min(max(firstRejection, 2*r.of[obj.GetUID()].delay), lastRejection)
	r.of[obj.GetUID()] = rejection{version: obj.GetResourceVersion(), delay: delay, until: time.Now().Add(delay)}
	return delay
}

// left returns how long the object is held back; 0 if it is not.
func (r *rejections) left(obj client.Object) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.of[obj.GetUID()]
	if !found || last.version != obj.GetResourceVersion() {
		return 0
	}
	return max(0, time.Until(last.until))
}

func (r *rejections) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, uid)
}
