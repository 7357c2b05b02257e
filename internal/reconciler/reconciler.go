package reconciler

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Object is a kind that the engine can reconcile.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
	SetObservedGeneration(int64)
}

// Summary is what an object that is in sync reports.
type Summary struct {
	// Reason and Message go into Ready=True.
	Reason, Message string
	// RequeueAfter is the time until the next reconcile; 0 if only an event
	// enqueues the object.
	RequeueAfter time.Duration
}

// Kind is what a controller supplies. T is the kind, S the observation of one
// reconcile.
type Kind[T Object, S any] interface {
	// New returns an empty object.
	New() T
	// Finalizer returns the kind's finalizer. A deleted object without it is
	// not reconciled.
	Finalizer() string
	// Observe reads what Plan needs. It changes neither the cloud nor Kubernetes
	// objects. An error ends the
	// reconcile as its outcome; the observation is reported as far as it was
	// filled.
	Observe(ctx context.Context, obj T) (S, error)
	// Plan is pure: it returns the steps to run and the outcome that holds after them.
	Plan(obj T, obs S) Plan[T, S]
	// Report is pure: it writes the kind's own status and conditions onto obj.
	// For an object whose finalizer was removed only the summary counts: it is
	// recorded as the last event.
	Report(obj T, obs S, outcome error) Summary
	// EventConditions lists the conditions whose changes are recorded as events, Ready among
	// them: it is recorded only if none before it was.
	EventConditions() []EventCondition
}

// Reconciler reconciles the objects of one kind.
type Reconciler[T Object, S any] struct {
	Client   client.Client
	Kind     Kind[T, S]
	Recorder events.EventRecorder
	// Deadline bounds one reconcile.
	Deadline time.Duration
	// Permit returns the outcome of a reconcile whose next step has needs that
	// are not met now, and nil if they are. A nil Permit allows every step.
	Permit func(obj T, obs S, needs Needs) error
	// Reported is called with each observation once its report is stored in the
	// status. It may be nil.
	Reported func(obj T, obs S, outcome error)
	// Paused is called with an object that is paused, and ends what Reported began. It
	// may be nil.
	Paused func(obj T)
	// Live reads from the API server. After a conflict it shows whether the status
	// can be sent again; with nil, the object is reconciled again.
	Live client.Reader
	// Leading reports whether this process may act. A reconcile has no effect
	// while it returns false. With a nil Leading, no other process ever acts: every effect is
	// allowed, and no status is expected that another process wrote late.
	Leading func() bool
	// Owns returns a function that reports whether an object is this manager's at
	// the moment, and not that of a manager with other Clouds. A reconcile has no
	// effect on an object that is not. A nil Owns: all objects are.
	Owns func(ctx context.Context, obj T) (func() bool, error)
	// Disowned is called with an object that is not this manager's, and drops what
	// is remembered of it. It may be nil.
	Disowned func(obj T)
	// Released sets what the status of a released object says that finalizers of others keep, but for its
	// summary conditions. It may be nil.
	Released func(obj T)
	// Tracer makes a span of each reconcile; nil for none.
	Tracer trace.Tracer
	// History remembers the last steps of objects; nil for none.
	History *History
	// External: the finalizer guards something that Kubernetes does not delete.
	// An object that is gone although its claim was stored is then reconciled as a
	// deleted object, from memory. It needs Live.
	External bool
	// ClaimOf returns the annotations of the claim that an object must have. A claim that
	// somebody removed or changed is put back. Nil: none is.
	ClaimOf ClaimOf

	// began is when this process first reconciled an object.
	began     time.Time
	beginning sync.Once

	releases   releases
	rejections rejections
	// unanswered has the objects whose status was written with an error that leaves its effect open.
	unanswered recent
	claims     claims
	abandoned  abandoned[T]
	warnings   warnings
	underway   underway
}

// Reconcile reconciles one object. Its calls to a cloud belong to the flow of
// the object's namespace.
func (r *Reconciler[T, S]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	ctx = cloud.WithFlow(ctx, req.Namespace)
	if r.Leading != nil {
		ctx = cloud.WithPermit(ctx, r.Leading)
	}
	switch {
	case ctx.Err() != nil:
		return ctrl.Result{}, nil // the manager is stopping: nothing has begun
	case !r.leading():
		return ctrl.Result{RequeueAfter: leadingDelay}, nil
	}
	r.beginning.Do(func() { r.began = time.Now() })
	r.underway.begin(req.NamespacedName)
	defer func() {
		if r.underway.end(req.NamespacedName) { // it may have dropped what another object of the name waits for
			result.RequeueAfter = earliest(result.RequeueAfter, leadingDelay)
		}
	}()
	return r.reconcileTraced(ctx, req)
}

// reconcileRequest reconciles the object that a request names, if it is to be reconciled.
func (r *Reconciler[T, S]) reconcileRequest(ctx context.Context, req ctrl.Request, span *span) (ctrl.Result, error) {
	w, end := begin(ctx, r.Deadline)
	defer end()
	w.span = span
	waits, err := r.reconcileAbandoned(w, req.NamespacedName)

	obj := r.Kind.New()
	if readErr := r.Client.Get(w.ctx, req.NamespacedName, obj); readErr != nil {
		if apierrors.IsNotFound(readErr) {
			r.History.forget(kindName[T](), req.NamespacedName)
		}
		return ctrl.Result{RequeueAfter: waits.after}, errors.Join(err, client.IgnoreNotFound(readErr))
	}
	owned, after, readErr := r.own(w, obj)
	if !owned {
		return ctrl.Result{RequeueAfter: earliest(waits.after, after)}, errors.Join(err, readErr)
	}
	r.warnOfAnnotations(obj)
	switch {
	case r.releases.has(obj.GetUID()), r.abandoned.has(obj):
		return ctrl.Result{RequeueAfter: earliest(waits.after, r.reportIn(obj))}, err
	case r.released(obj):
		return ctrl.Result{RequeueAfter: waits.after}, errors.Join(err, r.reportReleasedLate(w, obj))
	case (waits.after > 0 || err != nil) && !deleting(obj):
		return ctrl.Result{RequeueAfter: waits.after}, errors.Join(err, r.waitForEarlier(w, obj, waits.why))
	}
	result, failed := r.reconcileUnlessHeld(w, obj)
	result.RequeueAfter = earliest(result.RequeueAfter, waits.after) // the earlier objects of the name go on
	return result, errors.Join(err, failed)
}

// reconcileUnlessHeld reconciles an object that is not paused, and whose last status the API server did not reject.
func (r *Reconciler[T, S]) reconcileUnlessHeld(w *work, obj T) (ctrl.Result, error) {
	switch held := r.rejections.left(obj); {
	case held > 0:
		return ctrl.Result{RequeueAfter: held}, nil
	case pcapi.Paused(obj):
		return r.pause(w, obj)
	}
	return r.reconcile(w, obj)
}

// reconcile observes, plans, acts and reports.
func (r *Reconciler[T, S]) reconcile(w *work, obj T) (ctrl.Result, error) {
	if err := r.restoreClaim(w, obj); err != nil {
		if _, gone := errors.AsType[*goneError](err); gone {
			return ctrl.Result{}, nil // the event of its deletion says what is to be done
		}
		return requeue(err)
	}
	before := obj.DeepCopyObject().(T)
	w.effects = context.WithValue(w.effects, beforeKey{}, before)
	obs, outcome := r.Kind.Observe(w.ctx, obj)
	if outcome != nil && w.stopping() {
		return ctrl.Result{}, nil
	}
	if outcome == nil {
		outcome = r.run(w, obj, obs, r.Kind.Plan(obj, obs))
	}
	w.span.outcome(outcome)
	if w.interrupted || !r.mayAct(w) {
		w.span.interrupted()
		if !w.changedCloud {
			return ctrl.Result{RequeueAfter: leadingDelay}, nil
		}
		switch {
		case w.interrupted && w.stopping():
			outcome = Wait(leadingDelay, pcapi.ProgressingReason, "the operator is stopping; another process continues")
		case w.interrupted:
			outcome = Wait(leadingDelay, pcapi.ProgressingReason, "another process continues")
		}
	}
	wait, _ := errors.AsType[*WaitError](outcome)
	gone, _ := errors.AsType[*goneError](outcome)
	switch {
	case gone != nil:
		return r.abandonIfClaimed(w, obj)
	case apierrors.IsConflict(outcome):
		return r.conflicted(w, obj, outcome)
	case errors.Is(outcome, ErrUnknown):
		return ctrl.Result{}, nil
	case wait != nil && wait.Quiet:
		return ctrl.Result{RequeueAfter: wait.After}, nil
	}
	summary := r.Kind.Report(obj, obs, outcome)
	if r.released(obj) {
		r.recordRelease(w.ctx, obj, summary)
		if err := r.reportReleased(w, before, obj, summary); err != nil {
			log.FromContext(w.ctx).Error(err, "the status of the released object is written later")
			return ctrl.Result{RequeueAfter: cacheLag}, nil
		}
		return ctrl.Result{}, nil
	}
	return r.finish(w, before, obj, obs, summary, outcome)
}

// recordRelease records that nothing of the object exists any more.
func (r *Reconciler[T, S]) recordRelease(ctx context.Context, obj T, summary Summary) {
	r.releases.add(obj.GetUID())
	log.FromContext(ctx).Info("released the object", "reason", summary.Reason, "message", summary.Message)
	r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, summary.Reason, "Delete", "%s", summary.Message)
}

// reportReleased writes the status of a released object that the finalizers of others keep. No
// reconcile follows that could report what became of it.
func (r *Reconciler[T, S]) reportReleased(w *work, before, obj T, summary Summary) error {
	if len(obj.GetFinalizers()) == 0 || isAbandoned(w.effects) {
		return nil
	}
	conditions := obj.GetConditions()
	setOrRemove(&conditions, pcapi.ReconcilingCondition, nil)
	setOrRemove(&conditions, pcapi.StalledCondition, nil)
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: summary.Reason,
		Message: Cut(summary.Message+"; finalizers of other controllers keep this object", maxMessage),
	})
	setObservedGeneration(obj, conditions)
	ctx, cancel := w.recording()
	defer cancel()
	err := r.patchStatus(ctx, before, obj, true)
	if _, gone := errors.AsType[*goneError](err); gone {
		return nil
	}
	return err
}

// unreported reports whether a released object still reports itself Ready.
func (r *Reconciler[T, S]) unreported(obj T) bool {
	return r.released(obj) && r.Kind.Finalizer() != "" && !pcapi.Paused(obj) && meta.IsStatusConditionTrue(obj.GetConditions(), pcapi.ReadyCondition)
}

// reportIn returns after how long the status of an object that this process released is written, if it could not be; 0 if
// it was. Until then, the cache may show an older status.
func (r *Reconciler[T, S]) reportIn(obj T) time.Duration {
	if !r.unreported(obj) {
		return 0
	}
	return r.releases.recent.left(obj.GetUID(), cacheLag)
}

// reportReleasedLate writes the status of an object that this operator does not hold and that still reports itself Ready: the
// process that released it was killed before it wrote that, or somebody else removed the finalizer.
func (r *Reconciler[T, S]) reportReleasedLate(w *work, obj T) error {
	if !r.unreported(obj) || w.stopping() || !r.mayAct(w) {
		return nil
	}
	before := obj.DeepCopyObject().(T)
	if r.Released != nil {
		r.Released(obj)
	}
	return r.reportReleased(w, before, obj, Summary{
		Reason: "Released", Message: "the operator does not hold this object any more, and does not look at what it may have in the cloud",
	})
}

// conflicted ends a reconcile whose object changed meanwhile. A conflict is also
// what a write meets when another object has the name now.
func (r *Reconciler[T, S]) conflicted(w *work, obj T, conflict error) (ctrl.Result, error) {
	if r.claims.has(obj.GetUID()) && r.Live != nil {
		ctx, cancel := w.recording()
		defer cancel()
		_, err := r.readLive(ctx, obj)
		if _, gone := errors.AsType[*goneError](err); gone {
			return r.abandonIfClaimed(w, obj)
		}
	}
	return requeue(conflict)
}

// leading reports whether this process may act.
func (r *Reconciler[T, S]) leading() bool { return r.Leading == nil || r.Leading() }

// released reports whether the object is being deleted and nothing of this
// kind's finalizer holds it.
func (r *Reconciler[T, S]) released(obj T) bool {
	return deleting(obj) && !controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer())
}

func deleting(obj client.Object) bool { return !obj.GetDeletionTimestamp().IsZero() }
