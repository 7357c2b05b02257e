package reconciler

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// EventConditions lists the conditions whose changes are recorded as events.
	EventConditions() []string
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

	releases releases
}

// Reconcile reconciles one object. Its calls to a cloud belong to the flow of
// the object's namespace.
func (r *Reconciler[T, S]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Deadline)
	defer cancel()
	ctx = cloud.WithFlow(ctx, req.Namespace)

	obj := r.Kind.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.released(obj) || r.releases.has(obj.GetUID()) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopyObject().(T)
	if obj.GetAnnotations()[pcapi.PausedAnnotation] == "true" {
		return r.pause(ctx, before, obj)
	}

	obs, outcome := r.Kind.Observe(ctx, obj)
	if outcome == nil {
		outcome = r.run(ctx, obj, obs, r.Kind.Plan(obj, obs))
	}
	wait, _ := errors.AsType[*WaitError](outcome)
	switch {
	case apierrors.IsConflict(outcome):
		return requeue(outcome)
	case errors.Is(outcome, ErrUnknown):
		return ctrl.Result{}, nil
	case wait != nil && wait.Quiet:
		return ctrl.Result{RequeueAfter: wait.After}, nil
	}
	summary := r.Kind.Report(obj, obs, outcome)
	if r.released(obj) {
		r.releases.add(obj.GetUID())
		log.FromContext(ctx).Info("released the object", "reason", summary.Reason, "message", summary.Message)
		r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, summary.Reason, "Delete", "%s", summary.Message)
		return ctrl.Result{}, nil
	}
	return r.finish(ctx, before, obj, obs, summary, outcome)
}

// released reports whether the object is being deleted and nothing of this
// kind's finalizer holds it.
func (r *Reconciler[T, S]) released(obj T) bool {
	return !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer())
}
