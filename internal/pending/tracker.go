// Package pending tracks calls between two reconciles: creates that may still take
// effect, what they created that is not on record yet, and deletions and changes
// that the cloud answered.
package pending

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Tracker holds one record for each object with an open call. It knows nothing of
// what an earlier process did. All methods may be called at any time from any
// goroutine.
type Tracker struct {
	mu      sync.Mutex
	records map[types.UID]record
}

// record is what is known of the creates of one object.
type record struct {
	// sent is when a create was last sent whose outcome is not known or not on record yet.
	sent time.Time
	// created is the id of what a create made. answered is its name if no read has confirmed the id.
	created, answered string
	// existing is the id of what an answer to a create named and that existed before.
	existing string
	// refused: every create was sent by this process and clearly refused.
	refused bool
	// claimed is when this process first observed the object's claim, or its last renewal by another
	// process. renewed is the annotation claim-renewed-at of the last renewal that is known.
	claimed time.Time
	renewed string
	// claim is the claim that the object has, as far as this process knows: it wrote or
	// observed the claim, and has not tried to remove it.
	claim Claim
	// held: this process was the last to write the claim, and has not tried to remove it.
	held bool
	// deleted is when the object's deletion was first observed by this process.
	deleted time.Time
	// removed is when the deletion of the resource was last answered, answer is the clearest of
	// these answers, and deleting is whether the cloud said that it is gone, or a read showed it
	// being deleted. listed: a listing has shown it that proves that listings do not lag behind it.
	removed          time.Time
	answer           Answer
	deleting, listed bool
	// dying is the id of the resource whose deletion was sent last, and made is when the cloud created
	// the first one with that id, by its own clock; zero if it does not say so.
	dying string
	made  time.Time
	// kept is when a deletion of the resource failed that the cloud had accepted.
	kept time.Time
	// refusal is why the cloud refused a change of the resource, for good.
	refusal Refusal
	// shutdown is when the guest was asked to shut down by the last request that was accepted.
	shutdown time.Time
	// operation is what the cloud works on; empty for nothing.
	operation Operation
	// ended is the id of the operation that the status showed when it ended; empty for none.
	ended string
	// change is a digest of the last change of the resource that was sent, and changed is when it
	// was answered.
	change  uint64
	changed time.Time
}

// Claim is what the stored claim of an object says.
type Claim struct{ Name, Cloud string }

// OperationKind is what an operation does.
type OperationKind string

// The kinds of operations.
const (
	OperationCreate OperationKind = "Create"
	OperationUpdate OperationKind = "Update"
	OperationDelete OperationKind = "Delete"
)

// Refusal is why a change of a resource is not tried again.
type Refusal struct {
	// Generation is that of the spec that asked for the change.
	Generation int64
	Reason     string
}

// Operation is a change that the cloud accepted and works on.
type Operation struct {
	ID    string
	Kind  OperationKind
	Since time.Time
	// Only: no other create of the object may have taken effect.
	Only bool
	// Recorded: the status of the object shows the operation.
	Recorded bool
}

// NewTracker returns a Tracker without records.
func NewTracker() *Tracker { return &Tracker{records: map[types.UID]record{}} }

func (t *Tracker) update(uid types.UID, change func(*record)) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.records[uid]
	change(&r)
	t.records[uid] = r
	return r
}

func (t *Tracker) get(uid types.UID) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[uid]
}

// Unknown records that a create was sent and that its outcome is not known.
func (t *Tracker) Unknown(uid types.UID, at time.Time) {
	t.update(uid, func(r *record) { r.sent, r.refused = at, false })
}

// Refused records that no create of the object is open, neither the last one
// nor any before.
func (t *Tracker) Refused(uid types.UID) { t.update(uid, func(r *record) { r.refused = true }) }

// AllRefused reports what Refused recorded.
func (t *Tracker) AllRefused(uid types.UID) bool { return t.get(uid).refused }

// Created records what a create made. A listing may lag behind it until the id
// is on record.
func (t *Tracker) Created(uid types.UID, id string, at time.Time) {
	t.update(uid, func(r *record) { r.sent, r.created, r.answered, r.refused = at, id, "", false })
}

// CreatedUnconfirmed records what an answer says that a create made, by id and name, if no read confirms
// it. What was listed before may be another resource with that id.
func (t *Tracker) CreatedUnconfirmed(uid types.UID, id, name string, at time.Time) {
	t.update(uid, func(r *record) { r.sent, r.created, r.answered, r.refused = at, id, name, false })
}

// Unconfirmed returns the name of what the object's create made, as long as no read has
// confirmed its id.
func (t *Tracker) Unconfirmed(uid types.UID) (name string, ok bool) {
	name = t.get(uid).answered
	return name, name != ""
}

// CreatedID returns the id of what the object's create made, as far as this
// process knows.
func (t *Tracker) CreatedID(uid types.UID) (id string, ok bool) {
	id = t.get(uid).created
	return id, id != ""
}

// Existed records that an answer to a create named something that existed before.
func (t *Tracker) Existed(uid types.UID, id string) {
	t.update(uid, func(r *record) { r.existing = id })
}

// HasExisted reports whether this existed before the object's create.
func (t *Tracker) HasExisted(uid types.UID, id string) bool { return t.get(uid).existing == id }

// Recorded drops what is tracked of the creates of an object: its id is on record.
func (t *Tracker) Recorded(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.records[uid]
	if !ok {
		return
	}
	t.keep(uid, record{
		deleted: old.deleted, removed: old.removed, answer: old.answer, deleting: old.deleting, listed: old.listed, dying: old.dying, made: old.made, kept: old.kept, change: old.change, changed: old.changed,
		operation: old.operation, refusal: old.refusal, shutdown: old.shutdown,
	})
}

// keep replaces the record of an object, and drops one that holds nothing. The caller
// holds mu.
func (t *Tracker) keep(uid types.UID, r record) {
	if r == (record{}) {
		delete(t.records, uid)
		return
	}
	t.records[uid] = r
}

// Began records an operation of the object. It replaces the one before.
func (t *Tracker) Began(uid types.UID, operation Operation) {
	t.update(uid, func(r *record) { r.operation = operation })
}

// Ended drops the operation of the object. recorded is its id if the status shows it, empty if not.
func (t *Tracker) Ended(uid types.UID, recorded string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.records[uid]
	r.operation = Operation{}
	if recorded != "" {
		r.ended = recorded
	}
	t.keep(uid, r)
}

// HasEnded reports whether the operation that the status shows has ended. It forgets the one that the
// status does not show any more.
func (t *Tracker) HasEnded(uid types.UID, recorded string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.records[uid]
	if r.ended != recorded {
		r.ended = ""
		t.keep(uid, r)
	}
	return r.ended != ""
}

// Operation returns the operation of the object that this process began last and that
// has not ended.
func (t *Tracker) Operation(uid types.UID) (operation Operation, ok bool) {
	operation = t.get(uid).operation
	return operation, operation.ID != ""
}

// Refuse records that the change that a generation of the spec asks for is refused.
func (t *Tracker) Refuse(uid types.UID, refusal Refusal) {
	t.update(uid, func(r *record) { r.refusal = refusal })
}

// AcceptShutdown records that the request of this time to shut a guest down was accepted,
// or forgets that with the zero time.
func (t *Tracker) AcceptShutdown(uid types.UID, at time.Time) {
	t.update(uid, func(r *record) { r.shutdown = at })
}

// AcceptedShutdown returns the time of the last request that was accepted, zero if there
// was none.
func (t *Tracker) AcceptedShutdown(uid types.UID) time.Time { return t.get(uid).shutdown }

// RefusalOf returns why the change that this generation of the spec asks for is refused.
func (t *Tracker) RefusalOf(uid types.UID, generation int64) (reason string, ok bool) {
	r := t.get(uid).refusal
	if r.Generation != generation || r.Reason == "" {
		return "", false
	}
	return r.Reason, true
}

// Forget drops the record of an object that is gone.
func (t *Tracker) Forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.records, uid)
}

// Len returns the number of records.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// ClaimedSince returns when the object's claim, which was last renewed as given, was first
// observed by this process, which is now for the first call. Another manager may have
// stored or renewed the claim, and may send a create until then.
func (t *Tracker) ClaimedSince(uid types.UID, renewed string, now time.Time) time.Time {
	return t.update(uid, func(r *record) {
		switch {
		case r.claimed.IsZero():
			r.claimed, r.renewed = now, renewed
		case renewed != "" && r.renewed != renewed:
			r.claimed, r.renewed, r.refused = now, renewed, false
		}
	}).claimed
}

// Renewed records that this process has renewed the object's claim.
func (t *Tracker) Renewed(uid types.UID, renewed string) {
	t.update(uid, func(r *record) { r.renewed, r.held = renewed, true })
}

// SetClaim records the claim that the object has; the zero Claim if it is being removed.
func (t *Tracker) SetClaim(uid types.UID, claim Claim) {
	t.update(uid, func(r *record) { r.claim = claim })
}

// ClaimOf returns the claim that the object has as far as this process knows, the zero
// Claim if it knows of none.
func (t *Tracker) ClaimOf(uid types.UID) Claim { return t.get(uid).claim }

// Hold records whether this process was the last to write the object's claim, and has not tried to
// remove it since.
func (t *Tracker) Hold(uid types.UID, held bool) { t.update(uid, func(r *record) { r.held = held }) }

// Holds reports what Hold recorded.
func (t *Tracker) Holds(uid types.UID) bool { return t.get(uid).held }

// Changed records a change of the resource that was answered, by a digest of it. It returns when the same
// change was answered before, the zero time if the last one was another.
func (t *Tracker) Changed(uid types.UID, change uint64, at time.Time) (before time.Time) {
	t.update(uid, func(r *record) {
		if r.change == change {
			before = r.changed
		}
		r.change, r.changed = change, at
	})
	return before
}

// UnknownSince returns when a create was last sent whose outcome is not known, or
// claimed if none was sent since; the zero time if no create can still take effect.
// claimed is when the claim was first observed.
func (t *Tracker) UnknownSince(uid types.UID, claimed time.Time) time.Time {
	r := t.get(uid)
	switch {
	case r.refused:
		return time.Time{}
	case r.sent.After(claimed):
		return r.sent
	default:
		return claimed
	}
}
