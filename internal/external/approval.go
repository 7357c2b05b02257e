package external

import (
	"context"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/reconciler"
)

// StepApprove stores that a plan is approved, before its first change is sent.
const StepApprove = "Approve"

// sends marks a step that changes the cloud.
const sends = reconciler.NeedsCloud | reconciler.Mutates

// Plan decides what to do, from the object and the observation alone. Where the spec requires
// an approval, nothing that is not approved is sent. A plan of which the forecast describes no step is
// asked for with the name of the first step that changes the cloud.
func (l *Lifecycle[T, R, S]) Plan(obj T, obs S) reconciler.Plan[T, S] {
	plan := l.planner.plan(obj, obs)
	object, approvable := any(obj).(approval.Object)
	kind, forecasts := l.kind.(Forecaster[T, S])
	first := slices.IndexFunc(plan.Steps, func(s reconciler.Step[T, S]) bool { return s.Needs.Has(sends) })
	if !approvable || !forecasts || first < 0 || !approval.Required(object) || unmet(obs.External(), plan.Steps[first].Needs) != nil {
		return plan
	}
	changes, _ := Forecast(l, kind, obj, obs)
	if len(changes) == 0 {
		changes = []pcapi.PlannedChange{{Action: pcapi.PlannedUpdate, Name: l.kind.Record(obj).Name, Details: []string{"step " + plan.Steps[first].Name}}}
	}
	decision := approval.Decide(object, approval.Planned{Cloud: obs.External().Cloud, Changes: changes, Now: obs.External().Now})
	switch {
	case decision.Wait != nil:
		return reconciler.Plan[T, S]{Steps: plan.Steps[:first], Outcome: decision.Wait}
	case decision.Store != nil:
		plan.Steps = slices.Insert(slices.Clone(plan.Steps), first, l.Step(StepApprove, reconciler.Mutates, func(ctx context.Context, obj T, _ S) error {
			return approval.Store(ctx, l.Client, l.reconciler.Recorder, any(obj).(approval.Object), decision.Store)
		}))
	}
	return plan
}
