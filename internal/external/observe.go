package external

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observer reads what a reconcile knows of an object.
type observer[T reconciler.Object, R any, S Observed[R]] struct {
	*Outcomes[R]
	kind Kind[T, R, S]
	// observation returns an empty one.
	observation func() S
}

// observe reads the inventory, other objects, and the cloud only where the
// inventory does not say enough. It changes neither the cloud nor Kubernetes
// objects: it stores what it read, and subscribes the object to events.
func (w *observer[T, R, S]) observe(ctx context.Context, obj T) (S, error) {
	obs, record := w.observation(), w.kind.Record(obj)
	o := obs.External()
	o.Now, o.How = w.Clock(), pcapi.CreatedReason
	wanted, err := w.wanted(ctx, obj, record.Ref)
	if err != nil {
		return obs, controller.AwaitNamespace(err)
	}
	o.Cloud = cmp.Or(RecordedCloud(obj, record.ID, record.Cloud, w.Finalizer), wanted)
	o.Moved = record.ID == "" && o.Cloud != wanted
	o.Claimed = claimedName(obj, record, w.Finalizer, w.Tracker.ClaimOf(obj.GetUID()))
	o.Copied = o.Claimed == "" && reconciler.ClaimOfAnother(obj)
	age := o.Now.Sub(obj.GetCreationTimestamp().Time)
	o.New = record.ID == "" && record.ObservedGeneration <= 0 && age.Abs() < keyLifetime // the clocks may differ
	o.Operation = w.operation(obj, record)
	o.ClaimProved = o.Claimed != "" && o.Claimed == record.Claimed
	if err := w.admit(ctx, obj, o, record); err != nil {
		return obs, controller.AwaitNamespace(err)
	}
	if record.ID == "" && o.Claimed != "" && (o.ClaimProved || !w.claimInStatus(o.Capabilities())) {
		w.Tracker.SetClaim(obj.GetUID(), pending.Claim{Name: o.Claimed, Cloud: o.Cloud})
	}
	if o.Denied == nil && !deleted(obj) || deleted(obj) && !record.Shared {
		err = w.observeResource(ctx, obj, obs, record)
	}
	if related := w.kind.Relate(ctx, obj, obs); err == nil {
		err = controller.AwaitNamespace(related)
	}
	return obs, err
}

// admit observes whether the object may use its Cloud, and sets Inventory and View.
// A Cloud that is being deleted takes nothing new.
func (w *observer[T, R, S]) admit(ctx context.Context, obj T, o *Observation[R], record Record) error {
	c, err := tenancy.Open(ctx, w.Client, obj.GetNamespace(), o.Cloud)
	denied, isDenied := errors.AsType[*tenancy.AccessError](err)
	if isDenied && denied.Missing {
		o.CloudMissing = true
		o.Inventory = w.Directory.Absent(o.Cloud)
	} else {
		o.Inventory = w.Directory.Cloud(o.Cloud)
	}
	o.View = o.Inventory.View()
	if isDenied {
		o.Denied = controller.Inaccessible(obj, o.Now, denied, w.Elsewhere)
		controller.LogAccess(ctx, obj, denied, o.Denied.Error())
		return nil
	}
	if err != nil {
		return err
	}
	o.Spec = &c.Spec
	if tenancy.Closing(c) && record.ID == "" {
		o.Closing = w.blocked(obj, o, "Cloud %q is being deleted: %s", o.Cloud, w.Elsewhere)
	}
	if o.Closing != nil && w.unclaimed(o) {
		o.Denied = o.Closing
	}
	return nil
}

// unclaimed reports whether no create of the object was sent: it has no claim, or one
// that a user wrote.
func (w *observer[T, R, S]) unclaimed(o *Observation[R]) bool {
	return o.Claimed == "" || (o.Available() && w.claimInStatus(o.Capabilities()) && !o.ClaimProved)
}

func (w *observer[T, R, S]) observeResource(ctx context.Context, obj T, obs S, record Record) error {
	o, id := obs.External(), record.id()
	supported := w.unsupported(o) == nil
	if err := w.observeOperation(ctx, obj, obs, record); err != nil {
		return err
	}
	switch {
	case id == "" && o.Claimed == "":
		return w.lookUnclaimed(ctx, obj, obs)
	case w.OnDemand && !o.Available():
		o.Inventory.EnqueueWhenAvailable(w.ref(obj), o.View)
		return nil
	case !supported:
		return nil
	}
	if id == "" {
		w.setHorizon(obj, o)
	} else {
		w.setProofHorizon(obj, o, record)
	}
	if err := w.kind.Look(ctx, obj, obs, id); cloud.Is(err, cloud.Displaced) {
		o.Displaced = displacedOutcome(obj, err)
		return nil
	} else if err != nil {
		return w.lookFailed(obj, o, err)
	}
	if deleted(obj) && !o.ListedAt.IsZero() {
		w.Tracker.Listed(obj.GetUID(), o.ListedAt)
	}
	if o.Resource != nil && w.reused(obj, obs, *o.Resource) {
		o.MarkGone()
	}
	return w.askIfUnknown(ctx, obj, obs, id, record)
}

// lookUnclaimed looks for the resource of an object without a claim: somebody may have removed the claim
// while no process saw it. Only owner labels prove then which object owns a resource. On a cloud without
// labels, the status holds the claim.
func (w *observer[T, R, S]) lookUnclaimed(ctx context.Context, obj T, obs S) error {
	if w.OnDemand || !obs.External().Capabilities().Has(cloud.Labels) {
		return nil
	}
	return w.kind.Look(ctx, obj, obs, "")
}

// askIfUnknown asks the cloud for the resource if what was looked up does not say enough.
func (w *observer[T, R, S]) askIfUnknown(ctx context.Context, obj T, obs S, id string, record Record) error {
	o := obs.External()
	created, known := w.Tracker.CreatedID(obj.GetUID())
	switch {
	case id == "" && w.removed(obj) && o.Proved():
		return w.askUnrecorded(ctx, obj, obs, w.kind.Identify(o.Candidates[0]).ID)
	case id == "" && known && len(o.Candidates) == 0 && (w.OnDemand || o.Looked):
		return w.askUnrecorded(ctx, obj, obs, created)
	case id == "" || o.Working || o.Gone:
		w.Looks.Forget(obj.GetUID())
		return nil
	case o.Resource != nil && !w.askAgain(obj, o, id):
		w.Looks.Forget(obj.GetUID())
		return w.followDeletion(ctx, obj, obs, id)
	}
	return w.ask(ctx, obj, obs, id, record)
}

// operation returns the operation that is not known to have ended. What this process
// began is newer than what the status records.
func (w *observer[T, R, S]) operation(obj T, record Record) Operation {
	recorded := record.Operation
	recorded.Recorded = recorded.ID != ""
	ended := w.Tracker.HasEnded(obj.GetUID(), recorded.ID)
	began, ok := w.Tracker.Operation(obj.GetUID())
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
func (w *observer[T, R, S]) askUnrecorded(ctx context.Context, obj T, obs S, id string) error {
	o := obs.External()
	if !o.Available() {
		o.Looked = false // what the listing lacks is not proved to be gone
		return nil
	}
	others := o.Candidates[min(1, len(o.Candidates)):]
	r, err := w.kind.Get(ctx, obs, id)
	switch {
	case cloud.Is(err, cloud.Displaced):
		o.Displaced = displacedOutcome(obj, err)
	case cloud.Is(err, cloud.NotFound), err == nil && w.reused(obj, obs, r), notFound(err) && w.unlisted(o, id):
		o.Candidates = others
		if len(others) == 0 && !w.OnDemand && !w.Tracker.AllRefused(obj.GetUID()) {
			o.Missing, o.MissingProved = id, o.SettleTimeLeft == 0 && (cloud.Is(err, cloud.NotFound) || o.ShowsAbsence())
		}
	case notFound(err): // a listing decides
	case err != nil:
		return w.lookFailed(obj, o, err)
	case w.kind.Owns(obj, obs, r):
		o.Candidates, o.Proof = append([]R{r}, others...), OwnerProof
	case len(o.Candidates) > 0 || !w.OnDemand && !w.removed(obj): // else the search showed that it is another one
		o.Candidates, o.Proof = []R{r}, NoProof
	}
	w.Looks.Forget(obj.GetUID())
	return nil
}

// unlisted reports whether no listing shows a resource that was found without a recorded id. What
// is looked up on demand may be the answer to the create until the settle time has passed.
func (w *observer[T, R, S]) unlisted(o *Observation[R], id string) bool {
	if w.OnDemand {
		return o.SettleTimeLeft > 0
	}
	return o.Looked && !o.View.Snapshot.Has(id)
}

// askAgain reports whether the cloud is asked for a resource that is known: its deletion was
// answered, it is not known as being deleted, and no listing shows it since. It may be gone,
// and another one may get its id before the next deletion.
func (w *observer[T, R, S]) askAgain(obj T, o *Observation[R], id string) bool {
	switch {
	case !w.removed(obj), w.kind.Identify(*o.Resource).State == cloud.StateDeleting:
		return false
	case w.OnDemand:
		return o.ListedAt.IsZero()
	}
	return !o.Looked || !o.View.Snapshot.Has(id)
}

// ask asks the cloud for a resource that no listing shows, or whose deletion was answered.
func (w *observer[T, R, S]) ask(ctx context.Context, obj T, obs S, id string, record Record) error {
	o := obs.External()
	if !o.Available() || (o.View.Braked && record.ID != "") {
		o.Inventory.EnqueueWhenAvailable(w.ref(obj), o.View)
		return nil
	}
	r, err := w.kind.Get(ctx, obs, id)
	displaced := cloud.Is(err, cloud.Displaced)
	switch {
	case displaced && record.ID != "":
		o.Displaced = displacedOutcome(obj, err)
	case notFound(err), displaced: // an import must not show where it is
		o.Absent = true
		if o.Gone = w.absenceProved(obj, o, err); !o.Gone && !w.OnDemand {
			o.Inventory.EnqueueAfterListing(w.ref(obj), Latest(o.Horizon, o.Now))
		}
	case err != nil:
		return w.lookFailed(obj, o, err)
	default:
		w.read(obj, obs, r)
		if !w.OnDemand && !w.removed(obj) && o.Resource != nil && w.kind.Identify(r).State != cloud.StateDeleting && o.isUnlisted(record) {
			o.Inventory.RecordUnlisted(id)
		}
	}
	w.Looks.Forget(obj.GetUID())
	return nil
}

// followDeletion asks the cloud for a resource that is known as being deleted, and has a
// listing decide if the cloud does not find it. A cloud may report that a server is gone
// before its reads show that, and does not report it again. The deletion of a deleted
// object is followed once it takes long: its event or operation mostly shows the end.
func (w *observer[T, R, S]) followDeletion(ctx context.Context, obj T, obs S, id string) error {
	o := obs.External()
	switch {
	case w.OnDemand, !o.Available(), o.View.Braked, w.kind.Identify(*o.Resource).State != cloud.StateDeleting:
		return nil
	case deleted(obj) && o.Now.Sub(w.Tracker.DeletedSince(obj.GetUID(), o.Now)) < Safety:
		return nil
	}
	r, err := w.kind.Get(ctx, obs, id)
	switch {
	case notFound(err):
		o.Inventory.EnqueueAfterListing(w.ref(obj), o.Now)
	case err != nil:
		return w.lookFailed(obj, o, err)
	case w.kind.Identify(r).State != cloud.StateDeleting:
		w.read(obj, obs, r)
	}
	return nil
}

// lookFailed returns the outcome of a failed look. One made on demand says
// little of the cloud as a whole, so it requests no poll, and the status of an
// object that is Ready reports it only after some failures in a row.
func (w *observer[T, R, S]) lookFailed(obj T, o *Observation[R], err error) error {
	if !w.OnDemand {
		return w.Failed(obj, o, err)
	}
	outcome := w.outcomeOf(obj, o, w.Looks, err)
	wait, _ := errors.AsType[*reconciler.WaitError](outcome)
	record := w.kind.Record(obj)
	wasReady := !deleted(obj) && record.ID != "" && record.ObservedGeneration == obj.GetGeneration() &&
		meta.IsStatusConditionTrue(obj.GetConditions(), pcapi.ReadyCondition)
	if wait != nil && wasReady && w.Looks.NumRequeues(obj.GetUID()) <= tolerated {
		wait.Quiet = true
	}
	return outcome
}
