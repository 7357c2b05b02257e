package external

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// plan decides what to do as if everything were approved.
func (l *Lifecycle[T, R, S]) plan(obj T, obs S) reconciler.Plan[T, S] {
	o, record := obs.External(), l.kind.Record(obj)
	unsupported := l.unsupported(o)
	working, underWay := l.planOperation(obj, obs, record)
	switch {
	case underWay && (o.Denied == nil || deleted(obj)):
		return working
	case deleted(obj):
		return l.planDeletion(obj, obs, record)
	case o.Denied != nil:
		return l.End(o.Denied)
	case unsupported != nil:
		return l.End(unsupported)
	case o.Displaced != nil:
		return l.End(o.Displaced)
	case record.ID != "":
		return l.planExisting(obj, obs, record)
	case record.Import != "":
		return l.kind.PlanImport(obj, obs)
	default:
		return l.planCreate(obj, obs)
	}
}

// planCreate plans for a resource that does not exist yet, or whose create was
// sent and never recorded.
func (l *Lifecycle[T, R, S]) planCreate(obj T, obs S) reconciler.Plan[T, S] {
	o := obs.External()
	if o.Claimed == "" && o.Proved() {
		return l.Do(l.Steps.Claim, l.Steps.Adopt).Then(l.kind.Adopted(obj, o.Candidates[0]))
	}
	if o.Claimed != "" {
		if plan, decided := l.planFound(obj, obs); decided {
			return plan
		}
		if o.Moved {
			return l.Do(append(l.kind.ConfirmNothing(obj, obs), l.Steps.Unclaim)...).Then(reconciler.Wait(time.Second, pcapi.ProgressingReason,
				"the %s was not created on the Cloud that spec.cloudRef named before", l.Noun))
		}
		if o.Closing != nil {
			return l.End(o.Closing)
		}
	}
	return l.kind.PlanCreate(obj, obs)
}

// planFound decides what to do about an earlier create; decided is false if
// another create may be sent.
func (l *Lifecycle[T, R, S]) planFound(obj T, obs S) (plan reconciler.Plan[T, S], decided bool) {
	o := obs.External()
	repeatable := l.kind.Repeatable(obj, obs) && !o.Moved
	switch {
	case o.Moved && o.Proof != NoProof && len(o.Candidates) > 0:
		return l.End(l.Moved(o, l.kind.Identify(o.Candidates[0]).ID)), true
	case o.Proved() && len(o.Candidates) > 1:
		return l.Do(l.Steps.Adopt, l.Steps.DeleteDuplicate), true
	case o.Proved():
		return l.Do(l.Steps.Adopt).Then(l.kind.Adopted(obj, o.Candidates[0])), true
	case repeatable && o.Missing != "": // the key leads to nothing else
		return l.End(l.missing(obj, o)), true
	case repeatable && o.New && o.Closing == nil: // no create was sent, or its key leads to what it made
	case !o.Looked, o.Incomplete && !repeatable:
		return l.Do(l.Steps.Look), true
	case len(o.Candidates) > 0 && !repeatable:
		return l.End(reconciler.Stalled(pcapi.AmbiguousReason, RecheckSoon, fmt.Errorf(
			"%s may be this %[2]s, created by a request whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"set spec.import.vmId to the one that is this %[2]s's, if the Cloud allows imports, or rename or delete them in the cloud", l.names(o.Candidates, o.Claimed), l.Kind))), true
	case o.SettleTimeLeft > 0 && !repeatable:
		return l.End(reconciler.Wait(o.SettleTimeLeft, pcapi.OutcomeUnknownReason,
			"the answer to the create was lost; waiting for the Cloud's settleTime to pass before a second create, and looking for the %s of the first one meanwhile", l.Noun)), true
	}
	return reconciler.Plan[T, S]{}, false
}

// missing is the outcome for an object whose create was answered with a resource that the cloud does not find.
func (l *Lifecycle[T, R, S]) missing(obj T, o *Observation[R]) error {
	if o.MissingProved {
		return l.lost(o.Missing)
	}
	return reconciler.Wait(max(brief, min(cmp.Or(o.SettleTimeLeft, RecheckSoon), l.Backoff.When(obj.GetUID()))), pcapi.OutcomeUnknownReason,
		"the cloud answered the create with %s %s and does not find it; it is looked for until the Cloud's settleTime has passed and a complete listing, or the cloud itself, shows that it is gone", l.Noun, o.Missing)
}

// planExisting plans for a resource that is on record.
func (l *Lifecycle[T, R, S]) planExisting(obj T, obs S, record Record) reconciler.Plan[T, S] {
	o := obs.External()
	switch {
	case o.Gone:
		return l.End(l.lost(record.ID))
	case o.Resource != nil:
		return l.kind.PlanExisting(obj, obs)
	case o.Absent:
		return l.End(l.Unproved(o, record.ID))
	case l.OnDemand && obj.GetGeneration() != record.ObservedGeneration:
		return l.Do(l.Steps.Look)
	default:
		return l.End(reconciler.ErrUnknown)
	}
}

// copiedAlone reports whether the object has nothing but the claim of another object.
func (l *Lifecycle[T, R, S]) copiedAlone(o *Observation[R], record Record) bool {
	searched := l.OnDemand || !o.Capabilities().Has(cloud.Labels) || o.ShowsAbsence()
	return o.Copied && record.id() == "" && !o.Proved() && searched
}

// planDeletion deletes the resource and proves that it is gone, then releases the object.
func (l *Lifecycle[T, R, S]) planDeletion(obj T, obs S, record Record) reconciler.Plan[T, S] {
	o := obs.External()
	if l.copiedAlone(o, record) {
		return l.Do(l.Steps.Release)
	}
	if plan, decided := l.kind.PlanDeletion(obj, obs); decided {
		if o.Working {
			return l.End(l.working(o, record))
		}
		return plan
	}
	unsupported := l.unsupported(o)
	switch {
	case unsupported != nil:
		return l.End(unsupported)
	case o.Displaced != nil:
		return l.End(o.Displaced)
	case record.id() == "":
		return l.planDeletionUnrecorded(obj, obs)
	case l.OnDemand && !o.Looked:
		return l.Do(l.Steps.Look)
	case len(o.Duplicates) > 0 && o.Resource == nil && protected(obj, o.KeptBy):
		return l.End(l.protected(l.kind.Identify(o.Duplicates[0]).ID, o.KeptBy))
	case len(o.Duplicates) > 0:
		return l.Do(l.Steps.DeleteDuplicate)
	case o.Absent && !o.Gone:
		return l.End(l.unconfirmed(obj, o, record.id()))
	case o.Gone, o.Resource == nil, o.Deleted:
		return l.Do(l.released(obj, obs)...)
	}
	switch identity := l.kind.Identify(*o.Resource); {
	case identity.State == cloud.StateDeleting:
		return l.End(l.underDeletion(obj, o, identity.ID))
	case protected(obj, o.KeptBy):
		return l.End(l.protected(identity.ID, o.KeptBy))
	}
	return l.Do(append([]reconciler.Step[T, S]{l.Steps.Delete}, l.released(obj, obs)...)...)
}

// released returns the steps that prove that the resource is gone, delete what it left, and release the object.
func (l *Lifecycle[T, R, S]) released(obj T, obs S) []reconciler.Step[T, S] {
	steps := append([]reconciler.Step[T, S]{l.Steps.ConfirmGone}, l.kind.Leftovers(obj, obs)...)
	return append(steps, l.Steps.Release)
}

// planDeletionUnrecorded deletes what a create without a recorded answer may have made.
func (l *Lifecycle[T, R, S]) planDeletionUnrecorded(obj T, obs S) reconciler.Plan[T, S] {
	o := obs.External()
	removed, _ := l.Tracker.RemovedAt(obj.GetUID())
	if o.Proved() && !removed.IsZero() && !o.Looked { // it may be gone, and its id used again
		return l.Do(l.Steps.Look)
	}
	if o.Proved() {
		switch identity := l.kind.Identify(o.Candidates[0]); {
		case identity.State == cloud.StateDeleting:
			return l.Do(l.Steps.Adopt).Then(l.underDeletion(obj, o, identity.ID))
		case protected(obj, o.KeptBy):
			return l.Do(l.Steps.Adopt).Then(l.protected(identity.ID, o.KeptBy))
		case len(o.Candidates) > 1:
			return l.Do(l.Steps.Adopt, l.Steps.DeleteDuplicate)
		}
		return l.Do(l.Steps.Adopt, l.Steps.Delete, l.Steps.ConfirmGone, l.Steps.Release)
	}
	switch {
	case !o.ShowsAbsence():
		return l.Do(l.Steps.Look)
	case len(o.Candidates) > 0:
		return l.End(reconciler.Stalled(pcapi.BlockedReason, RecheckSoon, fmt.Errorf(
			"%s may be this %s, created by a request whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"delete it in the cloud if it is, or set spec.deletionPolicy to Orphan to release this object", l.names(o.Candidates, o.Claimed), l.Kind)))
	case o.SettleTimeLeft > 0:
		return l.End(reconciler.Wait(o.SettleTimeLeft, pcapi.RequestedReason,
			"the answer to the create was lost; waiting for the Cloud's settleTime to pass, to be sure that it created no %s", l.Noun))
	}
	return l.Do(append(l.kind.ConfirmNothing(obj, obs), l.Steps.Release)...)
}

// names lists resources for a message, of one name or of names that are made of it.
func (l *Lifecycle[T, R, S]) names(found []R, name string) string {
	const most = 5
	var ids, named []string
	chosen := false
	for _, r := range found[:min(len(found), most)] {
		identity := l.kind.Identify(r)
		ids, named = append(ids, identity.ID), append(named, fmt.Sprintf("%s named %q", identity.ID, identity.Name))
		chosen = chosen || !cloud.AlikeNames(identity.Name, name)
	}
	text := strings.Join(ids, ", ")
	switch {
	case chosen && len(found) > most:
		return fmt.Sprintf("%d %ss (%s, …)", len(found), l.Noun, strings.Join(named, ", "))
	case chosen:
		return fmt.Sprintf("%s %s", l.Noun, strings.Join(named, ", "))
	case len(found) > most:
		return fmt.Sprintf("%d %ss named %q (%s, …)", len(found), l.Noun, name, text)
	}
	return fmt.Sprintf("%s %s named %q", l.Noun, text, name)
}

// Do returns the plan of these steps, after which the object is in sync.
func (l *Lifecycle[T, R, S]) Do(steps ...reconciler.Step[T, S]) reconciler.Plan[T, S] {
	return reconciler.Do(steps...)
}

// End returns the plan without steps whose outcome is err.
func (l *Lifecycle[T, R, S]) End(err error) reconciler.Plan[T, S] {
	return reconciler.End[T, S](err)
}
