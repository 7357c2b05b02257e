package vmgroup

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the group's own status and conditions.
func (k *kind) Report(g *v1alpha1.VmGroup, obs *observation, outcome error) reconciler.Summary {
	c := countOf(obs)
	g.Status.Replicas, g.Status.ReadyReplicas = c.existing, c.ready
	g.Status.Selector = v1alpha1.GroupLabel + "=" + labelOf(g)
	if obs.revision != "" && obs.denied == nil {
		g.Status.Revision, g.Status.UpdatedReplicas = obs.revision, c.updated
	}
	reportUtilization(g, obs)
	g.Status.Phase = phase(g, outcome)
	if g.DeletionTimestamp.IsZero() {
		meta.RemoveStatusCondition(&g.Status.Conditions, v1alpha1.DeletingCondition)
		return summary(g, c)
	}
	deleting := metav1.Condition{Type: v1alpha1.DeletingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RequestedReason, Message: "the members are being deleted"}
	if _, stuck := errors.AsType[*reconciler.StalledError](outcome); stuck {
		deleting.Reason, deleting.Message = v1alpha1.BlockedReason, outcome.Error()
	}
	meta.SetStatusCondition(&g.Status.Conditions, deleting)
	if orphaned(g) {
		return reconciler.Summary{Reason: "Orphaned", Message: "the members stay and have no owner now"}
	}
	return reconciler.Summary{Reason: "Deleted", Message: "its members are gone or being deleted"}
}

// summary is the summary of a group in sync.
func summary(g *v1alpha1.VmGroup, c counts) reconciler.Summary {
	if c.outdated > 0 {
		return reconciler.Summary{Reason: v1alpha1.OutdatedReason, Message: fmt.Sprintf(
			"%d of %d members are of an older revision: each is replaced once it is deleted", c.outdated, g.Status.Replicas)}
	}
	return reconciler.Summary{Reason: v1alpha1.ReconciledReason, Message: "successfully reconciled VmGroup"}
}

// reportUtilization writes the mean utilization of the members whose utilization
// is known. A change below the Cloud's utilizationStep is not written.
func reportUtilization(g *v1alpha1.VmGroup, obs *observation) {
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

func phase(g *v1alpha1.VmGroup, outcome error) v1alpha1.VmGroupPhase {
	_, stalled := errors.AsType[*reconciler.StalledError](outcome)
	switch reason := reconciler.Reason(outcome); {
	case !g.DeletionTimestamp.IsZero():
		return v1alpha1.VmGroupDeleting
	case outcome == nil:
		return v1alpha1.VmGroupRunning
	case stalled, reason == "":
		return v1alpha1.VmGroupError
	case reason == v1alpha1.RollingReason:
		return v1alpha1.VmGroupRolling
	case reason == v1alpha1.CloudUnavailableReason:
		return v1alpha1.VmGroupPending
	default:
		return v1alpha1.VmGroupScaling
	}
}
