// Package approval decides whether the changes that are planned for an object may be made,
// where its spec requires an approval. It is pure.
//
//	approval.go  plans, their approval, and what the status shows of them
//	changes.go   comparison of changes
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Object is an object whose spec can require an approval.
type Object interface {
	client.Object
	// Approval returns the policy of the spec, and the plan in the status; nil for none.
	Approval() (pcapi.ApprovalPolicy, *pcapi.PlanStatus)
	// SetPlan replaces the plan in the status.
	SetPlan(plan *pcapi.PlanStatus)
}

// Required reports whether changes of an object need an approval.
func Required(obj Object) bool {
	policy, _ := obj.Approval()
	return policy == pcapi.ApprovalRequired
}

// pendingError is the outcome of a reconcile whose plan is not approved.
type pendingError struct {
	plan *pcapi.PlanStatus
	wait error
}

func (e *pendingError) Error() string { return e.wait.Error() }
func (e *pendingError) Unwrap() error { return e.wait }

// Decide decides about the changes that are planned for an object which requires an approval,
// in the order in which they are made. They may be made if the status says that a plan of the
// present spec which includes them is approved. Approved is the plan that has to be stored
// before, nil if the status has it. The outcome waits for the approval; nil if there is one.
func Decide(obj Object, changes []pcapi.PlannedChange) (approved *pcapi.PlanStatus, outcome error) {
	_, recorded := obj.Approval()
	changes = bounded(changes)
	switch {
	case recorded == nil:
		recorded = &pcapi.PlanStatus{}
	case recorded.Phase == pcapi.PlanApproved && recorded.Generation == obj.GetGeneration() && covers(recorded.Changes, changes):
		return nil, nil
	case recorded.Phase != pcapi.PlanPending || !equality.Semantic.DeepEqual(recorded.Changes, changes):
	default:
		plan := recorded.DeepCopy()
		plan.Generation = obj.GetGeneration()
		if obj.GetAnnotations()[pcapi.ApprovedPlanAnnotation] != plan.Hash {
			return nil, pending(plan)
		}
		plan.Phase = pcapi.PlanApproved
		return plan, nil
	}
	plan := &pcapi.PlanStatus{Number: recorded.Number + 1, Phase: pcapi.PlanPending, Generation: obj.GetGeneration(), Changes: changes}
	plan.Hash = hash(obj.GetUID(), plan)
	return nil, pending(plan)
}

// hash identifies a plan among those of all objects.
func hash(uid types.UID, plan *pcapi.PlanStatus) string {
	text, _ := json.Marshal(struct {
		UID     types.UID
		Number  int64
		Changes []pcapi.PlannedChange
	}{uid, plan.Number, plan.Changes})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

func pending(plan *pcapi.PlanStatus) error {
	return &pendingError{plan: plan, wait: reconciler.Wait(0, pcapi.ApprovalRequiredReason,
		"plan %[1]s waits for an approval: %[2]s; to approve it, set the annotation %[3]s to %[1]s", plan.Hash, describe(plan.Changes), pcapi.ApprovedPlanAnnotation)}
}

// Report writes the plan into the status after a reconcile with this outcome.
func Report(obj Object, outcome error) {
	_, recorded := obj.Approval()
	waits, isPending := errors.AsType[*pendingError](outcome)
	switch {
	case isPending:
		obj.SetPlan(waits.plan)
	case recorded == nil, recorded.Phase != pcapi.PlanPending && recorded.Phase != pcapi.PlanApproved:
	case outcome != nil && Required(obj):
	case outcome == nil && recorded.Phase == pcapi.PlanApproved:
		recorded.Phase = pcapi.PlanApplied
	default:
		recorded.Phase = pcapi.PlanObsolete
	}
}
