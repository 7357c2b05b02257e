package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// maxRounds bounds the reconciles of a forecast.
const maxRounds = 32

// Forecaster is a Kind that can say what its steps do.
type Forecaster[T reconciler.Object, S any] interface {
	// Copy returns a copy of an observation that Foresee may change.
	Copy(obs S) S
	// Foresee returns the changes in the cloud that a step makes, and makes obj and obs what
	// they are once it has succeeded. known is false if that depends on what the cloud answers.
	// The lifecycle does the same for the steps of its own, except that Foresee creates.
	Foresee(step string, obj T, obs S) (changes []pcapi.PlannedChange, known bool)
}

// Forecasted is what the operator is going to do about an object.
type Forecasted struct {
	// Cloud is the name of the Cloud that the object uses or is to use.
	Cloud string
	// Changes are those in the cloud, in their order.
	Changes []pcapi.PlannedChange
	// Outcome is why the object is not in sync after them; nil if it is.
	Outcome error
	// Unreadable is the error of the API server for a user who may not read the Cloud. It is
	// taken to be available then, and to be able to do what the kind needs.
	Unreadable error
}

// Forecast returns the changes in the cloud that the operator makes for an object, until it is
// in sync or has to wait for something else, and the outcome then. It runs the plans of the reconciles that follow one another, with what their steps would do in place
// of the steps. It is pure.
func Forecast[T reconciler.Object, R any, S Observed[R]](l *Lifecycle[T, R, S], kind Forecaster[T, S], obj T, obs S) ([]pcapi.PlannedChange, error) {
	obj, obs = obj.DeepCopyObject().(T), kind.Copy(obs)
	var all []pcapi.PlannedChange
	for range maxRounds {
		plan := l.planner.plan(obj, obs)
		effective := false
		for _, step := range plan.Steps {
			if err := unmet(obs.External(), step.Needs); err != nil {
				return all, err
			}
			changes, known := foresee(l, kind, step.Name, obj, obs)
			if !known {
				return all, reconciler.Wait(0, pcapi.OutcomeUnknownReason, "what the operator does next depends on what the cloud answers")
			}
			effective = effective || step.Needs.Has(reconciler.Mutates)
			all = append(all, changes...)
			if step.Name == StepRelease {
				return all, nil
			}
		}
		if !effective {
			return all, plan.Outcome
		}
	}
	return all, nil
}

// foresee is Foresee for the steps of the lifecycle and of the kind.
func foresee[T reconciler.Object, R any, S Observed[R]](l *Lifecycle[T, R, S], kind Forecaster[T, S], step string, obj T, obs S) (changes []pcapi.PlannedChange, known bool) {
	o, record := obs.External(), l.kind.Record(obj)
	deleted := func(r R) []pcapi.PlannedChange {
		return []pcapi.PlannedChange{{Action: pcapi.PlannedDelete, Name: record.Name, ID: l.kind.Identify(r).ID}}
	}
	switch step {
	case StepClaim:
		o.Claimed, o.Fresh = record.Name, true
	case StepUnclaim:
		o.Claimed = ""
	case StepAdopt:
		if o.Resource == nil && len(o.Candidates) > 0 {
			o.Resource, o.Owned, o.Duplicates = &o.Candidates[0], true, o.Candidates[1:]
		}
		return kind.Foresee(step, obj, obs)
	case StepDeleteDuplicate:
		duplicate := o.Duplicates[0]
		o.Duplicates = o.Duplicates[1:]
		return deleted(duplicate), true
	case StepDelete:
		resource := *o.Resource
		o.Gone = true
		return deleted(resource), true
	case StepConfirmGone, StepRelease:
	case StepLook:
		return nil, false
	default:
		return kind.Foresee(step, obj, obs)
	}
	return nil, true
}

// ObserveCloud observes the Cloud of an object by the Cloud object alone, for forecasts
// outside of the operator. Unreadable is that of Forecasted: the Cloud is taken to have the
// capabilities assumed then.
func (l *Lifecycle[T, R, S]) ObserveCloud(ctx context.Context, obj T, obs S, assumed cloud.Capabilities) (unreadable, err error) {
	o, record := obs.External(), l.kind.Record(obj)
	o.Now, o.How = l.Clock(), pcapi.CreatedReason
	wanted, err := l.wanted(ctx, obj, record.Ref)
	recorded := RecordedCloud(obj, record.ID, record.Cloud, l.Options.Finalizer)
	switch {
	case apierrors.IsForbidden(err) && recorded == "":
		o.Cloud, o.View.Capabilities = pcapi.DefaultCloudName, assumed
		return err, nil
	case err != nil && recorded == "":
		return nil, err
	}
	o.Cloud = cmp.Or(recorded, wanted)
	c, err := tenancy.Open(ctx, l.Client, obj.GetNamespace(), o.Cloud)
	denied, isDenied := errors.AsType[*tenancy.AccessError](err)
	if isDenied {
		o.Denied = controller.Inaccessible(obj, o.Now, denied, l.Elsewhere)
	}
	switch {
	case isDenied && denied.Missing:
		o.View, o.CloudMissing = l.Directory.Absent(o.Cloud).View(), true
	case isDenied: // its view: what the object has there already may be deleted and released
		c = &pcapi.Cloud{}
		if err := l.Client.Get(ctx, client.ObjectKey{Name: o.Cloud}, c); err != nil {
			return nil, fmt.Errorf("read Cloud %q: %w", o.Cloud, err)
		}
		o.View = viewOf(c)
	case apierrors.IsForbidden(err):
		o.View.Capabilities = assumed
		return err, nil
	case err != nil:
		return nil, err
	default:
		o.Spec, o.View = &c.Spec, viewOf(c)
		if tenancy.Closing(c) && record.ID == "" {
			o.Denied = reconciler.Blocked("Cloud/"+o.Cloud, pcapi.CloudUnavailableReason, "Cloud %q is being deleted: %s", o.Cloud, l.Elsewhere)
		}
	}
	return nil, nil
}

// viewOf returns what a Cloud reports.
func viewOf(c *pcapi.Cloud) inventory.View {
	view := inventory.View{Braked: c.Status.BrakedSnapshot != "", Capabilities: controller.Capabilities(c)}
	if ready := meta.FindStatusCondition(c.Status.Conditions, pcapi.ReadyCondition); ready == nil {
		view.Unavailable = "the cloud has not been listed yet"
	} else if ready.Status != metav1.ConditionTrue && !view.Braked {
		view.Unavailable = ready.Message
	}
	return view
}
