package external

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

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
func (w *observer[T, R, S]) absenceProved(obj T, o *Observation[R], err error) bool {
	_, deleting := w.Tracker.RemovedAt(obj.GetUID())
	switch {
	case deleted(obj) && o.ShowsAbsence() && w.Tracker.ListingProves(obj.GetUID()):
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
func (w *observer[T, R, S]) read(obj T, obs S, r R) {
	switch {
	case w.reused(obj, obs, r):
		obs.External().MarkGone()
		return
	case deleted(obj) && w.kind.Owns(obj, obs, r):
		w.Tracker.Read(obj.GetUID(), w.kind.Identify(r).State == cloud.StateDeleting)
	}
	w.kind.Remember(obj, obs, r, false)
}

// reused reports whether the cloud has given the id of the resource to r, so that the
// resource is gone. A cloud may rename a resource while it deletes it. One that was created after the deletion of the
// object, and the settle time after the id was recorded, is another one, whatever this process knows of a
// deletion. Both are required, since the clock of the cloud may be ahead.
func (w *observer[T, R, S]) reused(obj T, obs S, r R) bool {
	identity, since := w.kind.Identify(r), w.kind.Record(obj).Since
	if !deleted(obj) || identity.Name == "" || identity.State == cloud.StateDeleting || w.kind.Owns(obj, obs, r) {
		return false // a server without a name may be the object's own, which the cloud is removing
	}
	later := !since.IsZero() && identity.CreatedAt.After(Latest(obs.External().View.Settings.ShownFrom(since), obj.GetDeletionTimestamp().Time))
	return later || w.Tracker.Reused(obj.GetUID(), identity.CreatedAt)
}

// removed reports whether a deletion of the resource was sent that may have taken effect.
func (w *observer[T, R, S]) removed(obj T) bool {
	at, _ := w.Tracker.RemovedAt(obj.GetUID())
	return deleted(obj) && !at.IsZero()
}

// setProofHorizon sets from when on the absence of a recorded or imported resource
// counts: the settle time after its create was answered, after the object that imports
// it was created, or after its deletion failed, and, for a deleted object, the first
// observation of that and the answer to the deletion of the resource.
func (w *observer[T, R, S]) setProofHorizon(obj T, o *Observation[R], record Record) {
	since := record.Since
	if record.ID == "" {
		since = obj.GetCreationTimestamp().Time // somebody may have created it a moment before
	}
	created, kept := meta.FindStatusCondition(obj.GetConditions(), pcapi.CreatedCondition), w.Tracker.KeptAt(obj.GetUID())
	since = Latest(since, kept)
	if lost := created != nil && created.Reason == pcapi.LostReason && kept.IsZero(); !since.IsZero() && !lost {
		end := o.View.Settings.ShownFrom(since)
		if o.SettleTimeLeft = max(0, end.Sub(o.Now)); o.SettleTimeLeft == 0 {
			o.Horizon = end
		}
	}
	if deleted(obj) {
		removed, _ := w.Tracker.RemovedAt(obj.GetUID())
		o.Horizon = Latest(o.Horizon, Latest(removed, w.Tracker.DeletedSince(obj.GetUID(), o.Now)))
	}
}

// setHorizon sets from when on a listing shows what the object's creates made.
func (w *observer[T, R, S]) setHorizon(obj T, o *Observation[R]) {
	o.ClaimedAt = w.Tracker.ClaimedSince(obj.GetUID(), obj.GetAnnotations()[pcapi.ClaimRenewedAtAnnotation], o.Now)
	since := w.Tracker.UnknownSince(obj.GetUID(), o.ClaimedAt)
	end := since.Add(o.View.Settings.SettleTime)
	o.SettleTimeLeft = max(0, end.Sub(o.Now))
	o.Horizon = since
	if o.SettleTimeLeft == 0 {
		o.Horizon = end
	}
	if deleted(obj) {
		// A listing begun later shows what another manager created before it knew of the deletion.
		removed, _ := w.Tracker.RemovedAt(obj.GetUID())
		o.Horizon = Latest(o.Horizon, Latest(removed, w.Tracker.DeletedSince(obj.GetUID(), o.Now)))
	}
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
