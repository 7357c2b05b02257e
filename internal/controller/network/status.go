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
func (k *kind) Report(net *v1alpha1.Network, seen *scope, verdict error) reconciler.Summary {
	return report(net, seen, verdict)
}

func report(net *v1alpha1.Network, seen *scope, verdict error) reconciler.Summary {
	if seen.network != nil && net.Status.NetworkID == "" {
		net.Status.NetworkID, net.Status.Cloud = seen.network.ID, seen.cloud
	}
	if seen.counted {
		net.Status.AttachedVMs = int32(len(seen.attached)) //nolint:gosec // fewer than etcd holds
	}
	reportCreated(net, seen, verdict)
	reportDeleting(net, verdict)
	return summary(net, seen)
}

func reportCreated(net *v1alpha1.Network, seen *scope, verdict error) {
	last := meta.FindStatusCondition(net.Status.Conditions, v1alpha1.CreatedCondition)
	c := metav1.Condition{Type: v1alpha1.CreatedCondition, Status: metav1.ConditionFalse}
	switch id := net.Status.NetworkID; {
	case seen.gone && id != "" && net.DeletionTimestamp.IsZero():
		c.Reason, c.Message = v1alpha1.LostReason, verdictText(verdict)
	case seen.network != nil && seen.network.ID == id:
		c.Status, c.Reason = metav1.ConditionTrue, seen.how
		if last != nil && last.Status == metav1.ConditionTrue {
			c.Reason = last.Reason
		}
		c.Message = fmt.Sprintf("network %s on Cloud %q%s", id, net.Status.Cloud, caveat(seen))
	case id != "":
		return
	default:
		c.Reason, c.Message = createdReason(verdict), verdictText(verdict)+caveat(seen)
	}
	meta.SetStatusCondition(&net.Status.Conditions, c)
}

// createdReason says why there is no network yet, in the words of the Created condition.
func createdReason(verdict error) string {
	switch reason := reconciler.Reason(verdict); reason {
	case v1alpha1.OutcomeUnknownReason, v1alpha1.RejectedReason, v1alpha1.QuotaExceededReason:
		return reason
	case v1alpha1.UnsupportedReason:
		return v1alpha1.RejectedReason
	default:
		return v1alpha1.PendingReason
	}
}

// caveat states what the cloud cannot guarantee about creates.
func caveat(seen *scope) string {
	if seen.denied != nil || seen.caps() == nil || unsupported(seen) != nil || seen.safe() {
		return ""
	}
	return "; this cloud has neither idempotency keys nor unique names: should the answer to a create be lost, two networks may exist for a while, and the younger is removed"
}

func reportDeleting(net *v1alpha1.Network, verdict error) {
	if net.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&net.Status.Conditions, v1alpha1.DeletingCondition)
		return
	}
	c := metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Message: verdictText(verdict)}
	_, stalled := errors.AsType[*reconciler.StalledError](verdict)
	switch reason := reconciler.Reason(verdict); {
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
func summary(net *v1alpha1.Network, seen *scope) reconciler.Summary {
	switch id := net.Status.NetworkID; {
	case !net.DeletionTimestamp.IsZero() && id != "":
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("network %s is gone from Cloud %q", id, seen.cloud)}
	case !net.DeletionTimestamp.IsZero():
		return reconciler.Summary{Reason: "Deleted", Message: fmt.Sprintf("nothing of it is on Cloud %q", seen.cloud)}
	default:
		return reconciler.Summary{
			Reason: v1alpha1.InSyncReason, Message: fmt.Sprintf("network %s is as the spec says", id), Again: seen.view.Settings.PollInterval,
		}
	}
}

func verdictText(verdict error) string {
	if verdict == nil {
		return ""
	}
	return verdict.Error()
}
