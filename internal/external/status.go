package external

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the status from the observation and the outcome alone.
func (l *Lifecycle[T, R, S]) Report(obj T, obs S, outcome error) reconciler.Summary {
	o, summary := obs.External(), l.kind.Report(obj, obs, outcome)
	conditions, record := obj.GetConditions(), l.kind.Record(obj)
	l.reportCreated(&conditions, o, record, deleted(obj), outcome)
	reportDeleting(&conditions, deleted(obj), outcome)
	obj.SetConditions(conditions)
	if o, ok := any(obj).(approval.Object); ok {
		approval.Report(o, outcome)
	}
	switch {
	case !deleted(obj):
		return summary
	case o.Gone:
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("%s %s is gone from Cloud %q", l.Noun, record.ID, o.Cloud)}
	case record.ID != "":
		return reconciler.Summary{Reason: "Orphaned", Message: fmt.Sprintf("%s %s stays on Cloud %q and no longer belongs to an object", l.Noun, record.ID, o.Cloud)}
	default:
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("nothing of it is on Cloud %q", o.Cloud)}
	}
}

func (l *Lifecycle[T, R, S]) reportCreated(conditions *[]metav1.Condition, o *Observation[R], record Record, deleted bool, outcome error) {
	c := metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse}
	var known Identity
	if o.Resource != nil {
		known = l.kind.Identify(*o.Resource)
	}
	switch recorded := record.ID != "" && known.ID == record.ID; {
	case o.Gone && record.ID != "" && !deleted:
		c.Reason, c.Message = pcapi.LostReason, Text(outcome)
	case o.Working && o.Operation.Kind == OperationCreate && !deleted:
		c.Reason, c.Message = pcapi.CreatingReason, Text(outcome)
	case recorded && known.State == cloud.StateBuilding:
		c.Reason, c.Message = pcapi.CreatingReason, fmt.Sprintf("the cloud is building %s %s", l.Noun, known.ID)
	case recorded:
		c.Status, c.Reason = metav1.ConditionTrue, o.How
		if last := meta.FindStatusCondition(*conditions, pcapi.CreatedCondition); last != nil && last.Status == metav1.ConditionTrue {
			c.Reason = last.Reason
		}
		c.Message = fmt.Sprintf("%s %s on Cloud %q%s", l.Noun, known.ID, record.Cloud, l.caveat(o))
	case record.ID != "":
		return
	default:
		c.Reason, c.Message = createdReason(outcome), Text(outcome)+l.caveat(o)
		if o.Claimed != "" && c.Reason == pcapi.PendingReason && saysOutcome(*conditions, deleted) {
			return // that the cloud is away, or a deletion, does not answer what became of the create
		}
	}
	meta.SetStatusCondition(conditions, c)
}

// saysOutcome reports whether the conditions say what is known of a create that was sent.
func saysOutcome(conditions []metav1.Condition, deleted bool) bool {
	last := meta.FindStatusCondition(conditions, pcapi.CreatedCondition)
	open := last != nil && (last.Reason == pcapi.OutcomeUnknownReason || last.Reason == pcapi.AmbiguousReason)
	return open || deleted && CreateRefused(conditions)
}

// createdReason returns why there is no resource yet, as a reason of the Created condition.
func createdReason(outcome error) string {
	switch reason := reconciler.Reason(outcome); reason {
	case pcapi.OutcomeUnknownReason, pcapi.RejectedReason, pcapi.QuotaExceededReason, pcapi.UnschedulableReason, pcapi.AmbiguousReason, pcapi.CreatingReason, pcapi.OperationFailedReason:
		return reason
	case pcapi.UnsupportedReason:
		return pcapi.RejectedReason
	default:
		return pcapi.PendingReason
	}
}

// caveat states what the cloud does not guarantee about creates.
func (l *Lifecycle[T, R, S]) caveat(o *Observation[R]) string {
	caps := o.Capabilities()
	if o.Denied != nil || o.How == pcapi.ImportedReason || caps == nil || l.unsupported(o) != nil {
		return ""
	}
	if guarantee, exactlyOnce := caps.CreateGuarantee(l.Noun, l.Identified); !exactlyOnce {
		return "; " + guarantee
	}
	return ""
}

func reportDeleting(conditions *[]metav1.Condition, deleted bool, outcome error) {
	if !deleted {
		meta.RemoveStatusCondition(conditions, pcapi.DeletingCondition)
		return
	}
	c := metav1.Condition{Type: pcapi.DeletingCondition, Status: metav1.ConditionTrue, Message: Text(outcome)}
	switch reason := reconciler.Reason(outcome); {
	case reason == pcapi.CloudUnavailableReason:
		c.Reason = pcapi.WaitingForCloudReason
	case reconciler.IsStalled(outcome), reason == pcapi.BrakedReason, reason == pcapi.BlockedReason, reason == pcapi.ApprovalRequiredReason:
		c.Reason = pcapi.BlockedReason
	default:
		c.Reason = pcapi.RequestedReason
	}
	meta.SetStatusCondition(conditions, c)
}

// Text returns the message of an outcome, empty for none.
func Text(outcome error) string {
	if outcome == nil {
		return ""
	}
	return outcome.Error()
}
