// Package approval decides whether the changes that are planned for an object may be made,
// where its spec requires an approval. All but Store is pure.
//
//	approval.go  plans, their approval, and what the status shows of them
//	changes.go   comparison of changes
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Object is an object whose spec can require an approval.
type Object interface {
	reconciler.Object
	// Approval returns the policy of the spec, and the plan in the status; nil for none.
	Approval() (pcapi.ApprovalPolicy, *pcapi.PlanStatus)
	// SetPlan replaces the plan in the status.
	SetPlan(plan *pcapi.PlanStatus)
}

const (
	// maxApprover bounds the name of who approved a plan, in bytes.
	maxApprover = 320
	// maxNote bounds the note of an event, in bytes: the API server refuses a longer one.
	maxNote = 1024
)

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
	// Now is when the plan is made.
	Now time.Time
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
		hash, by := approvalOf(obj)
		if hash != recorded.Hash {
			return Decision{Wait: pending(recorded.DeepCopy())}
		}
		approved := recorded.DeepCopy()
		approved.Phase, approved.ApprovedBy, approved.ApprovedTime = pcapi.PlanApproved, by, new(reconciler.StatusTime(planned.Now))
		return Decision{Store: approved}
	}
	plan := &pcapi.PlanStatus{Number: recorded.Number + 1, Phase: pcapi.PlanPending, Generation: generation, Cloud: planned.Cloud, Changes: changes}
	plan.Hash = hash(obj.GetUID(), plan)
	return Decision{Wait: pending(plan)}
}

// approvalOf returns the hash of the plan that the annotation of an object approves, and who approves it; empty if
// that does not say.
func approvalOf(obj client.Object) (hash, by string) {
	hash, by, _ = strings.Cut(obj.GetAnnotations()[pcapi.ApprovedPlanAnnotation], " ")
	return hash, printable(by)
}

// printable returns a name of a user as the status can hold it.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(name, "?"))
	return reconciler.Cut(name, maxApprover)
}

// Annotation returns the value of the annotation that approves a plan.
func Annotation(plan *pcapi.PlanStatus, by string) string {
	if by == "" {
		return plan.Hash
	}
	return plan.Hash + " " + by
}

// Approved reports whether the annotation of an object approves its plan.
func Approved(obj Object) bool {
	_, plan := obj.Approval()
	hash, _ := approvalOf(obj)
	return plan != nil && hash == plan.Hash
}

// hash identifies a plan among those of all objects.
func hash(uid types.UID, plan *pcapi.PlanStatus) string {
	text, _ := json.Marshal(struct {
		UID  types.UID
		Plan *pcapi.PlanStatus
	}{uid, plan})
	return digest(string(text))
}

func pending(plan *pcapi.PlanStatus) error {
	return &pendingError{plan: plan, wait: reconciler.Wait(0, pcapi.ApprovalRequiredReason,
		"plan %[1]s waits for an approval: %[2]s; to approve it, set the annotation %[3]s to %[1]s", plan.Hash, Describe(plan.Changes), pcapi.ApprovedPlanAnnotation)}
}

// Approver returns who approved a plan, in words.
func Approver(plan *pcapi.PlanStatus) string {
	if plan.ApprovedBy == "" {
		return "a user whom the approval does not name"
	}
	return Quoted(plan.ApprovedBy)
}

// Store stores a plan of Decide. That somebody approved it is an event and a line in the log.
func Store(ctx context.Context, c client.Client, recorder events.EventRecorder, obj Object, plan *pcapi.PlanStatus) error {
	_, before := obj.Approval()
	approved := before == nil || before.Hash != plan.Hash || before.Phase != plan.Phase
	if err := reconciler.WriteStatus(ctx, c, obj, func() { obj.SetPlan(plan) }); err != nil || !approved {
		return err
	}
	note := fmt.Sprintf("%s approved plan %d: %s", Approver(plan), plan.Number, Describe(plan.Changes))
	recorder.Eventf(obj, nil, corev1.EventTypeNormal, pcapi.PlanApprovedReason, "Approve", "%s", reconciler.Cut(note, maxNote))
	log.FromContext(ctx).Info("plan was approved", "plan", plan.Number, "hash", plan.Hash, "approvedBy", plan.ApprovedBy)
	return nil
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
