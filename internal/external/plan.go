package external

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// planner decides what to do.
type planner[T reconciler.Object, R any, S Observed[R]] struct {
	*Outcomes[R]
	Plans[T, S]
	kind Kind[T, R, S]
}

// plan decides what to do as if everything were approved.
func (p *planner[T, R, S]) plan(obj T, obs S) reconciler.Plan[T, S] {
	o, record := obs.External(), p.kind.Record(obj)
	unsupported := p.unsupported(o)
	working, underWay := p.planOperation(obj, obs, record)
	switch {
	case underWay && (o.Denied == nil || deleted(obj)):
		return working
	case deleted(obj):
		return p.planDeletion(obj, obs, record)
	case o.Denied != nil:
		return p.End(o.Denied)
	case unsupported != nil:
		return p.End(unsupported)
	case o.Displaced != nil:
		return p.End(o.Displaced)
	case record.ID != "":
		return p.planExisting(obj, obs, record)
	case record.Import != "":
		return p.kind.PlanImport(obj, obs)
	default:
		return p.planCreate(obj, obs)
	}
}

// planCreate plans for a resource that does not exist yet, or whose create was
// sent and never recorded.
func (p *planner[T, R, S]) planCreate(obj T, obs S) reconciler.Plan[T, S] {
	o := obs.External()
	if o.Claimed == "" && o.Proved() {
		return p.Do(p.Steps.Claim, p.Steps.Adopt).Then(p.kind.Adopted(obj, o.Candidates[0]))
	}
	if o.Claimed != "" {
		if plan, decided := p.planFound(obj, obs); decided {
			return plan
		}
		if o.Moved {
			return p.Do(append(p.kind.ConfirmNothing(obj, obs), p.Steps.Unclaim)...).Then(reconciler.Wait(time.Second, pcapi.ProgressingReason,
				"the %s was not created on the Cloud that spec.cloudRef named before", p.Noun))
		}
		if o.Closing != nil {
			return p.End(o.Closing)
		}
	}
	return p.kind.PlanCreate(obj, obs)
}

// planFound decides what to do about an earlier create; decided is false if
// another create may be sent.
func (p *planner[T, R, S]) planFound(obj T, obs S) (plan reconciler.Plan[T, S], decided bool) {
	o := obs.External()
	repeatable := p.kind.Repeatable(obj, obs) && !o.Moved
	switch {
	case o.Moved && o.Proof != NoProof && len(o.Candidates) > 0:
		return p.End(p.Moved(o, p.kind.Identify(o.Candidates[0]).ID)), true
	case o.Proved() && len(o.Candidates) > 1:
		return p.Do(p.Steps.Adopt, p.Steps.DeleteDuplicate), true
	case o.Proved():
		return p.Do(p.Steps.Adopt).Then(p.kind.Adopted(obj, o.Candidates[0])), true
	case repeatable && o.Missing != "": // the key leads to nothing else
		return p.End(p.missing(obj, o)), true
	case repeatable && o.New && o.Closing == nil: // no create was sent, or its key leads to what it made
	case !o.Looked, o.Incomplete && !repeatable:
		return p.Do(p.Steps.Look), true
	case len(o.Candidates) > 0 && !repeatable:
		return p.End(reconciler.Stalled(pcapi.AmbiguousReason, RecheckSoon, fmt.Errorf(
			"%s may be this %[2]s, created by a request whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"set spec.import.vmId to the one that is this %[2]s's, if the Cloud allows imports, or rename or delete them in the cloud", p.names(o.Candidates, o.Claimed), p.Kind))), true
	case o.SettleTimeLeft > 0 && !repeatable:
		return p.End(reconciler.Wait(o.SettleTimeLeft, pcapi.OutcomeUnknownReason,
			"the answer to the create was lost; waiting for the Cloud's settleTime to pass before a second create, and looking for the %s of the first one meanwhile", p.Noun)), true
	}
	return reconciler.Plan[T, S]{}, false
}

// missing is the outcome for an object whose create was answered with a resource that the cloud does not find.
func (p *planner[T, R, S]) missing(obj T, o *Observation[R]) error {
	if o.MissingProved {
		return p.lost(o.Missing)
	}
	return reconciler.Wait(max(brief, min(cmp.Or(o.SettleTimeLeft, RecheckSoon), p.Backoff.When(obj.GetUID()))), pcapi.OutcomeUnknownReason,
		"the cloud answered the create with %s %s and does not find it; it is looked for until the Cloud's settleTime has passed and a complete listing, or the cloud itself, shows that it is gone", p.Noun, o.Missing)
}

// planExisting plans for a resource that is on record.
func (p *planner[T, R, S]) planExisting(obj T, obs S, record Record) reconciler.Plan[T, S] {
	o := obs.External()
	switch {
	case o.Gone:
		return p.End(p.lost(record.ID))
	case o.Resource != nil:
		return p.kind.PlanExisting(obj, obs)
	case o.Absent:
		return p.End(p.Unproved(o, record.ID))
	case p.OnDemand && obj.GetGeneration() != record.ObservedGeneration:
		return p.Do(p.Steps.Look)
	default:
		return p.End(reconciler.ErrUnknown)
	}
}

// copiedAlone reports whether the object has nothing but the claim of another object.
func (p *planner[T, R, S]) copiedAlone(o *Observation[R], record Record) bool {
	searched := p.OnDemand || !o.Capabilities().Has(cloud.Labels) || o.ShowsAbsence()
	return o.Copied && record.id() == "" && !o.Proved() && searched
}

// planDeletion deletes the resource and proves that it is gone, then releases the object.
func (p *planner[T, R, S]) planDeletion(obj T, obs S, record Record) reconciler.Plan[T, S] {
	o := obs.External()
	if p.copiedAlone(o, record) {
		return p.Do(p.Steps.Release)
	}
	if plan, decided := p.kind.PlanDeletion(obj, obs); decided {
		if o.Working {
			return p.End(p.working(o, record))
		}
		return plan
	}
	unsupported := p.unsupported(o)
	switch {
	case unsupported != nil:
		return p.End(unsupported)
	case o.Displaced != nil:
		return p.End(o.Displaced)
	case record.id() == "":
		return p.planDeletionUnrecorded(obj, obs)
	case p.OnDemand && !o.Looked:
		return p.Do(p.Steps.Look)
	case len(o.Duplicates) > 0 && o.Resource == nil && protected(obj, o.KeptBy):
		return p.End(p.protected(p.kind.Identify(o.Duplicates[0]).ID, o.KeptBy))
	case len(o.Duplicates) > 0:
		return p.Do(p.Steps.DeleteDuplicate)
	case o.Absent && !o.Gone:
		return p.End(p.unconfirmed(obj, o, record.id()))
	case o.Gone, o.Resource == nil, o.Deleted:
		return p.Do(p.released(obj, obs)...)
	}
	switch identity := p.kind.Identify(*o.Resource); {
	case identity.State == cloud.StateDeleting:
		return p.End(p.underDeletion(obj, o, identity.ID))
	case protected(obj, o.KeptBy):
		return p.End(p.protected(identity.ID, o.KeptBy))
	}
	return p.Do(append([]reconciler.Step[T, S]{p.Steps.Delete}, p.released(obj, obs)...)...)
}

// released returns the steps that prove that the resource is gone, delete what it left, and release the object.
func (p *planner[T, R, S]) released(obj T, obs S) []reconciler.Step[T, S] {
	steps := append([]reconciler.Step[T, S]{p.Steps.ConfirmGone}, p.kind.Leftovers(obj, obs)...)
	return append(steps, p.Steps.Release)
}

// planDeletionUnrecorded deletes what a create without a recorded answer may have made.
func (p *planner[T, R, S]) planDeletionUnrecorded(obj T, obs S) reconciler.Plan[T, S] {
	o := obs.External()
	removed, _ := p.Tracker.RemovedAt(obj.GetUID())
	if o.Proved() && !removed.IsZero() && !o.Looked { // it may be gone, and its id used again
		return p.Do(p.Steps.Look)
	}
	if o.Proved() {
		switch identity := p.kind.Identify(o.Candidates[0]); {
		case identity.State == cloud.StateDeleting:
			return p.Do(p.Steps.Adopt).Then(p.underDeletion(obj, o, identity.ID))
		case protected(obj, o.KeptBy):
			return p.Do(p.Steps.Adopt).Then(p.protected(identity.ID, o.KeptBy))
		case len(o.Candidates) > 1:
			return p.Do(p.Steps.Adopt, p.Steps.DeleteDuplicate)
		}
		return p.Do(p.Steps.Adopt, p.Steps.Delete, p.Steps.ConfirmGone, p.Steps.Release)
	}
	switch {
	case !o.ShowsAbsence():
		return p.Do(p.Steps.Look)
	case len(o.Candidates) > 0:
		return p.End(reconciler.Stalled(pcapi.BlockedReason, RecheckSoon, fmt.Errorf(
			"%s may be this %s, created by a request whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"delete it in the cloud if it is, or set spec.deletionPolicy to Orphan to release this object", p.names(o.Candidates, o.Claimed), p.Kind)))
	case o.SettleTimeLeft > 0:
		return p.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,
			"the answer to the create was lost; waiting for the Cloud's settleTime to pass, to be sure that it created no %s", p.Noun))
	}
	return p.Do(append(p.kind.ConfirmNothing(obj, obs), p.Steps.Release)...)
}

// names lists resources for a message, of one name or of names that are made of it.
func (p *planner[T, R, S]) names(found []R, name string) string {
	const most = 5
	var ids, named []string
	chosen := false
	for _, r := range found[:min(len(found), most)] {
		identity := p.kind.Identify(r)
		ids, named = append(ids, identity.ID), append(named, fmt.Sprintf("%s named %q", identity.ID, identity.Name))
		chosen = chosen || !cloud.AlikeNames(identity.Name, name)
	}
	text := strings.Join(ids, ", ")
	switch {
	case chosen && len(found) > most:
		return fmt.Sprintf("%d %ss (%s, …)", len(found), p.Noun, strings.Join(named, ", "))
	case chosen:
		return fmt.Sprintf("%s %s", p.Noun, strings.Join(named, ", "))
	case len(found) > most:
		return fmt.Sprintf("%d %ss named %q (%s, …)", len(found), p.Noun, name, text)
	}
	return fmt.Sprintf("%s %s named %q", p.Noun, text, name)
}

// Plans makes the plans of a kind.
type Plans[T reconciler.Object, S any] struct {
	// Steps are the steps of the lifecycle that plans are made of.
	Steps Steps[T, S]
}

// Step returns a step of the kind's own.
func (Plans[T, S]) Step(name string, needs reconciler.Needs, run func(ctx context.Context, obj T, obs S) error) reconciler.Step[T, S] {
	return newStep(name, needs, run)
}

func newStep[T reconciler.Object, S any](name string, needs reconciler.Needs, run func(ctx context.Context, obj T, obs S) error) reconciler.Step[T, S] {
	return reconciler.Step[T, S]{Name: name, Needs: needs, Run: run}
}

// Do returns the plan of these steps, after which the object is in sync.
func (Plans[T, S]) Do(steps ...reconciler.Step[T, S]) reconciler.Plan[T, S] {
	return reconciler.Do(steps...)
}

// End returns the plan without steps whose outcome is err.
func (Plans[T, S]) End(err error) reconciler.Plan[T, S] {
	return reconciler.End[T, S](err)
}
