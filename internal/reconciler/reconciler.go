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

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Object is a kind that the engine can reconcile.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
	SetObservedGeneration(int64)
}

// Summary is what an object that is in sync says for itself.
type Summary struct {
	// Reason and Message go into Ready=True.
	Reason, Message string
	// Again asks for another look after this time; 0: something wakes the object.
	Again time.Duration
}

// Kind is what a controller supplies. T is the kind, S what one pass saw.
type Kind[T Object, S any] interface {
	// New returns an empty object.
	New() T
	// Finalizer is the kind's own. A deleted object without it is left alone.
	Finalizer() string
	// Observe reads what the plan needs. It changes nothing. An error ends the
	// pass as a verdict; S is then reported as far as it was filled.
	Observe(ctx context.Context, obj T) (S, error)
	// Plan is pure: the names of the steps to take, in order, none when in
	// sync, and the verdict that holds once they are done (nil: in sync). At
	// most one step may change the cloud.
	Plan(obj T, seen S) ([]string, error)
	// Act takes one step and writes what it learned into seen. Any error ends
	// the pass as its verdict.
	Act(ctx context.Context, obj T, seen S, step string) error
	// Report is pure: it writes the kind's own status and conditions onto obj.
	// Of an object whose finalizer is off, only the summary counts: it is told as the last event.
	Report(obj T, seen S, verdict error) Summary
	// Story lists the conditions whose changes are told as events.
	Story() []string
}

// Reconciler runs the passes of one kind.
type Reconciler[T Object, S any] struct {
	Client   client.Client
	Kind     Kind[T, S]
	Recorder events.EventRecorder
	// Deadline bounds one pass.
	Deadline time.Duration
}

// Reconcile makes one pass over one object. Its calls to a cloud are of the
// flow of its namespace.
func (r *Reconciler[T, S]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Deadline)
	defer cancel()
	ctx = cloud.WithFlow(ctx, req.Namespace)

	obj := r.Kind.New()
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer()) {
		return ctrl.Result{}, nil
	}
	before := obj.DeepCopyObject().(T)
	if obj.GetAnnotations()[v1alpha1.PausedAnnotation] == "true" {
		return r.pause(ctx, before, obj)
	}

	seen, verdict := r.Kind.Observe(ctx, obj)
	if verdict == nil {
		verdict = r.act(ctx, obj, seen)
	}
	wait, _ := errors.AsType[*WaitError](verdict)
	switch {
	case apierrors.IsConflict(verdict):
		return again(verdict)
	case errors.Is(verdict, ErrUnknown):
		return ctrl.Result{}, nil
	case wait != nil && wait.Quiet:
		return ctrl.Result{RequeueAfter: wait.After}, nil
	}
	summary := r.Kind.Report(obj, seen, verdict)
	if !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer()) {
		r.Recorder.Eventf(obj, nil, corev1.EventTypeNormal, summary.Reason, "Delete", "%s", summary.Message)
		return ctrl.Result{}, nil
	}
	return r.settle(ctx, before, obj, summary, verdict)
}

func (r *Reconciler[T, S]) act(ctx context.Context, obj T, seen S) error {
	steps, verdict := r.Kind.Plan(obj, seen)
	for _, step := range steps {
		if err := r.Kind.Act(ctx, obj, seen, step); err != nil {
			return err
		}
	}
	return verdict
}
