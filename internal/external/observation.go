package external

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// Proof says why a resource that was found without a recorded id belongs to the object.
type Proof int

const (
	// NoProof: only the name is the same, and names prove nothing on this cloud.
	NoProof Proof = iota
	// NameProof: names are unique, and this one was free when it was claimed.
	NameProof
	// OwnerProof: the resource carries this object's UID, or this process created it.
	OwnerProof
)

// Observation is what one reconcile knows of an object's external resource R.
// Observe fills it and steps add what they learn. Plan and Report read it and
// nothing else. A kind embeds it in its own observation.
type Observation[R any] struct {
	// Now is when the reconcile began.
	Now time.Time
	// Cloud is the name of the Cloud that the object uses or is to use.
	Cloud string
	// Spec is that of the Cloud; nil if the object may not use the Cloud. It is shared.
	Spec      *pcapi.CloudSpec
	Inventory *inventory.Inventory
	View      inventory.View

	// Denied is the outcome for an object that may not use its Cloud; nil if it may.
	Denied error
	// Closing is the outcome for an object without a resource whose Cloud is being deleted;
	// nil if it is not. What an earlier create made is looked for nevertheless.
	Closing error
	// CloudMissing: the Cloud object does not exist.
	CloudMissing bool
	// Moved: spec.cloudRef was edited while a create may have been sent to the
	// Cloud that it named before, which this observation is about.
	Moved bool

	// Claimed is the name of the resource that the claim is about; empty without
	// a claim. A claim means that a create may have been sent.
	Claimed string
	// ClaimedAt is when this process first observed the claim. A listing begun before
	// proves nothing about the name.
	ClaimedAt time.Time
	// ClaimProved: the status holds the claim, so that no user wrote it.
	ClaimProved bool
	// Copied: the object has the claim of another object, and none of its own. Nothing was sent for it.
	Copied bool
	// New: no reconcile has reported the object yet, and it is younger than keyLifetime.
	// Its claim may be one that it was created with.
	New bool
	// Fresh: this reconcile stored the claim, so nothing was sent before it. First: no
	// other manager can have sent a create since, either.
	Fresh, First bool

	// Resource is what the cloud holds for the object; nil if that is not known or gone.
	Resource *R
	// Absent: the cloud answered that the recorded or imported resource does not exist.
	// Gone: this is proved; see observer.absenceProved.
	Absent, Gone bool
	// Displaced is the outcome for a resource that exists in a place where the operator does not
	// change it; nil if it is not known to be there.
	Displaced error
	// KeptBy names another object whose deletion protection keeps the resource; empty for none.
	KeptBy string
	// Owned: the resource's owner labels name this object, or the cloud has no labels.
	Owned bool
	// Foreign: the resource's owner labels name another cluster.
	Foreign bool
	// Duplicates belong to this object beside Resource, oldest first.
	Duplicates []R
	// How is why the resource is this object's: a reason of the Created condition.
	How string

	// Operation is what the cloud works on for the object, as far as that is known to
	// have begun and not to have ended; empty for nothing. Working: the cloud was asked,
	// and has done so much of it, in percent.
	Operation Operation
	Working   bool
	Progress  int
	// Made: an operation that ended made Resource. Deleted: one deleted it.
	Made, Deleted bool
	// Fault is why an operation of the kind FaultOf failed, as this reconcile learned;
	// nil if none did. RetryIn is when to try again. FaultOnly: no other create of the
	// object may have taken effect.
	Fault     *cloud.Error
	FaultOf   OperationKind
	FaultOnly bool
	RetryIn   time.Duration

	// Horizon is the earliest start of a listing that shows what a create without
	// a recorded answer made or, once the id is on record, that proves that the
	// resource is gone by lacking it.
	Horizon time.Time
	// Looked: a listing begun at Horizon or later was searched. Incomplete: it is known to lack
	// resources that the cloud has.
	Looked, Incomplete bool
	// ListedAt is when the listing began that shows the recorded resource; zero if none does that
	// began after the answer to its create.
	ListedAt time.Time
	// SettleTimeLeft is how long the resource of a create may still exist without being
	// listed; 0 when that is over.
	SettleTimeLeft time.Duration
	// Candidates are what the search found, oldest first, and Proof is why they
	// belong to the object.
	Candidates []R
	Proof      Proof
	// Missing is the id of what a create of this process made, if the cloud does not find that any more;
	// empty otherwise, and for what is looked up on demand. MissingProved: it is gone.
	Missing       string
	MissingProved bool
}

// Observed is an observation that embeds Observation.
type Observed[R any] interface {
	External() *Observation[R]
}

// External returns o, for the kinds that embed it.
func (o *Observation[R]) External() *Observation[R] { return o }

// MarkGone records that the resource is proved to be gone.
func (o *Observation[R]) MarkGone() { o.Resource, o.Absent, o.Gone = nil, true, true }

// Capabilities returns what the cloud can do.
func (o *Observation[R]) Capabilities() cloud.Capabilities { return o.View.Capabilities }

// Available reports whether the cloud can be called.
func (o *Observation[R]) Available() bool { return o.View.Unavailable == "" }

// ShowsAbsence reports whether what the search did not find does not exist.
func (o *Observation[R]) ShowsAbsence() bool { return o.Looked && !o.Incomplete }

// isUnlisted reports whether the last listing lacks the resource on record, and was begun when it had to show it.
func (o *Observation[R]) isUnlisted(record Record) bool {
	listing := o.View.Snapshot
	return record.ID != "" && !record.Since.IsZero() && listing != nil &&
		!listing.Has(record.ID) && !listing.Begun.Before(o.View.Settings.ShownFrom(record.Since))
}

// NeedsStop reports whether an operation failed that changes the resource because the
// resource has to be stopped for it.
func (o *Observation[R]) NeedsStop() bool {
	return o.Fault != nil && o.FaultOf == OperationUpdate && o.Fault.Kind == cloud.NeedsStop
}

// RecordedName returns the name that the resource of an object without labels has: the one that the cloud gave it at the create,
// if that is on record with its id and the cloud can have made it of owned, the name that the operator generated.
func RecordedName(owned, id, given string) string {
	if id != "" && cloud.MadeFrom(given, owned) {
		return given
	}
	return owned
}

// IsNamed reports whether the resource with the recorded id has the recorded name. A name that proves no owner may be that of
// a later resource that has got the id: created is when the id was recorded, and createdAt when the cloud created the resource.
func (o *Observation[R]) IsNamed(owned, recorded, name string, created *metav1.Time, createdAt time.Time) bool {
	later := created != nil && createdAt.After(o.View.Settings.ShownFrom(created.Time))
	return cloud.AlikeNames(name, recorded) && (cloud.ProvesOwner(recorded, owned) || !later)
}

// Proved reports whether the search found a resource that certainly belongs to
// the object. With NameProof there is one at most.
func (o *Observation[R]) Proved() bool {
	n := len(o.Candidates)
	return (o.Proof == OwnerProof && n > 0) || (o.Proof == NameProof && n == 1)
}
