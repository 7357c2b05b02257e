package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/lean"
)

// kube-apiserver can remove an object whose finalizer was stored just before
// (https://github.com/kubernetes/kubernetes/issues/77988): it decides that a
// DELETE need not wait for a finalizer, and does not compare the object's version
// when it removes it. Both requests succeed. Such an object is abandoned: it is
// kept in memory as a deleted object with its finalizer, and reconciled until the
// kind has released it.

const (
	// maxAbandoned bounds the abandoned objects of one kind, and maxAbandonedOfOne those of one namespace, so that
	// one tenant leaves room for others.
	maxAbandoned      = 10_000
	maxAbandonedOfOne = 1_000
	// abandonedDelay is the longest time between two reconciles of an abandoned
	// object: it has no events of its own.
	abandonedDelay = 30 * time.Second
	// claimWindow is how long after its claim an object can be abandoned: longer
	// than the API server works on a request. What disappears later was removed
	// by somebody, such as with a restored etcd.
	claimWindow = 2 * time.Minute
)

var abandonedTotal = sync.OnceValue(func() *prometheus.CounterVec {
	return byKind("abandoned_objects_total",
		"Objects that Kubernetes removed although their claim was stored, by kind. What was created for them is deleted.")
})

var givenUpTotal = sync.OnceValue(func() *prometheus.CounterVec {
	return byKind("abandoned_objects_given_up_total",
		"Abandoned objects that were given up, by kind. The log has what may be left of them in the cloud.")
})

// byKind registers a counter with the label kind.
func byKind(name, help string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "privatecloud", Name: name, Help: help}, []string{"kind"})
	metrics.Registry.MustRegister(c)
	return c
}

type abandonedKey struct{}

// withAbandoned marks the reconcile of an abandoned object, whose metadata is
// changed in memory alone.
func withAbandoned(ctx context.Context) context.Context {
	return context.WithValue(ctx, abandonedKey{}, true)
}

func isAbandoned(ctx context.Context) bool { return ctx.Value(abandonedKey{}) != nil }

// isClaimed reports whether an object that is gone is abandoned: this process
// has just stored its claim, or somebody had removed the finalizer of an object that must
// have it, and the object has not been released.
func (r *Reconciler[T, S]) isClaimed(obj T) bool {
	switch {
	case !r.External, r.Live == nil, r.releases.has(obj.GetUID()), deleting(obj), pcapi.Paused(obj):
		return false
	case controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer()):
		return r.claims.has(obj.GetUID())
	default:
		return r.ClaimOf != nil && r.ClaimOf(obj) != nil
	}
}

// abandonIfClaimed ends a reconcile whose object is gone. What this process has
// made for it is deleted at once.
func (r *Reconciler[T, S]) abandonIfClaimed(w *work, obj T) (ctrl.Result, error) {
	if !r.isClaimed(obj) {
		return ctrl.Result{}, nil
	}
	r.abandon(w.record, obj)
	waits, err := r.reconcileAbandoned(w, client.ObjectKeyFromObject(obj))
	return ctrl.Result{RequeueAfter: waits.after}, err
}

// abandon keeps an object as a deleted one, with its claim.
func (r *Reconciler[T, S]) abandon(ctx context.Context, obj T) {
	kept := obj.DeepCopyObject().(T)
	if r.ClaimOf != nil {
		setClaim(kept, r.Kind.Finalizer(), r.ClaimOf(kept))
	}
	now := metav1.Now()
	kept.SetDeletionTimestamp(&now)
	logger := log.FromContext(ctx).WithValues("namespace", obj.GetNamespace(), "name", obj.GetName(), "uid", obj.GetUID())
	known := r.abandoned.has(kept)
	claim := []any{"claimedName", kept.GetAnnotations()[pcapi.ClaimedNameAnnotation], "claimedCloud", kept.GetAnnotations()[pcapi.ClaimedCloudAnnotation]}
	keepClaim(kept, r.Kind.Finalizer())
	if !r.abandoned.put(kept) {
		logger.Error(errors.New("too many abandoned objects, in all or in this namespace"), "what was created for an object that Kubernetes removed is not deleted", claim...)
		r.drop(kept)
		return
	}
	if !known {
		abandonedTotal().WithLabelValues(nameOf(kept)).Inc()
		logger.Info("Kubernetes removed the object although its claim was stored: it is reconciled as a deleted object", claim...)
	}
}

// Abandoned returns the abandoned objects, in no particular order. They are shared.
func (r *Reconciler[T, S]) Abandoned() []T { return r.abandoned.all() }

// earlier is what an object waits for that has the name of abandoned ones.
type earlier struct {
	// after is the time until their next reconcile; 0 if all are released.
	after time.Duration
	// why says what one of them waits for, to be appended to a message; "" for a moment.
	why string
}

// reconcileAbandoned reconciles the abandoned objects that had a name.
func (r *Reconciler[T, S]) reconcileAbandoned(w *work, name types.NamespacedName) (all earlier, err error) {
	persistent := w.persist()
	for _, obj := range r.abandoned.named(name) {
		one, failure := r.reconcileDeleted(persistent, obj)
		all.after, all.why = earliest(all.after, one.after), cmp.Or(all.why, one.why)
		err = errors.Join(err, failure)
	}
	return all, err
}

// reconcileDeleted reconciles one abandoned object. Its status is kept in
// memory: it may hold the only record of an id.
func (r *Reconciler[T, S]) reconcileDeleted(w *work, obj T) (earlier, error) {
	if owned, wait, err := r.own(w, obj); !owned {
		if err != nil || wait > 0 {
			return earlier{after: cmp.Or(wait, abandonedDelay)}, err
		}
		if r.giveUp(w, obj, errDisowned, "") {
			return earlier{}, nil
		}
		return earlier{after: abandonedDelay, why: whyKept(obj, errDisowned)}, nil
	}
	before := obj.DeepCopyObject().(T)
	w.interrupted = false
	obs, outcome := r.Kind.Observe(w.ctx, obj)
	if outcome == nil {
		outcome = r.run(w, obj, obs, r.Kind.Plan(obj, obs))
	}
	switch {
	case errors.Is(outcome, ErrUnknown), apierrors.IsConflict(outcome), w.interrupted:
		r.abandoned.put(obj)
		return earlier{after: leadingDelay}, nil
	}
	summary := r.Kind.Report(obj, obs, outcome)
	if r.released(obj) {
		r.abandoned.remove(obj)
		if r.Disowned != nil {
			r.Disowned(obj)
		}
		r.recordRelease(w.ctx, obj, summary)
		return earlier{}, nil
	}
	conditions := obj.GetConditions()
	result, err := summarize(&conditions, summary, outcome)
	setObservedGeneration(obj, conditions)
	if r.giveUp(w, obj, outcome, summary.Message) {
		return earlier{}, nil
	}
	r.abandoned.put(obj)
	waits := earlier{after: min(cmp.Or(result.RequeueAfter, abandonedDelay), abandonedDelay)}
	if wait, ok := errors.AsType[*WaitError](outcome); !ok || !wait.Quiet {
		r.record(w.ctx, before, obj)
		waits.why = whyKept(obj, outcome)
	}
	return waits, err
}

// whyKept says why an abandoned object is not released, to be appended to a message.
func whyKept(obj Object, outcome error) string {
	return fmt.Sprintf(". Kubernetes has already removed it, so nobody can edit it. The operator tries until %s, and then leaves in the cloud what may belong to it. Cause: %s",
		givenUpAt(obj, outcome).UTC().Format(time.RFC3339), messageOf(outcome))
}

const (
	// Patience is how long an abandoned object may need a decision of a user, which nobody can take for it, before
	// another object of its name goes on.
	Patience = 15 * time.Minute
	// longestDeletion is how long the deletion of an abandoned object may take in all, such as during an outage of
	// the cloud, while the brake is on, or as long as VMs use a Network.
	longestDeletion = 24 * time.Hour
)

// givenUpAt returns when an abandoned object whose conditions report this outcome is given up.
func givenUpAt(obj Object, outcome error) time.Time {
	deleted := obj.GetDeletionTimestamp().Time
	stalled := meta.FindStatusCondition(obj.GetConditions(), pcapi.StalledCondition)
	switch {
	case Reason(outcome) == pcapi.ApprovalRequiredReason:
		return deleted.Add(Patience)
	case IsStalled(outcome) && stalled != nil && stalled.LastTransitionTime.After(deleted):
		return stalled.LastTransitionTime.Add(Patience)
	case IsStalled(outcome):
		return deleted.Add(Patience)
	}
	return deleted.Add(longestDeletion)
}

// giveUp drops an abandoned object that is not released in time, and reports whether it did. The log says what may be
// left of it in the cloud: its claim, and what its status reports.
func (r *Reconciler[T, S]) giveUp(w *work, obj T, outcome error, left string) bool {
	if outcome == nil || time.Now().Before(givenUpAt(obj, outcome)) {
		return false
	}
	r.abandoned.remove(obj)
	log.FromContext(w.ctx).Info("gave up an object that Kubernetes deleted before its resource", "uid", obj.GetUID(), "message", messageOf(outcome), "left", left,
		"claimedName", obj.GetAnnotations()[pcapi.ClaimedNameAnnotation], "claimedCloud", obj.GetAnnotations()[pcapi.ClaimedCloudAnnotation])
	r.drop(obj)
	return true
}

// drop counts an object whose resource may be left, and drops what is remembered of it.
func (r *Reconciler[T, S]) drop(obj T) {
	givenUpTotal().WithLabelValues(nameOf(obj)).Inc()
	if r.Disowned != nil {
		r.Disowned(obj)
	}
}

// keepClaim removes the metadata that the deletion of an abandoned object does not need: users choose how long it is.
func keepClaim(obj Object, finalizer string) {
	lean.Trim(obj)
	own := maps.Clone(obj.GetAnnotations())
	delete(own, pcapi.ReconcileRequestedAtAnnotation)
	obj.SetAnnotations(own)
	obj.SetLabels(nil)
	obj.SetManagedFields(nil)
	obj.SetFinalizers([]string{finalizer})
	obj.SetOwnerReferences(slices.DeleteFunc(obj.GetOwnerReferences(), func(owner metav1.OwnerReference) bool { return owner.Controller == nil || !*owner.Controller }))
}

// abandoned holds the abandoned objects of a kind. The zero value is ready for use.
type abandoned[T Object] struct {
	mu sync.Mutex
	of map[types.NamespacedName][]T
	n  int
	// in is how many there are in each namespace.
	in map[string]int
}

// put stores an object, or replaces what is stored of it. It reports whether
// there was room.
func (a *abandoned[T]) put(obj T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	if i := indexOf(a.of[key], obj); i >= 0 {
		a.of[key][i] = obj
		return true
	}
	if a.n >= maxAbandoned || a.in[key.Namespace] >= maxAbandonedOfOne {
		return false
	}
	if a.of == nil {
		a.of, a.in = map[types.NamespacedName][]T{}, map[string]int{}
	}
	a.of[key] = append(a.of[key], obj)
	a.n++
	a.in[key.Namespace]++
	return true
}

func (a *abandoned[T]) remove(obj T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	i := indexOf(a.of[key], obj)
	if i < 0 {
		return
	}
	a.n--
	a.in[key.Namespace]--
	if a.in[key.Namespace] == 0 {
		delete(a.in, key.Namespace)
	}
	if a.of[key] = slices.Delete(a.of[key], i, i+1); len(a.of[key]) == 0 {
		delete(a.of, key)
	}
}

func (a *abandoned[T]) has(obj T) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return indexOf(a.of[client.ObjectKeyFromObject(obj)], obj) >= 0
}

// named returns copies of the objects that had a name, oldest first.
func (a *abandoned[T]) named(name types.NamespacedName) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	var copies []T
	for _, obj := range a.of[name] {
		copies = append(copies, obj.DeepCopyObject().(T))
	}
	return copies
}

// all returns the objects in no particular order.
func (a *abandoned[T]) all() (all []T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, objects := range a.of {
		all = append(all, objects...)
	}
	return all
}

// nameOf returns the name of an object's kind.
func nameOf(obj Object) string { return reflect.TypeOf(obj).Elem().Name() }

func indexOf[T Object](objects []T, obj T) int {
	return slices.IndexFunc(objects, func(o T) bool { return o.GetUID() == obj.GetUID() })
}

// claims holds the objects whose claim this process stored within claimWindow.
// The zero value is ready for use.
type claims struct{ recent recent }

func (c *claims) add(uid types.UID)      { c.recent.add(uid, claimWindow) }
func (c *claims) has(uid types.UID) bool { return c.recent.has(uid, claimWindow) }
