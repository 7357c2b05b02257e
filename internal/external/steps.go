package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the lifecycle's steps.
const (
	StepClaim           = "Claim"
	StepUnclaim         = "Unclaim"
	StepLook            = "Look"
	StepCreate          = "Create"
	StepAdopt           = "Adopt"
	StepDeleteDuplicate = "DeleteDuplicate"
	StepDelete          = "Delete"
	StepConfirmGone     = "ConfirmGone"
	StepRelease         = "Release"
)

// change marks a step that creates or deletes in the cloud.
const change = reconciler.NeedsCloud | reconciler.NeedsBrakeOff | reconciler.Mutates

// Steps are the steps of a lifecycle.
type Steps[T reconciler.Object, S any] struct {
	// FirstClaim stores the claim before a create. It needs what the create needs,
	// so that an object which only waits for the cloud can be deleted.
	FirstClaim reconciler.Step[T, S]
	// Claim stores the claim of an object whose resource exists.
	Claim reconciler.Step[T, S]
	// Unclaim removes the claim of an object that has nothing in the cloud.
	Unclaim reconciler.Step[T, S]
	// Look waits for a listing that shows what an earlier create made.
	Look reconciler.Step[T, S]
	// Create sends the create.
	Create reconciler.Step[T, S]
	// Adopt takes the resource that the search found as the object's.
	Adopt reconciler.Step[T, S]
	// DeleteDuplicate deletes one of the resources beside the one that is kept.
	DeleteDuplicate reconciler.Step[T, S]
	// Delete requests the deletion of the resource.
	Delete reconciler.Step[T, S]
	// ConfirmGone asks the cloud whether the resource is gone.
	ConfirmGone reconciler.Step[T, S]
	// Release removes the finalizer of a deleted object.
	Release reconciler.Step[T, S]
}

func (l *Lifecycle[T, R, S]) steps() Steps[T, S] {
	return Steps[T, S]{
		FirstClaim:      l.Step(StepClaim, change, l.claim),
		Claim:           l.Step(StepClaim, reconciler.Mutates, l.claim),
		Unclaim:         l.Step(StepUnclaim, reconciler.Mutates, l.unclaim),
		Look:            l.Step(StepLook, reconciler.NeedsCloud, l.look),
		Create:          l.Step(StepCreate, change, l.create),
		Adopt:           l.Step(StepAdopt, reconciler.Mutates, l.adopt),
		DeleteDuplicate: l.Step(StepDeleteDuplicate, change, l.deleteDuplicate),
		Delete:          l.Step(StepDelete, change, l.remove),
		ConfirmGone:     l.Step(StepConfirmGone, reconciler.NeedsCloud|reconciler.NeedsBrakeOff, l.confirmGone),
		Release:         l.Step(StepRelease, reconciler.Mutates, l.release),
	}
}

// claim stores the name and the Cloud of the create that follows. Where names may
// prove later which object owns a resource, the status holds them, too. It is written
// before the finalizer: a finalizer without it was added by somebody else.
func (l *Lifecycle[T, R, S]) claim(ctx context.Context, obj T, obs S) error {
	o, name := obs.External(), l.kind.Record(obj).Name
	if l.claimInStatus(o.Capabilities()) && l.kind.Record(obj).ID == "" {
		err := reconciler.WriteStatus(ctx, l.Client, obj, func() { l.kind.RecordClaim(obj, name, o.Cloud) })
		if err != nil {
			return err
		}
		o.ClaimProved = true
	}
	before := l.Tracker.ClaimOf(obj.GetUID())
	l.Tracker.SetClaim(obj.GetUID(), pending.Claim{Name: name, Cloud: o.Cloud}) // the object may be gone before the answer
	if err := reconciler.Claim(ctx, l.Client, obj, l.Options.Finalizer, ClaimAnnotations(name, o.Cloud)); err != nil {
		l.Tracker.SetClaim(obj.GetUID(), before)
		return err
	}
	l.Tracker.ClaimedSince(obj.GetUID(), obj.GetAnnotations()[pcapi.ClaimRenewedAtAnnotation], o.Now)
	if o.Claimed == "" {
		o.Fresh = true
		l.Tracker.Hold(obj.GetUID(), true)
	}
	o.Claimed = name
	return nil
}

// unclaim removes the claim, from the status last: what is left of an unclaim that was
// interrupted has no finalizer, and is no claim.
func (l *Lifecycle[T, R, S]) unclaim(ctx context.Context, obj T, obs S) error {
	l.Tracker.Hold(obj.GetUID(), false)
	l.Tracker.SetClaim(obj.GetUID(), pending.Claim{})
	err := reconciler.Release(ctx, l.Client, obj, l.Options.Finalizer,
		pcapi.ClaimedNameAnnotation, pcapi.ClaimedCloudAnnotation, pcapi.ClaimedUIDAnnotation, pcapi.ClaimRenewedAtAnnotation)
	if err != nil {
		return err
	}
	obs.External().Claimed = ""
	if deleted(obj) || l.kind.Record(obj).ID != "" {
		return nil
	}
	return reconciler.WriteStatus(ctx, l.Client, obj, func() { l.kind.RecordClaim(obj, "", "") })
}

func (l *Lifecycle[T, R, S]) look(_ context.Context, obj T, obs S) error {
	o := obs.External()
	if l.OnDemand {
		return fmt.Errorf("the cloud was not asked for its %ss", l.Noun)
	}
	if o.Looked {
		return reconciler.Wait(Safety, pcapi.OutcomeUnknownReason,
			"waiting for a complete listing that shows whether an earlier create made a %s: %s", l.Noun, incomplete(o))
	}
	o.Inventory.EnqueueAfterListing(l.ref(obj), o.Horizon)
	return &reconciler.WaitError{
		After: Safety, Reason: pcapi.OutcomeUnknownReason, Quiet: true,
		Message: "looking in the cloud for the " + l.Noun + " of an earlier create",
	}
}

// holdClaim writes the claim again before another create. A removal of the claim that is still under way
// then fails. If another manager is about to send a create as well, only one of the two can write the claim,
// and the other one counts its settle time from that renewal, so that it does not make a second resource.
func (l *Lifecycle[T, R, S]) holdClaim(ctx context.Context, obj T, obs S) error {
	o := obs.External()
	held := l.Tracker.Holds(obj.GetUID()) || l.kind.KeepsClaim(obs, nil)
	only := o.Fresh || l.alone() && l.Tracker.AllRefused(obj.GetUID())
	if held && (only || l.kind.Repeatable(obj, obs)) {
		return nil
	}
	renewed := o.Now.UTC().Format(time.RFC3339Nano)
	if err := reconciler.Claim(ctx, l.Client, obj, l.Options.Finalizer, map[string]string{pcapi.ClaimRenewedAtAnnotation: renewed}); err != nil {
		return err
	}
	l.Tracker.Renewed(obj.GetUID(), renewed)
	return nil
}

// create sends the create. Every answer that is not clear counts as sent.
func (l *Lifecycle[T, R, S]) create(ctx context.Context, obj T, obs S) error {
	o, uid := obs.External(), obj.GetUID()
	if err := l.holdClaim(ctx, obj, obs); err != nil {
		return err
	}
	o.First = o.Fresh && l.alone()
	result, err := l.kind.Create(ctx, obj, obs)
	if err == nil {
		return l.created(obj, obs, result)
	}
	if outcome := l.unclear(obj, obs, err); outcome != nil {
		return outcome
	}
	switch {
	case !o.Fresh && o.SettleTimeLeft > 0: // an earlier create may still take effect
	case !l.alone(): // another manager may have acted on the claim
	case l.kind.KeepsClaim(obs, err):
		l.Tracker.Refused(uid)
	default:
		if err := l.unclaimRefused(ctx, obj, obs); err != nil {
			return err
		}
	}
	if outcome := l.kind.Refused(ctx, obj, obs, err); outcome != nil {
		return outcome
	}
	return l.Failed(obj, o, err)
}

// unclaimRefused removes the claim of an object whose create was refused. The refusal says nothing about a
// create before it, which the listing may not show.
func (l *Lifecycle[T, R, S]) unclaimRefused(ctx context.Context, obj T, obs S) error {
	if !obs.External().Fresh {
		for _, step := range l.kind.ConfirmNothing(obj, obs) {
			if err := step.Run(ctx, obj, obs); err != nil {
				return err
			}
		}
	}
	return l.unclaim(ctx, obj, obs)
}

// created records the answer to a create.
func (l *Lifecycle[T, R, S]) created(obj T, obs S, result Result[R]) error {
	o, uid, id := obs.External(), obj.GetUID(), l.kind.Identify(result.Resource).ID
	only := l.alone() && (o.Fresh || o.SettleTimeLeft == 0 && len(l.kind.ConfirmNothing(obj, obs)) == 0)
	o.Now = l.Clock() // the settle time counts from the answer
	if id == "" {
		l.Tracker.Unknown(uid, o.Now)
	} else {
		l.Tracker.Created(uid, id, o.Now)
		l.kind.Remember(obj, obs, result.Resource, true)
	}
	if result.Operation != "" {
		return l.begin(obj, obs, OperationCreate, result.Operation, only)
	}
	l.Backoff.Forget(uid)
	if progress := l.progress(l.kind.Identify(result.Resource)); progress != nil {
		return progress
	}
	return l.kind.Kept(obj, obs)
}

// unclear returns the outcome of an error that leaves open whether this create
// or an earlier one took effect; nil if the error says that none did.
func (l *Lifecycle[T, R, S]) unclear(obj T, obs S, err error) error {
	o, cause := obs.External(), l.kind.Unclear(obj, obs, err)
	displaced := cloud.Is(err, cloud.Displaced) // an earlier create made it
	if cause == nil && !cloud.Uncertain(err) && !reconciler.IsStalled(err) && !displaced {
		return nil
	}
	l.Tracker.Unknown(obj.GetUID(), l.Clock())
	if l.OnDemand {
		o.Inventory.RequestPoll()
	}
	switch {
	case displaced:
		return displacedOutcome(obj, err)
	case reconciler.IsStalled(err): // the answer is about another resource
		return err
	case reconciler.IsStalled(cause):
		return cause
	}
	if cause == nil || errors.Is(err, cause) {
		cause = fmt.Errorf("%w; the %s may have been created all the same: it is looked for before another create", cloud.Public(err), l.Noun)
	}
	return reconciler.Wait(l.Backoff.When(obj.GetUID()), pcapi.OutcomeUnknownReason, "%v", cause)
}

// adopt takes the oldest candidate. A resource to be imported is known already.
func (l *Lifecycle[T, R, S]) adopt(_ context.Context, obj T, obs S) error {
	o := obs.External()
	if o.Resource != nil && !o.Made {
		return nil
	}
	l.Backoff.Forget(obj.GetUID())
	o.Resource, o.Owned = &o.Candidates[0], true
	if !o.Made {
		o.How = pcapi.AdoptedReason
	}
	if o.Proof == OwnerProof {
		o.Duplicates = o.Candidates[1:]
	}
	if !l.OnDemand {
		// An event of a server finds its object by the recorded id or by labels: until
		// the id is on record, the next listing enqueues the object.
		o.Inventory.EnqueueAfterListing(l.ref(obj), l.Clock())
	}
	return nil
}

func (l *Lifecycle[T, R, S]) deleteDuplicate(ctx context.Context, obj T, obs S) error {
	o := obs.External()
	extra := o.Duplicates[0]
	id, wait := l.kind.Identify(extra).ID, time.Second
	_, err := l.kind.Delete(ctx, obj, obs, extra)
	if err != nil && !notFound(err) {
		return l.Failed(obj, o, err)
	}
	if !l.OnDemand && (err != nil || l.kind.Identify(extra).State == cloud.StateDeleting) { // a listing shows when it is gone
		wait = l.Backoff.When(obj.GetUID())
		o.Inventory.EnqueueAfterListing(l.ref(obj), l.Clock())
	}
	if o.Resource == nil {
		return reconciler.Wait(wait, pcapi.ProgressingReason, "one create made several %[1]ss; %[1]s %[2]s is deleted before this %[3]s is removed", l.Noun, id, l.Kind)
	}
	return reconciler.Wait(wait, pcapi.ProgressingReason, "one create made several %[1]ss; %[1]s %[2]s is the recorded one, %[1]s %[3]s is being deleted",
		l.Noun, l.kind.Identify(*o.Resource).ID, id)
}

// remove requests the deletion. If the cloud takes its time over it, an event
// or the next look shows when the resource is gone.
func (l *Lifecycle[T, R, S]) remove(ctx context.Context, obj T, obs S) error {
	o := obs.External()
	identity := l.kind.Identify(*o.Resource)
	id := identity.ID
	l.Tracker.Deletes(obj.GetUID(), id, identity.CreatedAt)
	removal, err := l.kind.Delete(ctx, obj, obs, *o.Resource)
	if err != nil && !notFound(err) {
		if cloud.Uncertain(err) {
			l.Tracker.Removed(obj.GetUID(), l.Clock(), pending.Unclear)
		}
		return l.Failed(obj, o, err)
	}
	l.Tracker.Removed(obj.GetUID(), l.Clock(), answerOf(removal, err))
	o.Looked = false // what was listed before the answer proves nothing
	if err == nil && removal.Operation != "" {
		return l.Begin(obj, obs, OperationDelete, removal.Operation)
	}
	if !l.OnDemand && err == nil {
		l.Backoff.Forget(obj.GetUID())
	}
	if err == nil && !removal.Gone && o.SettleTimeLeft == 0 { // else the cloud is asked at once, since a read must show the deletion
		return &reconciler.WaitError{After: quiet, Reason: pcapi.RequestedReason, Message: l.deleting(id), Quiet: true}
	}
	return nil
}

// answerOf returns what the answer to a deletion says of the resource.
func answerOf(removal Removal, err error) pending.Answer {
	switch {
	case err != nil:
		return pending.Unclear
	case removal.Gone:
		return pending.Gone
	}
	return pending.Accepted
}

// confirmGone gets the cloud's own answer that the resource does not exist.
func (l *Lifecycle[T, R, S]) confirmGone(ctx context.Context, obj T, obs S) error {
	o := obs.External()
	if o.Gone {
		return nil
	}
	id := l.kind.Record(obj).id()
	if o.Resource != nil {
		id = l.kind.Identify(*o.Resource).ID
	}
	r, err := l.kind.Get(ctx, obs, id)
	switch {
	case notFound(err) && l.observer.absenceProved(obj, o, err):
		o.Gone = true
		return nil
	case notFound(err):
		return l.awaitProof(obj, o, id)
	case err != nil && l.OnDemand:
		return l.outcomeOf(obj, o, l.Backoff, err)
	case err != nil:
		return l.Failed(obj, o, err)
	}
	l.observer.read(obj, obs, r)
	if o.Gone {
		return nil
	}
	if !l.OnDemand && l.kind.Identify(r).State == cloud.StateDeleting {
		return l.underDeletion(obj, o, id)
	}
	wait := time.Second
	if l.OnDemand {
		wait = l.Backoff.When(obj.GetUID()) // no event reports when it is gone
	}
	return reconciler.Wait(wait, pcapi.RequestedReason, "%s", l.deleting(id))
}

// awaitProof waits for a listing that proves that a deleted resource is gone, longer
// each time.
func (l *Lifecycle[T, R, S]) awaitProof(obj T, o *Observation[R], id string) error {
	wait := l.unconfirmed(obj, o, id)
	delay := l.Backoff.When(obj.GetUID())
	if wait.After = delay; !l.Tracker.ListingProves(obj.GetUID()) {
		wait.After = max(o.SettleTimeLeft, delay)
	}
	if !l.OnDemand && delay < slowProof {
		o.Inventory.EnqueueAfterListing(l.ref(obj), l.Clock())
	}
	return reportLate(obj, o, wait)
}

func (l *Lifecycle[T, R, S]) release(ctx context.Context, obj T, obs S) error {
	o := obs.External()
	err := l.unclaim(ctx, obj, obs)
	if err != nil && !errors.Is(err, reconciler.ErrUnknown) {
		return err
	}
	l.ForgetObject(obj.GetUID())
	if o.Gone && o.Resource != nil {
		l.kind.ForgetResource(obs, l.kind.Identify(*o.Resource).ID)
	}
	return err
}
