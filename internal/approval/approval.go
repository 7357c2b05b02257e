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

// Planned is what is planned for an object.
type Planned struct {
	// Cloud is the name of the Cloud on which the changes are made.
	Cloud string
	// Changes are in the order in which they are made.
	Changes []pcapi.PlannedChange
	// Once: a change that is made and planned again, while others of the plan are left, needs
	// another approval.
	Once bool
}

// Decision is whether planned changes may be made.
type Decision struct {
	// Store is the plan that has to be stored before; nil if the status has it.
	Store *pcapi.PlanStatus
	// Wait is the outcome while they are not approved; nil if they are.
	Wait error
}

// Decide decides about the changes that are planned for an object which requires an approval.
// They may be made if the status says that a plan of the present spec which includes them is
// approved.
func Decide(obj Object, planned Planned) Decision {
	_, recorded := obj.Approval()
	changes, generation := bounded(planned.Changes), obj.GetGeneration()
	if recorded == nil {
		recorded = &pcapi.PlanStatus{}
	}
	present := recorded.Generation == generation && recorded.Cloud == planned.Cloud
	same := equality.Semantic.DeepEqual(recorded.Changes, changes)
	switch {
	case present && recorded.Phase == pcapi.PlanApproved && covers(recorded.Changes, changes):
		if !planned.Once || same {
			return Decision{}
		}
		left := recorded.DeepCopy()
		left.Changes = changes
		return Decision{Store: left}
	case present && recorded.Phase == pcapi.PlanPending && same:
		if obj.GetAnnotations()[pcapi.ApprovedPlanAnnotation] != recorded.Hash {
			return Decision{Wait: pending(recorded.DeepCopy())}
		}
		approved := recorded.DeepCopy()
		approved.Phase = pcapi.PlanApproved
		return Decision{Store: approved}
	}
	plan := &pcapi.PlanStatus{Number: recorded.Number + 1, Phase: pcapi.PlanPending, Generation: generation, Cloud: planned.Cloud, Changes: changes}
	plan.Hash = hash(obj.GetUID(), plan)
	return Decision{Wait: pending(plan)}
}

// hash identifies a plan among those of all objects.
func hash(uid types.UID, plan *pcapi.PlanStatus) string {
	text, _ := json.Marshal(struct {
		UID  types.UID
		Plan *pcapi.PlanStatus
	}{uid, plan})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
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
