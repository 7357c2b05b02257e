package network

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the Network's own status and conditions from what the pass saw.
func (k *kind) Report(net *v1alpha1.Network, obs *scope, outcome error) reconciler.Summary {
	return report(net, obs, outcome)
}

func report(net *v1alpha1.Network, obs *scope, outcome error) reconciler.Summary {
	if obs.network != nil && net.Status.NetworkID == "" {
		net.Status.NetworkID, net.Status.Cloud = obs.network.ID, obs.cloud
	}
	if obs.counted {
		net.Status.AttachedVMs = int32(len(obs.attached)) //nolint:gosec // fewer than etcd holds
	}
	reportCreated(net, obs, outcome)
	reportDeleting(net, outcome)
	return summary(net, obs)
}

func reportCreated(net *v1alpha1.Network, obs *scope, outcome error) {
	last := meta.FindStatusCondition(net.Status.Conditions, v1alpha1.CreatedCondition)
	c := metav1.Condition{Type: v1alpha1.CreatedCondition, Status: metav1.ConditionFalse}
	switch id := net.Status.NetworkID; {
	case obs.gone && id != "" && net.DeletionTimestamp.IsZero():
		c.Reason, c.Message = v1alpha1.LostReason, outcomeText(outcome)
	case obs.network != nil && obs.network.ID == id:
		c.Status, c.Reason = metav1.ConditionTrue, obs.how
		if last != nil && last.Status == metav1.ConditionTrue {
			c.Reason = last.Reason
		}
		c.Message = fmt.Sprintf("network %s on Cloud %q%s", id, net.Status.Cloud, caveat(obs))
	case id != "":
		return
	default:
		c.Reason, c.Message = createdReason(outcome), outcomeText(outcome)+caveat(obs)
	}
	meta.SetStatusCondition(&net.Status.Conditions, c)
}

// createdReason says why there is no network yet, in the words of the Created condition.
func createdReason(outcome error) string {
	switch reason := reconciler.Reason(outcome); reason {
	case v1alpha1.OutcomeUnknownReason, v1alpha1.RejectedReason, v1alpha1.QuotaExceededReason:
		return reason
	case v1alpha1.UnsupportedReason:
		return v1alpha1.RejectedReason
	default:
		return v1alpha1.PendingReason
	}
}

// caveat states what the cloud cannot guarantee about creates.
func caveat(obs *scope) string {
	if obs.denied != nil || obs.caps() == nil || unsupported(obs) != nil || obs.safe() {
		return ""
	}
	return "; this cloud has neither idempotency keys nor unique names: should the answer to a create be lost, two networks may exist for a while, and the younger is removed"
}

func reportDeleting(net *v1alpha1.Network, outcome error) {
	if net.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&net.Status.Conditions, v1alpha1.DeletingCondition)
		return
	}
	c := metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Message: outcomeText(outcome)}
	_, stalled := errors.AsType[*reconciler.StalledError](outcome)
	switch reason := reconciler.Reason(outcome); {
	case reason == v1alpha1.CloudUnavailableReason:
		c.Reason = v1alpha1.WaitingForCloudReason
	case stalled, reason == v1alpha1.BrakedReason, reason == v1alpha1.BlockedReason:
		c.Reason = v1alpha1.BlockedReason
	default:
		c.Reason = v1alpha1.RequestedReason
	}
	meta.SetStatusCondition(&net.Status.Conditions, c)
}

// summary is what a Network in sync says, and the last word on one that is gone.
func summary(net *v1alpha1.Network, obs *scope) reconciler.Summary {
	switch id := net.Status.NetworkID; {
	case !net.DeletionTimestamp.IsZero() && id != "":
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("network %s is gone from Cloud %q", id, obs.cloud)}
	case !net.DeletionTimestamp.IsZero():
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("nothing of it is on Cloud %q", obs.cloud)}
	default:
		return reconciler.Summary{
			Reason: v1alpha1.InSyncReason, Message: fmt.Sprintf("network %s is as the spec says", id), RequeueAfter: obs.view.Settings.PollInterval,
		}
	}
}

func outcomeText(outcome error) string {
	if outcome == nil {
		return ""
	}
	return outcome.Error()
}
