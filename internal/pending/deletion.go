package pending

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is what the cloud answered to the deletion of a resource.
type Answer int

const (
	// Unclear: nothing, or that it does not know the resource.
	Unclear Answer = iota
	// Accepted: it is going to delete the resource.
	Accepted
	// Gone: the resource is gone.
	Gone
)

// DeletedSince returns when the object's deletion was first observed by this
// process, which is now for the first call.
func (t *Tracker) DeletedSince(uid types.UID, now time.Time) time.Time {
	return t.update(uid, func(r *record) {
		if r.deleted.IsZero() {
			r.deleted = now
		}
	}).deleted
}

// Removed records an answer to the deletion of the resource, also a lost one.
func (t *Tracker) Removed(uid types.UID, at time.Time, answer Answer) {
	t.update(uid, func(r *record) {
		r.removed, r.answer, r.deleting = at, max(r.answer, answer), r.deleting || answer == Gone
	})
}

// Listed records that a listing which began at begun, after the create, shows the resource. It
// does not count if it began before a deletion failed, or before the answer to the deletion if a
// read has shown the resource being deleted since.
func (t *Tracker) Listed(uid types.UID, begun time.Time) {
	t.update(uid, func(r *record) {
		r.listed = r.listed || begun.After(r.kept) && (!r.deleting || !begun.Before(r.removed))
	})
}

// ListingProves reports whether a complete listing without the resource proves, with an answer that
// it does not exist, that the deletion took effect, also while reads may lag behind the create: the
// cloud said that it is gone, or accepted the deletion of what a listing has shown.
func (t *Tracker) ListingProves(uid types.UID) bool {
	r := t.get(uid)
	return r.answer == Gone || r.answer == Accepted && r.listed
}

// Deletes records that a deletion is sent of the resource with this id that the cloud created at
// this time, zero if it does not say when. The first known time of an id stays: a later one may
// be that of another resource.
func (t *Tracker) Deletes(uid types.UID, id string, made time.Time) {
	t.update(uid, func(r *record) {
		if r.dying != id || r.made.IsZero() {
			r.dying, r.made = id, made
		}
	})
}

// CreatedLater reports whether a resource with this id that the cloud created at made is known to be
// another one than that whose deletion was sent. A cloud may state the time in whole seconds.
func (t *Tracker) CreatedLater(uid types.UID, id string, made time.Time) bool {
	r := t.get(uid)
	return r.dying == id && !r.made.IsZero() && made.Truncate(time.Second).After(r.made)
}

// Reused reports whether a resource that has the id of the object's resource, and another name
// or owner, proves that the object's resource is gone: the cloud said so or showed it being
// deleted, or the other resource was created, at made, after the one whose deletion was sent.
func (t *Tracker) Reused(uid types.UID, made time.Time) bool {
	r := t.get(uid)
	return r.deleting || !r.removed.IsZero() && !r.made.IsZero() && made.After(r.made)
}

// Read records that a read showed the resource of a deleted object, and whether it showed it
// being deleted.
func (t *Tracker) Read(uid types.UID, deleting bool) {
	t.update(uid, func(r *record) {
		r.answer = min(r.answer, Accepted)
		r.listed = r.listed && (r.deleting || !deleting)
		r.deleting = r.deleting || deleting
	})
}

// RemovedAt returns when the deletion of the resource was last answered to this
// process, the zero time if it was not, and whether the cloud said that the resource
// is gone, or a read showed it being deleted.
func (t *Tracker) RemovedAt(uid types.UID) (at time.Time, deleting bool) {
	r := t.get(uid)
	return r.removed, r.deleting
}

// Kept records that a deletion of the resource failed that the cloud had accepted: that
// a read showed it being deleted says nothing any more, nor what was listed before.
func (t *Tracker) Kept(uid types.UID, at time.Time) {
	t.update(uid, func(r *record) { r.kept, r.answer, r.deleting, r.listed = at, Unclear, false, false })
}

// KeptAt returns when a deletion of the resource last failed, as far as this process
// knows; the zero time if none did.
func (t *Tracker) KeptAt(uid types.UID) time.Time { return t.get(uid).kept }
