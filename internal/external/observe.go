package external

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Observe reads the inventory, other objects, and the cloud only where the
// inventory does not say enough. It changes neither the cloud nor Kubernetes
// objects: it stores what it read, and subscribes the object to events.
func (l *Lifecycle[T, R, S]) Observe(ctx context.Context, obj T) (S, error) {
	obs, record := l.observation(), l.kind.Record(obj)
	o := obs.External()
	o.Now, o.How = l.Clock(), pcapi.CreatedReason
	wanted, err := l.wanted(ctx, obj, record.Ref)
	if err != nil {
		return obs, controller.AwaitNamespace(err)
	}
	o.Cloud = cmp.Or(RecordedCloud(obj, record.ID, record.Cloud, l.Options.Finalizer), wanted)
	o.Moved = record.ID == "" && o.Cloud != wanted
	o.Claimed = claimedName(obj, record, l.Options.Finalizer, l.Tracker.ClaimOf(obj.GetUID()))
	o.Copied = o.Claimed == "" && reconciler.ClaimOfAnother(obj)
	age := o.Now.Sub(obj.GetCreationTimestamp().Time)
	o.New = record.ID == "" && record.ObservedGeneration <= 0 && age.Abs() < keyLifetime // the clocks may differ
	o.Operation = l.operation(obj, record)
	o.ClaimProved = o.Claimed != "" && o.Claimed == record.Claimed
	if err := l.admit(ctx, obj, o, record); err != nil {
		return obs, controller.AwaitNamespace(err)
	}
	if record.ID == "" && o.Claimed != "" && (o.ClaimProved || !l.claimInStatus(o.Capabilities())) {
		l.Tracker.SetClaim(obj.GetUID(), pending.Claim{Name: o.Claimed, Cloud: o.Cloud})
	}
	if o.Denied == nil && !deleted(obj) || deleted(obj) && !record.Shared {
		err = l.observeResource(ctx, obj, obs, record)
	}
	if related := l.kind.Relate(ctx, obj, obs); err == nil {
		err = controller.AwaitNamespace(related)
	}
	return obs, err
}

// admit observes whether the object may use its Cloud, and sets Inventory and View.
// A Cloud that is being deleted takes nothing new.
func (l *Lifecycle[T, R, S]) admit(ctx context.Context, obj T, o *Observation[R], record Record) error {
	c, err := tenancy.Open(ctx, l.Client, obj.GetNamespace(), o.Cloud)
	denied, isDenied := errors.AsType[*tenancy.AccessError](err)
	if isDenied && denied.Missing {
		o.CloudMissing = true
		o.Inventory = l.Directory.Absent(o.Cloud)
	} else {
		o.Inventory = l.Directory.Cloud(o.Cloud)
	}
	o.View = o.Inventory.View()
	if isDenied {
		o.Denied = controller.Inaccessible(obj, o.Now, denied, l.Elsewhere)
		controller.LogAccess(ctx, obj, denied, o.Denied.Error())
		return nil
	}
	if err != nil {
		return err
	}
	o.Spec = &c.Spec
	if tenancy.Closing(c) && record.ID == "" {
		o.Closing = l.blocked(obj, o, "Cloud %q is being deleted: %s", o.Cloud, l.Elsewhere)
	}
	if o.Closing != nil && l.unclaimed(o) {
		o.Denied = o.Closing
	}
	return nil
}

// unclaimed reports whether no create of the object was sent: it has no claim, or one
// that a user wrote.
func (l *Lifecycle[T, R, S]) unclaimed(o *Observation[R]) bool {
	return o.Claimed == "" || (o.Available() && l.claimInStatus(o.Capabilities()) && !o.ClaimProved)
}

func (l *Lifecycle[T, R, S]) observeResource(ctx context.Context, obj T, obs S, record Record) error {
	o, id := obs.External(), record.id()
	supported := l.unsupported(o) == nil
	if err := l.observeOperation(ctx, obj, obs, record); err != nil {
		return err
	}
	switch {
	case id == "" && o.Claimed == "":
		return l.lookUnclaimed(ctx, obj, obs)
	case l.OnDemand && !o.Available():
		o.Inventory.EnqueueWhenAvailable(l.ref(obj), o.View)
		return nil
	case !supported:
		return nil
	}
	if id == "" {
		l.setHorizon(obj, o)
	} else {
		l.setProofHorizon(obj, o, record)
	}
	if err := l.kind.Look(ctx, obj, obs, id); cloud.Is(err, cloud.Displaced) {
		o.Displaced = displacedOutcome(obj, err)
		return nil
	} else if err != nil {
		return l.lookFailed(obj, o, err)
	}
	if deleted(obj) && !o.ListedAt.IsZero() {
		l.Tracker.Listed(obj.GetUID(), o.ListedAt)
	}
	if o.Resource != nil && l.reused(obj, obs, *o.Resource) {
		o.MarkGone()
	}
	return l.askIfUnknown(ctx, obj, obs, id, record)
}

// lookUnclaimed looks for the resource of an object without a claim: somebody may have removed the claim
// while no process saw it. Only owner labels prove then which object owns a resource. On a cloud without
// labels, the status holds the claim.
func (l *Lifecycle[T, R, S]) lookUnclaimed(ctx context.Context, obj T, obs S) error {
	if l.OnDemand || !obs.External().Capabilities().Has(cloud.Labels) {
		return nil
	}
	return l.kind.Look(ctx, obj, obs, "")
}

// askIfUnknown asks the cloud for the resource if what was looked up does not say enough.
func (l *Lifecycle[T, R, S]) askIfUnknown(ctx context.Context, obj T, obs S, id string, record Record) error {
	o := obs.External()
	created, known := l.Tracker.CreatedID(obj.GetUID())
	switch {
	case id == "" && l.removed(obj) && o.Proved():
		return l.askUnrecorded(ctx, obj, obs, l.kind.Identify(o.Candidates[0]).ID)
	case id == "" && known && len(o.Candidates) == 0 && (l.OnDemand || o.Looked):
		return l.askUnrecorded(ctx, obj, obs, created)
	case id == "" || o.Working || o.Gone:
		l.Looks.Forget(obj.GetUID())
		return nil
	case o.Resource != nil && !l.askAgain(obj, o, id):
		l.Looks.Forget(obj.GetUID())
		return l.followDeletion(ctx, obj, obs, id)
	}
	return l.ask(ctx, obj, obs, id, record)
}

// operation returns the operation that is not known to have ended. What this process
// began is newer than what the status records.
func (l *Lifecycle[T, R, S]) operation(obj T, record Record) Operation {
	recorded := record.Operation
	recorded.Recorded = recorded.ID != ""
	ended := l.Tracker.HasEnded(obj.GetUID(), recorded.ID)
	began, ok := l.Tracker.Operation(obj.GetUID())
	switch {
	case !ok && ended:
		return Operation{}
	case !ok:
		return recorded
	}
	began.Recorded = began.ID == recorded.ID
	return began
}

// askUnrecorded asks the cloud for a resource without a recorded id: a create of this process made it
// and no listing shows it, or its deletion was sent, so that another one may have its id.
func (l *Lifecycle[T, R, S]) askUnrecorded(ctx context.Context, obj T, obs S, id string) error {
	o := obs.External()
	if !o.Available() {
		o.Looked = false // what the listing lacks is not proved to be gone
		return nil
	}
	others := o.Candidates[min(1, len(o.Candidates)):]
	r, err := l.kind.Get(ctx, obs, id)
	switch {
	case cloud.Is(err, cloud.Displaced):
		o.Displaced = displacedOutcome(obj, err)
	case cloud.Is(err, cloud.NotFound), err == nil && l.reused(obj, obs, r), notFound(err) && l.unlisted(o, id):
		o.Candidates = others
		if len(others) == 0 && !l.OnDemand && !l.Tracker.AllRefused(obj.GetUID()) {
			o.Missing, o.MissingProved = id, o.SettleTimeLeft == 0 && (cloud.Is(err, cloud.NotFound) || o.ShowsAbsence())
		}
	case notFound(err): // a listing decides
	case err != nil:
		return l.lookFailed(obj, o, err)
	case l.kind.Owns(obj, obs, r):
		o.Candidates, o.Proof = append([]R{r}, others...), OwnerProof
	case len(o.Candidates) > 0 || !l.OnDemand && !l.removed(obj): // else the search showed that it is another one
		o.Candidates, o.Proof = []R{r}, NoProof
	}
	l.Looks.Forget(obj.GetUID())
	return nil
}

// unlisted reports whether no listing shows a resource that was found without a recorded id. What
// is looked up on demand may be the answer to the create until the settle time has passed.
func (l *Lifecycle[T, R, S]) unlisted(o *Observation[R], id string) bool {
	if l.OnDemand {
		return o.SettleTimeLeft > 0
	}
	return o.Looked && !o.View.Snapshot.Has(id)
}

// askAgain reports whether the cloud is asked for a resource that is known: its deletion was
// answered, it is not known as being deleted, and no listing shows it since. It may be gone,
// and another one may get its id before the next deletion.
func (l *Lifecycle[T, R, S]) askAgain(obj T, o *Observation[R], id string) bool {
	switch {
	case !l.removed(obj), l.kind.Identify(*o.Resource).State == cloud.StateDeleting:
		return false
	case l.OnDemand:
		return o.ListedAt.IsZero()
	}
	return !o.Looked || !o.View.Snapshot.Has(id)
}

// ask asks the cloud for a resource that no listing shows, or whose deletion was answered.
func (l *Lifecycle[T, R, S]) ask(ctx context.Context, obj T, obs S, id string, record Record) error {
	o := obs.External()
	if !o.Available() || (o.View.Braked && record.ID != "") {
		o.Inventory.EnqueueWhenAvailable(l.ref(obj), o.View)
		return nil
	}
	r, err := l.kind.Get(ctx, obs, id)
	displaced := cloud.Is(err, cloud.Displaced)
	switch {
	case displaced && record.ID != "":
		o.Displaced = displacedOutcome(obj, err)
	case notFound(err), displaced: // an import must not show where it is
		o.Absent = true
		if o.Gone = l.absenceProved(obj, o, err); !o.Gone && !l.OnDemand {
			o.Inventory.EnqueueAfterListing(l.ref(obj), Latest(o.Horizon, o.Now))
		}
	case err != nil:
		return l.lookFailed(obj, o, err)
	default:
		l.read(obj, obs, r)
		if !l.OnDemand && !l.removed(obj) && o.Resource != nil && l.kind.Identify(r).State != cloud.StateDeleting && o.isUnlisted(record) {
			o.Inventory.RecordUnlisted(id)
		}
	}
	l.Looks.Forget(obj.GetUID())
	return nil
}

// followDeletion asks the cloud for a resource that is known as being deleted, and has a
// listing decide if the cloud does not find it. A cloud may report that a server is gone
// before its reads show that, and does not report it again. The deletion of a deleted
// object is followed once it takes long: its event or operation mostly shows the end.
func (l *Lifecycle[T, R, S]) followDeletion(ctx context.Context, obj T, obs S, id string) error {
	o := obs.External()
	switch {
	case l.OnDemand, !o.Available(), o.View.Braked, l.kind.Identify(*o.Resource).State != cloud.StateDeleting:
		return nil
	case deleted(obj) && o.Now.Sub(l.Tracker.DeletedSince(obj.GetUID(), o.Now)) < Safety:
		return nil
	}
	r, err := l.kind.Get(ctx, obs, id)
	switch {
	case notFound(err):
		o.Inventory.EnqueueAfterListing(l.ref(obj), o.Now)
	case err != nil:
		return l.lookFailed(obj, o, err)
	case l.kind.Identify(r).State != cloud.StateDeleting:
		l.read(obj, obs, r)
	}
	return nil
}

// lookFailed returns the outcome of a failed look. One made on demand says
// little of the cloud as a whole, so it requests no poll, and the status of an
// object that is Ready reports it only after some failures in a row.
func (l *Lifecycle[T, R, S]) lookFailed(obj T, o *Observation[R], err error) error {
	if !l.OnDemand {
		return l.Failed(obj, o, err)
	}
	outcome := l.outcomeOf(obj, o, l.Looks, err)
	wait, _ := errors.AsType[*reconciler.WaitError](outcome)
	record := l.kind.Record(obj)
	wasReady := !deleted(obj) && record.ID != "" && record.ObservedGeneration == obj.GetGeneration() &&
		meta.IsStatusConditionTrue(obj.GetConditions(), pcapi.ReadyCondition)
	if wait != nil && wasReady && l.Looks.NumRequeues(obj.GetUID()) <= tolerated {
		wait.Quiet = true
	}
	return outcome
}

// notFound reports whether the cloud, or something in front of it, answered that a
// resource does not exist.
func notFound(err error) bool { return cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven) }

// absenceProved reports whether err, an answer that the resource on record does not
// exist, proves it. Reads may lag behind writes: until the settle time has passed
// since the create was answered or a deletion failed, such an answer counts only if the
// cloud said that its deletion is complete, if a read has shown the deletion, or if the
// cloud accepted the deletion of what a listing has shown. To complete a deletion, the
// cloud's own word is enough in the first two cases. All else also needs a complete listing
// that lacks the resource: while listings are incomplete, it needs the cloud's own word.
func (l *Lifecycle[T, R, S]) absenceProved(obj T, o *Observation[R], err error) bool {
	_, deleting := l.Tracker.RemovedAt(obj.GetUID())
	switch {
	case deleted(obj) && o.ShowsAbsence() && l.Tracker.ListingProves(obj.GetUID()):
		return true
	case o.SettleTimeLeft > 0 && !deleting:
		return false
	case deleted(obj) && cloud.Is(err, cloud.NotFound):
		return true
	case o.Incomplete && !deleting && !cloud.Is(err, cloud.NotFound):
		return false
	}
	return o.Looked && o.SettleTimeLeft == 0 // before, the listing may lag behind the create
}

// read remembers the answer to a read of the resource. If the answer shows another resource
// that has got the id, the resource is gone.
func (l *Lifecycle[T, R, S]) read(obj T, obs S, r R) {
	switch {
	case l.reused(obj, obs, r):
		obs.External().MarkGone()
		return
	case deleted(obj) && l.kind.Owns(obj, obs, r):
		l.Tracker.Read(obj.GetUID(), l.kind.Identify(r).State == cloud.StateDeleting)
	}
	l.kind.Remember(obj, obs, r, false)
}

// reused reports whether the cloud has given the id of the resource to r, so that the
// resource is gone. A cloud may rename a resource while it deletes it. One that was created after the deletion of the
// object, and the settle time after the id was recorded, is another one, whatever this process knows of a
// deletion. Both are required, since the clock of the cloud may be ahead.
func (l *Lifecycle[T, R, S]) reused(obj T, obs S, r R) bool {
	identity, since := l.kind.Identify(r), l.kind.Record(obj).Since
	if !deleted(obj) || identity.Name == "" || identity.State == cloud.StateDeleting || l.kind.Owns(obj, obs, r) {
		return false // a server without a name may be the object's own, which the cloud is removing
	}
	later := !since.IsZero() && identity.CreatedAt.After(Latest(obs.External().View.Settings.ShownFrom(since), obj.GetDeletionTimestamp().Time))
	return later || l.Tracker.Reused(obj.GetUID(), identity.CreatedAt)
}

// removed reports whether a deletion of the resource was sent that may have taken effect.
func (l *Lifecycle[T, R, S]) removed(obj T) bool {
	at, _ := l.Tracker.RemovedAt(obj.GetUID())
	return deleted(obj) && !at.IsZero()
}

// setProofHorizon sets from when on the absence of a recorded or imported resource
// counts: the settle time after its create was answered, after the object that imports
// it was created, or after its deletion failed, and, for a deleted object, the first
// observation of that and the answer to the deletion of the resource.
func (l *Lifecycle[T, R, S]) setProofHorizon(obj T, o *Observation[R], record Record) {
	since := record.Since
	if record.ID == "" {
		since = obj.GetCreationTimestamp().Time // somebody may have created it a moment before
	}
	created, kept := meta.FindStatusCondition(obj.GetConditions(), pcapi.CreatedCondition), l.Tracker.KeptAt(obj.GetUID())
	since = Latest(since, kept)
	if lost := created != nil && created.Reason == pcapi.LostReason && kept.IsZero(); !since.IsZero() && !lost {
		end := o.View.Settings.ShownFrom(since)
		if o.SettleTimeLeft = max(0, end.Sub(o.Now)); o.SettleTimeLeft == 0 {
			o.Horizon = end
		}
	}
	if deleted(obj) {
		removed, _ := l.Tracker.RemovedAt(obj.GetUID())
		o.Horizon = Latest(o.Horizon, Latest(removed, l.Tracker.DeletedSince(obj.GetUID(), o.Now)))
	}
}

// setHorizon sets from when on a listing shows what the object's creates made.
func (l *Lifecycle[T, R, S]) setHorizon(obj T, o *Observation[R]) {
	o.ClaimedAt = l.Tracker.ClaimedSince(obj.GetUID(), obj.GetAnnotations()[pcapi.ClaimRenewedAtAnnotation], o.Now)
	since := l.Tracker.UnknownSince(obj.GetUID(), o.ClaimedAt)
	end := since.Add(o.View.Settings.SettleTime)
	o.SettleTimeLeft = max(0, end.Sub(o.Now))
	o.Horizon = since
	if o.SettleTimeLeft == 0 {
		o.Horizon = end
	}
	if deleted(obj) {
		// A listing begun later shows what another manager created before it knew of the deletion.
		removed, _ := l.Tracker.RemovedAt(obj.GetUID())
		o.Horizon = Latest(o.Horizon, Latest(removed, l.Tracker.DeletedSince(obj.GetUID(), o.Now)))
	}
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
