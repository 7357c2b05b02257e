package external

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Record is what the lifecycle needs to know of an object.
type Record struct {
	// Ref is the Cloud that the spec names; nil for the default.
	Ref *pcapi.CloudReference
	// Name is the name that the resource has, or is to have, in the cloud.
	Name string
	// Renamed: the resource on record has another name, since the spec was edited after the create
	// or the cloud chose the name. Only the claim says which name was asked for.
	Renamed bool
	// Import is the id of an existing resource that the spec names, or empty. A kind
	// whose objects name it otherwise has Look find it, and Get answer NotFound.
	Import string
	// Shared: the resource is used as it is, also by others, and never changed or
	// deleted. A deleted object is released whether or not the cloud has it.
	Shared bool
	// Unclaimed: the object needs no claim, since its resource is not managed.
	Unclaimed bool
	// ID is what the status records of the resource; empty before it does.
	ID string
	// Since is when the id was recorded; zero before.
	Since time.Time
	// Cloud is the name of the Cloud that the status records, with the id or with the
	// claim. Claimed is the name that the status records with the claim; empty if
	// there is none, or if the kind does not implement RecordClaim.
	Cloud, Claimed string
	// Operation is the one that the status records; empty for none.
	Operation Operation
	// ObservedGeneration is the one of the status; 0 or less before the first report.
	ObservedGeneration int64
}

// id returns the id to look for: the recorded one, else the one to import.
func (r Record) id() string {
	if r.ID == "" {
		return r.Import
	}
	return r.ID
}

// Identity is what the lifecycle needs to know of a resource.
type Identity struct {
	ID, Name string
	// State is cloud.StateActive for resources that have no states.
	State cloud.State
	// Fault is why it is in cloud.StateError, or the cloud's word for cloud.StateUnknown, for users; empty
	// where the cloud does not say.
	Fault string
	// CreatedAt is when the cloud created it; zero where the cloud does not say.
	CreatedAt time.Time
}

// Kind is what differs between kinds of objects with an external resource. T is
// the Kubernetes kind, R the cloud's resource and S the kind's observation.
type Kind[T reconciler.Object, R any, S Observed[R]] interface {
	// Record describes an object, and Identify a resource.
	Record(obj T) Record
	Identify(r R) Identity

	// Look searches for the resource. With an id it sets Resource if the resource
	// is known, Duplicates and ListedAt. Without, it sets Candidates and Proof. It sets
	// Looked if it searched a listing begun at Horizon or later, and Incomplete if that lacks
	// resources that the cloud has.
	Look(ctx context.Context, obj T, obs S, id string) error
	// Owns reports whether r, which has the id of the object's resource, is that resource: it has
	// the owner labels or, where there are none, the name. The cloud may have given the id again.
	Owns(obj T, obs S, r R) bool
	// Get asks the cloud for a resource. It fails with cloud.NotFound only if the cloud
	// says so itself, and with cloud.NotFoundUnproven if the answer may not be the cloud's.
	Get(ctx context.Context, obs S, id string) (R, error)
	// Create asks for the resource. Uncertain errors may have created it.
	Create(ctx context.Context, obj T, obs S) (Result[R], error)
	// Delete asks for the deletion of r, which is obs.Resource or one of
	// obs.Duplicates. Errors that are no cloud errors end the reconcile as its outcome.
	Delete(ctx context.Context, obj T, obs S, r R) (Removal, error)
	// Remember stores what the cloud answered of a resource of the object, until a
	// listing begun later says more, and sets Resource. The answer to a create is kept
	// until a listing shows the resource, at most for the settle time.
	Remember(obj T, obs S, r R, created bool)

	// PlanCreate plans for an object without a resource for which a create may be sent.
	PlanCreate(obj T, obs S) reconciler.Plan[T, S]
	// PlanExisting plans for an object whose recorded resource exists.
	PlanExisting(obj T, obs S) reconciler.Plan[T, S]
	// Repeatable reports whether a second create is safe while the outcome of the first is unknown.
	Repeatable(obj T, obs S) bool
	// Report writes the kind's own status fields and conditions, and returns
	// what the object reports if it is in sync. Created and Deleting are set
	// by the lifecycle afterwards.
	Report(obj T, obs S, outcome error) reconciler.Summary

	Optional[T, R, S]
}

// Optional are the methods of Kind that Defaults implements.
type Optional[T reconciler.Object, R any, S Observed[R]] interface {
	// Relate observes what else the plan needs: other objects and prerequisites.
	Relate(ctx context.Context, obj T, obs S) error
	// RecordClaim writes the claim into the status of obj. Where names prove which
	// object owns a resource, the claim must be stored where users cannot write it.
	RecordClaim(obj T, name, cloudName string)
	// Made reports whether r, which the operation of a create made, is the object's: if not, the
	// cloud has given the id again. It returns an outcome if that is not known.
	Made(obj T, obs S, r R) (own bool, err error)
	// Kept returns an outcome if the cloud did not keep what says which object owns the
	// resource that a create made; nil if it did.
	Kept(obj T, obs S) error
	// Adopted returns the outcome once r was adopted; nil if r is as the spec says.
	Adopted(obj T, r R) error
	// Unclear returns an error that explains why a refused create leaves open
	// whether the resource exists; nil if the refusal is clear.
	Unclear(obj T, obs S, err error) error
	// Refused returns the outcome of a create that was clearly refused; nil for
	// the outcome that every kind has.
	Refused(ctx context.Context, obj T, obs S, err error) error
	// KeepsClaim reports whether the claim stays although a create was clearly refused; for
	// nil, whether it stays after every refusal.
	KeepsClaim(obs S, err error) bool
	// PlanDeletion decides deletions that the lifecycle does not: objections to
	// the deletion, and objects that are released without it.
	PlanDeletion(obj T, obs S) (plan reconciler.Plan[T, S], decided bool)
	// ConfirmNothing returns the steps, which change nothing, that fail if an earlier create made
	// a resource which no listing shows. They run before the claim is removed.
	ConfirmNothing(obj T, obs S) []reconciler.Step[T, S]
	// Leftovers returns the steps, which may be repeated, that delete what the resource
	// of a deleted object leaves in the cloud once it is gone.
	Leftovers(obj T, obs S) []reconciler.Step[T, S]
	// PlanImport plans for an object that names an existing resource which is not on record.
	PlanImport(obj T, obs S) reconciler.Plan[T, S]
	// ForgetResource drops what is stored of a resource that is proved gone.
	ForgetResource(obs S, id string)
	// ReportReleased sets what the status of a released object says that finalizers of others keep.
	ReportReleased(obj T)
	// Reported is called with each observation once its report is stored in the status.
	Reported(obj T, obs S)
	// ForgetReported drops what Reported keeps of an object that is gone, paused, or another
	// manager's.
	ForgetReported(uid types.UID)
}

// Defaults implements the optional methods of a Kind, which embeds it.
type Defaults[T reconciler.Object, R any, S Observed[R]] struct{}

var _ Optional[*pcapi.Network, cloud.Network, *Observation[cloud.Network]] = Defaults[*pcapi.Network, cloud.Network, *Observation[cloud.Network]]{}

// Relate observes nothing.
func (Defaults[T, R, S]) Relate(context.Context, T, S) error { return nil }

// RecordClaim writes nothing: something else than its name proves what owns a resource.
func (Defaults[T, R, S]) RecordClaim(T, string, string) {}

// Made finds every resource that of the object.
func (Defaults[T, R, S]) Made(T, S, R) (bool, error) { return true, nil }

// Kept finds that the cloud keeps all.
func (Defaults[T, R, S]) Kept(T, S) error { return nil }

// Adopted finds every resource as the spec says.
func (Defaults[T, R, S]) Adopted(T, R) error { return nil }

// Unclear takes an idempotency key that was used, or the name's being taken, as
// the effect of an earlier create of the object: the name must be the object's alone.
func (Defaults[T, R, S]) Unclear(_ T, _ S, err error) error {
	if cloud.Is(err, cloud.Taken, cloud.KeyReused) {
		return err
	}
	return nil
}

// Refused leaves the outcome to the lifecycle.
func (Defaults[T, R, S]) Refused(context.Context, T, S, error) error { return nil }

// KeepsClaim keeps it for creates that are soon sent again unchanged.
func (Defaults[T, R, S]) KeepsClaim(_ S, err error) bool {
	return cloud.Is(err, cloud.Quota, cloud.NoHost, cloud.Throttled)
}

// PlanDeletion decides nothing.
func (Defaults[T, R, S]) PlanDeletion(T, S) (reconciler.Plan[T, S], bool) {
	return reconciler.Plan[T, S]{}, false
}

// ConfirmNothing relies on the listing.
func (Defaults[T, R, S]) ConfirmNothing(T, S) []reconciler.Step[T, S] { return nil }

// Leftovers deletes nothing.
func (Defaults[T, R, S]) Leftovers(T, S) []reconciler.Step[T, S] { return nil }

// PlanImport is not called for kinds whose Record has no Import.
func (Defaults[T, R, S]) PlanImport(T, S) reconciler.Plan[T, S] {
	return reconciler.End[T, S](errors.New("this kind cannot be imported"))
}

// ForgetResource drops nothing.
func (Defaults[T, R, S]) ForgetResource(S, string) {}

// Reported keeps nothing.
func (Defaults[T, R, S]) Reported(T, S) {}

// ReportReleased sets nothing.
func (Defaults[T, R, S]) ReportReleased(T) {}

// ForgetReported drops nothing.
func (Defaults[T, R, S]) ForgetReported(types.UID) {}
