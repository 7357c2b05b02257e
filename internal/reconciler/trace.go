package reconciler

import (
	"context"
	"errors"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// span is the span of one reconcile. A nil span records nothing. It holds reasons
// and no messages: those may quote what users wrote.
type span struct {
	trace.Span
	steps []string
	// reported is whether the outcome is known.
	reported bool
}

// startSpan returns a context of a reconcile whose calls belong to its span, and whose
// log lines have the id of the trace.
func (r *Reconciler[T, S]) startSpan(ctx context.Context, req ctrl.Request) (context.Context, *span) {
	if r.Tracer == nil {
		return ctx, nil
	}
	kind := kindName[T]()
	ctx, started := r.Tracer.Start(ctx, "reconcile "+kind, trace.WithAttributes(
		attribute.String("privatecloud.kind", kind),
		attribute.String("privatecloud.name", req.Name),
		attribute.String("k8s.namespace.name", req.Namespace),
		attribute.String("privatecloud.reconcile_id", string(controller.ReconcileIDFromContext(ctx))),
	))
	if !started.IsRecording() {
		return ctx, nil
	}
	logger := log.FromContext(ctx).WithValues("traceID", started.SpanContext().TraceID().String())
	return log.IntoContext(ctx, logger), &span{Span: started}
}

// kindName returns the kind of an object, such as VM.
func kindName[T Object]() string { return reflect.TypeFor[T]().Elem().Name() }

// reconcileTraced reconciles the object that a request names, in a span.
func (r *Reconciler[T, S]) reconcileTraced(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, span := r.startSpan(ctx, req)
	result, err := r.reconcileRequest(ctx, req, span)
	span.end(err)
	return result, err
}

// step records that a step begins.
func (s *span) step(name string) {
	if s == nil {
		return
	}
	s.steps = append(s.steps, name)
	s.AddEvent("step", trace.WithAttributes(attribute.String("privatecloud.step", name)))
}

// outcome records the outcome of observing the object and running its steps.
func (s *span) outcome(outcome error) {
	if s == nil {
		return
	}
	s.reported = true
	s.SetAttributes(attribute.String("privatecloud.outcome", outcomeName(outcome)))
	if reason := Reason(outcome); reason != "" {
		s.SetAttributes(attribute.String("privatecloud.reason", reason))
	}
}

// interrupted records that the reconcile ended before its plan did.
func (s *span) interrupted() {
	if s != nil {
		s.SetAttributes(attribute.String("privatecloud.outcome", "Interrupted"))
	}
}

// end ends the span of a reconcile that returns err.
func (s *span) end(err error) {
	if s == nil {
		return
	}
	if err != nil {
		s.SetStatus(codes.Error, "the log has the error")
	} else if !s.reported {
		s.SetAttributes(attribute.String("privatecloud.outcome", "Skipped"))
	}
	s.SetAttributes(attribute.StringSlice("privatecloud.steps", s.steps))
	s.End()
}

// outcomeName returns the name of the type of an outcome.
func outcomeName(outcome error) string {
	if outcome == nil {
		return "InSync"
	}
	if _, ok := errors.AsType[*goneError](outcome); ok {
		return "Gone"
	}
	if _, ok := errors.AsType[*WaitError](outcome); ok {
		return "Wait"
	}
	if _, ok := errors.AsType[*BlockedError](outcome); ok {
		return "Blocked"
	}
	switch {
	case IsStalled(outcome):
		return "Stalled"
	case errors.Is(outcome, ErrUnknown):
		return "Unknown"
	case apierrors.IsConflict(outcome):
		return "Conflict"
	}
	return "Error"
}
