package external

import (
	"cmp"
	"context"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// brief is how long an operation may take before the status shows it.
	brief = 2 * time.Second
	// slowest is the longest time between two looks at an operation.
	slowest = 30 * time.Second
	// progressStep is the step in which messages show the progress, in percent: each
	// change of a message is a write.
	progressStep = 10
)

// OperationKind is what an operation does.
type OperationKind = pending.OperationKind

// The kinds of operations.
const (
	OperationCreate = pending.OperationCreate
	OperationUpdate = pending.OperationUpdate
	OperationDelete = pending.OperationDelete
)

// Operation is a change that the cloud accepted and works on.
type Operation = pending.Operation

// Result is the answer of the cloud to a create.
type Result[R any] struct {
	// Resource is what was created. Its id may be empty if there is an operation.
	Resource R
	// Operation is the id of the operation by which the cloud continues; empty for none.
	Operation string
}

// Removal is the answer of the cloud to a deletion.
type Removal struct {
	// Gone reports whether the resource is gone rather than being deleted.
	Gone bool
	// Operation is the id of the operation that deletes it; empty for none.
	Operation string
}

// Begin records an operation that the cloud has just accepted, and returns the outcome
// of the reconcile.
func (l *Lifecycle[T, R, S]) Begin(obj T, obs S, kind OperationKind, id string) error {
	return l.executor.begin(obj, obs, kind, id, false)
}

// begin does what Begin does. only: no other create may have taken effect.
func (e *executor[T, R, S]) begin(obj T, obs S, kind OperationKind, id string, only bool) error {
	o := obs.External()
	o.Operation = Operation{ID: id, Kind: kind, Since: e.Clock()}
	o.Working, o.Progress = true, 0
	o.Now = o.Operation.Since
	o.Operation.Only = only
	e.Tracker.Began(obj.GetUID(), o.Operation)
	return e.working(o, e.kind.Record(obj))
}

// observeOperation asks the cloud for the operation of the object that is not known to
// have ended. What the resource is after one that took effect is read anew.
func (w *observer[T, R, S]) observeOperation(ctx context.Context, obj T, obs S, record Record) error {
	o := obs.External()
	if o.Operation.ID == "" || o.CloudMissing || !o.Available() || !o.Capabilities().Has(cloud.Operations) {
		return nil
	}
	state, err := o.View.Client.GetOperation(ctx, o.Operation.ID)
	switch {
	case cloud.Is(err, cloud.NotFound):
		w.forgotten(obj, o)
		return nil
	case err != nil:
		return w.Failed(obj, o, err)
	case !state.Done:
		o.Working, o.Progress = true, state.Progress/progressStep*progressStep
		return nil
	}
	ended := o.Operation
	if err := w.observeEffect(ctx, obj, obs, record, state); err != nil {
		return err
	}
	switch {
	case state.Err != nil:
		w.observeFault(obj, o, ended, *state.Err)
	case ended.Kind != OperationUpdate: // a change counts once the resource shows it
		w.Backoff.Forget(obj.GetUID())
	}
	w.ended(obj, o, ended)
	return nil
}

// ended drops an operation. The status may still show it, which may have been written by an earlier process.
func (w *observer[T, R, S]) ended(obj T, o *Observation[R], operation Operation) {
	recorded := ""
	if operation.Recorded {
		recorded = operation.ID
	}
	w.Tracker.Ended(obj.GetUID(), recorded)
	o.Operation = Operation{}
}

// forgotten falls back to what is done without operations: the outcome of a create
// is unknown from now on.
func (w *observer[T, R, S]) forgotten(obj T, o *Observation[R]) {
	if o.Operation.Kind == OperationCreate {
		w.Tracker.Unknown(obj.GetUID(), o.Now)
	}
	w.ended(obj, o, o.Operation)
}

// observeEffect reads the resource after an operation.
func (w *observer[T, R, S]) observeEffect(ctx context.Context, obj T, obs S, record Record, state cloud.Operation) error {
	o := obs.External()
	id := record.ID
	if o.Operation.Kind == OperationCreate && id == "" {
		id = state.ServerID
	}
	switch {
	case o.Operation.Kind == OperationDelete && state.Err == nil:
		o.Deleted, o.Gone = true, state.Gone
		w.Tracker.Removed(obj.GetUID(), o.Now, pending.Gone)
		return nil
	case id == "":
		if state.Err == nil { // done, and the cloud does not say what it made
			w.Tracker.Unknown(obj.GetUID(), o.Now)
		}
		return nil
	}
	r, err := w.resourceAfter(ctx, obs, id, state)
	created := record.ID == "" && o.Operation.Kind == OperationCreate
	switch {
	case notFound(err), cloud.Is(err, cloud.Displaced): // reads may lag behind: it is looked for
		if created {
			w.Tracker.CreatedUnconfirmed(obj.GetUID(), id, cmp.Or(o.Claimed, record.Name), o.Now)
		}
		return nil
	case err != nil:
		return w.Failed(obj, o, err)
	}
	if created {
		own, err := w.kind.Made(obj, obs, r)
		if err != nil {
			return err
		}
		if !own {
			w.Tracker.Unknown(obj.GetUID(), o.Now)
			return nil
		}
		w.Tracker.Created(obj.GetUID(), id, o.Now)
		if record.Import != "" { // the spec was edited since the create, and names another resource
			return nil
		}
		o.Made = true
		w.kind.Remember(obj, obs, r, true)
		return nil
	}
	w.read(obj, obs, r)
	return nil
}

// resourceAfter returns the resource after an operation: as the cloud has answered with the
// operation, or else as a read shows it.
func (w *observer[T, R, S]) resourceAfter(ctx context.Context, obs S, id string, state cloud.Operation) (R, error) {
	if r, ok := any(state.Server).(*R); ok && r != nil && w.kind.Identify(*r).ID == id {
		return *r, nil
	}
	return w.kind.Get(ctx, obs, id)
}

// observeFault records why an operation failed. That a create had no effect is the
// answer to that create alone. After a deletion that failed, reads that hid the resource
// meanwhile may show it again.
func (w *observer[T, R, S]) observeFault(obj T, o *Observation[R], ended Operation, fault cloud.Error) {
	fault.Op = fmt.Sprintf("%s the %s", verbs[ended.Kind], w.Noun)
	o.Fault, o.FaultOf, o.FaultOnly, o.RetryIn = &fault, ended.Kind, ended.Only, w.Backoff.When(obj.GetUID())
	switch {
	case ended.Kind == OperationCreate && ended.Only && !o.Made:
		w.Tracker.Refused(obj.GetUID())
	case ended.Kind == OperationDelete:
		w.Tracker.Kept(obj.GetUID(), o.Now)
	}
}

var verbs = map[OperationKind]string{OperationCreate: "create", OperationUpdate: "change", OperationDelete: "delete"}

// planOperation plans for an object with an operation that runs or has just failed;
// decided is false if the rest of the plan does not depend on it.
func (p *planner[T, R, S]) planOperation(obj T, obs S, record Record) (plan reconciler.Plan[T, S], decided bool) {
	o := obs.External()
	switch {
	case deleted(obj) && o.Working && o.Operation.Kind == OperationUpdate:
		return plan, false // the deletion goes on: the cloud refuses it if it cannot do both
	case o.Working && o.Claimed == "" && !deleted(obj):
		return p.Do(p.Steps.Claim).Then(p.working(o, record)), true
	case o.Working:
		return p.End(p.working(o, record)), true
	case o.Fault == nil, deleted(obj) && o.FaultOf != OperationDelete:
		return plan, false
	case o.Made: // an operation that failed left a resource behind
		return plan, false
	case o.NeedsStop(): // the step of the change decides
		return plan, false
	case o.FaultOf == OperationCreate && o.FaultOnly && len(o.Candidates) == 0 && record.ID == "" && o.Claimed != "" && !p.kind.KeepsClaim(obs, o.Fault):
		return p.Do(p.Steps.Unclaim).Then(faulted(o)), true
	}
	return p.End(faulted(o)), true
}

// faulted is the outcome once an operation failed. Another is sent after a while.
func faulted[R any](o *Observation[R]) error {
	wait, reason, cause := o.RetryIn, pcapi.OperationFailedReason, cloud.Public(o.Fault)
	if o.FaultOf == OperationDelete || o.Fault.Kind == cloud.Forbidden {
		cause = again(cause, wait)
	}
	switch o.Fault.Kind {
	case cloud.Forbidden:
		return reconciler.Stalled(pcapi.RejectedReason, wait, cause)
	case cloud.Quota, cloud.NoHost:
		reason = noRoom(o.Fault)
		wait = max(wait, RecheckSoon)
	case cloud.Taken:
		return reconciler.Stalled(pcapi.TakenReason, max(wait, RecheckSoon), cause)
	case cloud.Rejected, cloud.Unsupported, cloud.Prohibited, cloud.KeyReused:
		return reconciler.Stalled(pcapi.RejectedReason, max(wait, RecheckSoon), cause)
	default:
	}
	return reconciler.Wait(wait, reason, "%v", cause)
}

// working waits for the operation. A status that would be written for a moment only
// is not written, unless it records the resource.
func (out *Outcomes[R]) working(o *Observation[R], record Record) error {
	age := o.Now.Sub(o.Operation.Since)
	wait := &reconciler.WaitError{After: min(max(brief, age/5), slowest), Reason: pcapi.ProgressingReason, Quiet: age < brief && (record.ID != "" || o.Resource == nil)}
	subject := out.Noun
	if record.ID != "" {
		subject += " " + record.ID
	}
	switch o.Operation.Kind {
	case OperationCreate:
		wait.Reason, wait.Message = pcapi.CreatingReason, "the cloud is creating "+subject
	case OperationDelete:
		wait.Reason, wait.Message = pcapi.RequestedReason, "the cloud is deleting "+subject
	default:
		wait.Message = "the cloud is changing " + subject
	}
	if o.Progress > 0 {
		wait.Message += fmt.Sprintf(": %d %% done", o.Progress)
	}
	return wait
}

// LongOperation returns the operation that the status shows: one that takes long or,
// as long as the cloud cannot be asked, the one that it shows already.
func (o *Observation[R]) LongOperation() (Operation, bool) {
	if o.Operation.ID == "" || (!o.Operation.Recorded && o.Now.Sub(o.Operation.Since) < brief) {
		return Operation{}, false
	}
	return o.Operation, true
}
