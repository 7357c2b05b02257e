package vmgroup

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/reconciler"
)

// plan decides what to do as if everything were approved.
func (k *kind) plan(g *pcapi.VmGroup, obs *observation) plan {
	switch {
	case !g.DeletionTimestamp.IsZero():
		return k.planDeletion(g, obs)
	case obs.denied != nil:
		return plan{Outcome: obs.denied}
	}
	m := movesFor(g, obs)
	outcome := outcomeOf(g, obs, m)
	if obs.closing && !m.none() {
		m, outcome = shrink(g, obs), closing(obs)
	}
	var p plan
	for _, s := range []struct {
		step step
		due  bool
	}{
		{k.claim(), !obs.claimed},
		{k.remove(m), len(m.remove) > 0},
		{k.align(m), len(m.align)+len(m.keep) > 0},
		{k.create(m), m.create > 0},
	} {
		if s.due {
			p.Steps = append(p.Steps, s.step)
		}
	}
	return p.Then(outcome)
}

// closing is the outcome of a group that needs changes while its Cloud is being deleted.
func closing(obs *observation) error {
	return reconciler.Blocked("Cloud/"+obs.template.cloudName(), pcapi.CloudUnavailableReason,
		"Cloud %q is being deleted, so members are neither created nor replaced on it: choose another in spec.cloudRef, or delete this group", obs.template.cloudName())
}

// outcomeOf is the outcome for the members as they are. Events of members
// enqueue the group, so only the wait for failed members has a duration.
func outcomeOf(g *pcapi.VmGroup, obs *observation, m moves) error {
	c, desired := countOf(obs), ptr.Deref(g.Spec.Replicas, 1)
	stuck, patience := stuckMember(obs, m), replacementWait(obs)
	switch {
	case len(m.protected) > 0 && pcapi.Protected(g):
		return &reconciler.StalledError{Reason: pcapi.MembersStalledReason, Cause: fmt.Errorf(
			"VM %s: deletion protection of this VmGroup is on, so no member is deleted: remove its annotation %s to continue", m.protected[0].Name, pcapi.DeletionProtectionAnnotation)}
	case len(m.protected) > 0:
		return &reconciler.StalledError{Reason: pcapi.MembersStalledReason, Cause: fmt.Errorf(
			"VM %s: deletion protection is on, so the group does not delete it: remove its annotation %s to continue", m.protected[0].Name, pcapi.DeletionProtectionAnnotation)}
	case obs.flavorRefused != nil:
		return reconciler.Stalled(pcapi.RejectedReason, 0, fmt.Errorf("members are neither changed nor replaced: %w", obs.flavorRefused))
	case obs.lacking() != "":
		return reconciler.Stalled(pcapi.UnsupportedReason, 0, fmt.Errorf(
			"this cloud cannot set %[1]s, so members are neither changed nor replaced: remove it from the spec, or set it back", obs.lacking()))
	case stuck != nil:
		outcome := membersStalled(stuck)
		if c.failed > 0 {
			outcome.Recheck = patience
		}
		return outcome
	case patience > 0 && obs.patience == 0:
		return reconciler.Wait(patience, pcapi.MembersNotReadyReason,
			"the servers of members are in error: members whose servers do not recover soon are replaced")
	case c.failed > 0 && obs.patience > 0:
		return reconciler.Wait(obs.patience, pcapi.MembersNotReadyReason,
			"members fail again and again: they are replaced later and later; their Ready conditions say why")
	case c.outdated > 0 && g.Spec.Strategy.Type != pcapi.StrategyOnDelete:
		return reconciler.Wait(0, pcapi.RollingReason, "%d of %d members are of the current revision, %d are Ready%s", c.updated, desired, c.ready, waitsFor(obs))
	case !m.none(), c.leaving > 0:
		return reconciler.Wait(0, pcapi.ScalingReason, "%d of %d members exist, %d are Ready%s", c.existing, desired, c.ready, waitsFor(obs))
	case c.ready < desired:
		return reconciler.Wait(0, pcapi.MembersNotReadyReason, "%d of %d members are Ready%s", c.ready, desired, waitsFor(obs))
	}
	return nil
}

// replacementWait returns the time until the next failed member may be replaced; 0 if one may be
// now, or if there is none.
func replacementWait(obs *observation) time.Duration {
	least := time.Duration(0)
	for _, vm := range obs.members {
		if alive(vm) && failed(vm) && (least == 0 || obs.until(vm) < least) {
			least = obs.until(vm)
			if least == 0 {
				return 0
			}
		}
	}
	return least
}

// counts are of the members that are not being deleted, except for leaving: those whose deletion
// the operator has not finished.
type counts struct{ existing, ready, updated, outdated, failed, leaving int32 }

func countOf(obs *observation) counts {
	var c counts
	for _, vm := range obs.members {
		if !alive(vm) {
			if controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer) {
				c.leaving++
			}
			continue
		}
		add := func(n *int32, is bool) {
			if is {
				*n++
			}
		}
		current := vm.Labels[pcapi.RevisionLabel] == obs.revision
		add(&c.existing, exists(vm))
		add(&c.ready, ready(vm))
		add(&c.updated, current)
		add(&c.outdated, !current)
		add(&c.failed, failed(vm))
	}
	return c
}

// waitsFor names the first member that waits for a reason that lasts, else the first of the revision whose
// server runs and whose guest is not ready.
func waitsFor(obs *observation) string {
	for _, vm := range obs.members {
		if c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.ReadyCondition); c != nil && alive(vm) && slices.Contains(lastingReasons, c.Reason) {
			return fmt.Sprintf("; VM %s: %s: %s", vm.Name, c.Reason, c.Message)
		}
	}
	for _, vm := range obs.members {
		if alive(vm) && running(vm) && !ready(vm) && vm.Labels[pcapi.RevisionLabel] == obs.revision {
			return fmt.Sprintf("; the guest of VM %s is not ready: see its condition %s", vm.Name, pcapi.GuestReadyCondition)
		}
	}
	return ""
}

// lastingReasons are the reasons of Ready of VMs that wait until somebody or something else acts, and
// that are not stalled.
var lastingReasons = []string{
	pcapi.QuotaExceededReason, pcapi.UnschedulableReason, pcapi.ClassUnavailableReason, pcapi.NetworkNotReadyReason, pcapi.UserDataUnavailableReason,
	pcapi.ApprovalRequiredReason, pcapi.SnapshotUnavailableReason, pcapi.AddressInUseReason,
}

// stuckMember returns the first member that is stalled and that the moves do
// not change; nil if there is none.
func stuckMember(obs *observation, m moves) *pcapi.VM {
	changed := setOf(m.remove, m.align)
	for _, vm := range obs.members {
		if stalled(vm) == nil || failed(vm) || changed[vm] {
			continue
		}
		if alive(vm) || blocked(vm) {
			return vm
		}
	}
	return nil
}

// membersStalled is the outcome while a member is stalled.
func membersStalled(vm *pcapi.VM) *reconciler.StalledError {
	text := fmt.Sprintf("VM %s: %s", vm.Name, stalled(vm).Message)
	return &reconciler.StalledError{Reason: pcapi.MembersStalledReason, Cause: errors.New(text)}
}

// planDeletion deletes the members. With background deletion, the group is
// released once their deletion is requested; with foreground deletion, or if the members
// need its approval, once they are gone.
func (k *kind) planDeletion(g *pcapi.VmGroup, obs *observation) plan {
	var m moves
	for _, vm := range obs.members {
		if alive(vm) {
			m.remove = append(m.remove, vm)
		}
	}
	switch {
	case orphaned(g):
		return reconciler.Do(k.disown(), k.release())
	case pcapi.Protected(g) && len(obs.members) > 0:
		return plan{Outcome: reconciler.Stalled(pcapi.BlockedReason, 0, fmt.Errorf(
			"deletion protection is on, so this VmGroup and its members are kept: remove the annotation %s to have them deleted", pcapi.DeletionProtectionAnnotation))}
	case (foreground(g) || approval.Required(g)) && len(obs.members) > 0:
		p := reconciler.Do(k.remove(m))
		if stuck := stuckMember(obs, m); stuck != nil {
			return p.Then(membersStalled(stuck))
		}
		return p.Then(reconciler.Wait(0, pcapi.DeletingReason, "%d members are being deleted", len(obs.members)))
	}
	return reconciler.Do(k.remove(m), k.release())
}
