package vmgroup

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the group's own status and conditions.
func (k *kind) Report(g *pcapi.VmGroup, obs *observation, outcome error) reconciler.Summary {
	c := countOf(obs)
	g.Status.Replicas, g.Status.ReadyReplicas = c.existing, c.ready
	g.Status.Selector = pcapi.GroupLabel + "=" + labelOf(g)
	if obs.revision != "" && obs.denied == nil {
		g.Status.Revision, g.Status.UpdatedReplicas = obs.revision, c.updated
	}
	reportUtilization(g, obs)
	g.Status.Phase = phase(g, outcome)
	reportPlan(g, obs, outcome)
	if g.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&g.Status.Conditions, pcapi.DeletingCondition)
		return summary(g, c)
	}
	deleting := metav1.Condition{Type: pcapi.DeletingCondition, Status: metav1.ConditionTrue, Reason: pcapi.RequestedReason, Message: "the members are being deleted"}
	if reconciler.IsStalled(outcome) || reconciler.Reason(outcome) == pcapi.ApprovalRequiredReason {
		deleting.Reason, deleting.Message = pcapi.BlockedReason, outcome.Error()
	}
	meta.SetStatusCondition(&g.Status.Conditions, deleting)
	if orphaned(g) {
		return reconciler.Summary{Reason: "Orphaned", Message: "the members stay and have no owner now"}
	}
	return reconciler.Summary{Reason: "Deleted", Message: "its members are gone or being deleted"}
}

// summary is the summary of a group in sync.
func summary(g *pcapi.VmGroup, c counts) reconciler.Summary {
	if c.outdated > 0 {
		return reconciler.Summary{Reason: pcapi.OutdatedReason, Message: fmt.Sprintf(
			"%d of %d members are of an older revision: each is replaced once it is deleted", c.outdated, g.Status.Replicas)}
	}
	return reconciler.Summary{Reason: pcapi.ReconciledReason, Message: "successfully reconciled VmGroup"}
}

// reportUtilization writes the mean utilization of the members whose utilization
// is known. A change below the Cloud's utilizationStep is not written.
func reportUtilization(g *pcapi.VmGroup, obs *observation) {
	var sum, known int32
	for _, vm := range obs.members {
		if alive(vm) && exists(vm) && vm.Status.CPUUtilization != nil {
			sum += *vm.Status.CPUUtilization
			known++
		}
	}
	if known == 0 {
		g.Status.CPUUtilization = nil
		return
	}
	mean, last := (sum+known/2)/known, g.Status.CPUUtilization
	if last == nil || mean-*last >= obs.step || *last-mean >= obs.step {
		g.Status.CPUUtilization = &mean
	}
}

func phase(g *pcapi.VmGroup, outcome error) pcapi.VmGroupPhase {
	_, stalled := errors.AsType[*reconciler.StalledError](outcome)
	switch reason := reconciler.Reason(outcome); {
	case !g.DeletionTimestamp.IsZero():
		return pcapi.VmGroupDeleting
	case outcome == nil:
		return pcapi.VmGroupRunning
	case stalled, reason == "":
		return pcapi.VmGroupError
	case reason == pcapi.RollingReason:
		return pcapi.VmGroupRolling
	case reason == pcapi.CloudUnavailableReason:
		return pcapi.VmGroupPending
	default:
		return pcapi.VmGroupScaling
	}
}
