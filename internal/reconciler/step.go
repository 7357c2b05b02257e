package reconciler

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Needs says what a step requires and does. Values are combined with |.
type Needs uint8

const (
	// NeedsCloud marks a step that calls the cloud.
	NeedsCloud Needs = 1 << iota
	// NeedsBrakeOff marks a step that is not allowed while the Cloud's brake is on.
	NeedsBrakeOff
	// Mutates marks a step that changes the cloud or another Kubernetes object,
	// or the metadata of the reconciled one. It is logged.
	Mutates
)

// Has reports whether n includes all of other.
func (n Needs) Has(other Needs) bool { return n&other == other }

// Step is one thing that a reconcile does.
type Step[T Object, S any] struct {
	// Name identifies the step in logs and tests.
	Name  string
	Needs Needs
	// Run does it, and writes what it learned into obs. An error ends the
	// reconcile as its outcome.
	Run func(ctx context.Context, obj T, obs S) error
}

// Plan is what a reconcile is to do.
type Plan[T Object, S any] struct {
	// Steps are run in this order. At most one of them changes the cloud.
	Steps []Step[T, S]
	// Outcome holds once all steps are done; nil means in sync.
	Outcome error
}

// Do returns the plan of these steps, after which the object is in sync.
func Do[T Object, S any](steps ...Step[T, S]) Plan[T, S] { return Plan[T, S]{Steps: steps} }

// End returns the plan without steps whose outcome is err.
func End[T Object, S any](err error) Plan[T, S] { return Plan[T, S]{Outcome: err} }

// Then returns the plan with another outcome.
func (p Plan[T, S]) Then(outcome error) Plan[T, S] {
	p.Outcome = outcome
	return p
}

// Names returns the names of the steps, in order.
func (p Plan[T, S]) Names() []string {
	var names []string
	for _, step := range p.Steps {
		names = append(names, step.Name)
	}
	return names
}

// run runs the steps of a plan and returns the outcome. Once the manager is stopping, or
// another may lead or owns the object, no further step begins; a step that changes
// something and has begun is completed.
func (r *Reconciler[T, S]) run(w *work, obj T, obs S, plan Plan[T, S]) error {
	for _, step := range plan.Steps {
		if w.stopping() || !r.mayAct(w) {
			w.interrupted = true
			return nil
		}
		if r.Permit != nil {
			if err := r.Permit(obj, obs, step.Needs); err != nil {
				return err
			}
		}
		claimed := controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer())
		err := r.runStep(w, obj, obs, step)
		if !claimed && r.External && controllerutil.ContainsFinalizer(obj, r.Kind.Finalizer()) {
			r.claims.add(obj.GetUID())
		}
		if err != nil {
			// A read that was cancelled says nothing about the object.
			w.interrupted = w.stopping() && !step.Needs.Has(Mutates)
			return err
		}
	}
	return plan.Outcome
}

func (r *Reconciler[T, S]) runStep(w *work, obj T, obs S, step Step[T, S]) error {
	w.span.step(step.Name)
	start := time.Now()
	if !step.Needs.Has(Mutates) {
		err := step.Run(w.ctx, obj, obs)
		if step.Needs.Has(NeedsCloud) {
			r.remember(obj, step.Name, start, err)
		}
		return err
	}
	w.changedCloud = w.changedCloud || step.Needs.Has(NeedsCloud)
	err := step.Run(w.effects, obj, obs)
	r.remember(obj, step.Name, start, err)
	fields := []any{"step", step.Name, "duration", time.Since(start).Round(time.Microsecond).String()}
	if err != nil {
		fields = append(fields, "outcome", Reason(err), "message", messageOf(err))
	}
	log.FromContext(w.effects).Info("ran step", fields...)
	return err
}

// remember adds a step to the history of an object.
func (r *Reconciler[T, S]) remember(obj T, step string, begun time.Time, outcome error) {
	if r.History == nil {
		return
	}
	r.History.add(kindName[T](), client.ObjectKeyFromObject(obj), PastStep{
		Step: step, Time: begun, Duration: time.Since(begun), Reason: Reason(outcome), Message: Cut(messageOf(outcome), maxPastMessage),
	})
}
