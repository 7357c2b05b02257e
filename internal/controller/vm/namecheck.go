package vm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// nameChecker decides about the names of new VMs: whether the cloud allows them, and what it means that a create is refused
// because of its name.
type nameChecker struct {
	*lifecycle

	observer *observer
	refusals refusals
}

// allRefused reports whether this process knows that the cloud refused every create of a claimed VM, the last one
// because of its name. The name is then checked before another create, as before the first one.
func (n *nameChecker) allRefused(vm *pcapi.VM) bool {
	return n.Tracker.AllRefused(vm.UID) && meta.IsStatusConditionFalse(vm.Status.Conditions, pcapi.NameCheckedCondition)
}

// check asks the cloud for the name.
func (n *nameChecker) check(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	err := obs.View.Client.CheckName(ctx, nameOf(vm))
	if err == nil {
		obs.checked = true
		return nil
	}
	if cloud.Is(err, cloud.Taken) && obs.Claimed == vm.Spec.VMName {
		// By the create of another manager, perhaps: the VM may have been created with its claim.
		switch {
		case !obs.Looked:
			return n.Steps.Look.Run(ctx, vm, obs)
		case obs.SettleTimeLeft > 0 && unlisted(vm, obs):
			return reconciler.Wait(obs.SettleTimeLeft, pcapi.OutcomeUnknownReason,
				"%v; an earlier create of this VM may have taken it: its server is looked for until the Cloud's settleTime has passed", cloud.Public(err))
		case n.madeWithoutLabels(vm, obs), nameDoubted(vm, obs) && unlisted(vm, obs):
			obs.nameErr = err
			return ambiguous(unprovedName(vm, obs, err))
		}
	}
	if outcome := n.refused(ctx, vm, obs, err); outcome != nil {
		return outcome
	}
	return n.Failed(vm, &obs.Observation, err)
}

// confirm fails if the claimed name is taken and no server shows by whom.
func (n *nameChecker) confirm(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	err := obs.View.Client.CheckName(ctx, cloud.Name{Name: obs.Claimed, Folder: vm.Spec.Folder})
	switch {
	case err == nil, cloud.Is(err, cloud.Prohibited), cloud.Is(err, cloud.Taken) && takenByAnother(vm, obs):
		return nil
	case !cloud.Is(err, cloud.Taken):
		return n.Failed(vm, &obs.Observation, err)
	}
	err = unprovedName(vm, obs, err)
	if vm.DeletionTimestamp.IsZero() {
		return ambiguous(err)
	}
	return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf("%w, or set spec.deletionPolicy to Orphan to release this object", err))
}

// mustConfirm reports whether the cloud must be asked for the claimed name before the claim is removed: names are unique,
// and a create was sent that was not clearly refused.
func (n *nameChecker) mustConfirm(vm *pcapi.VM, obs *observation) bool {
	sent := !n.Tracker.UnknownSince(vm.UID, time.Time{}).IsZero() // by this process, whatever the status says
	unsent := !claimStored(obs) || unchecked(vm, obs) && !sent || n.Tracker.UnknownSince(vm.UID, obs.ClaimedAt).IsZero()
	return !unsent && !refusedEarlier(vm, obs) && obs.rival == nil && obs.Capabilities().Has(cloud.UniqueNames)
}

// refused remembers a refused name.
func (n *nameChecker) refused(ctx context.Context, vm *pcapi.VM, obs *observation, err error) error {
	if !cloud.Is(err, cloud.Prohibited, cloud.Taken) {
		return nil
	}
	n.refusals.record(vm, obs.Cloud, obs.Now, err)
	obs.nameErr = err
	if err := n.observer.observeHolders(ctx, vm, obs); err != nil {
		return err
	}
	return refusedName(obs, cloud.Public(err))
}

// unclear explains a create that was refused because of its name.
func (n *nameChecker) unclear(vm *pcapi.VM, obs *observation, err error) error {
	caps := obs.Capabilities()
	labels := caps.Has(cloud.Labels)
	// Only a claimed name says which VM owns the server: another manager, or one
	// that has ended, may have created it since the last listing.
	byName := !obs.Fresh && caps.Has(cloud.UniqueNames) && !labels && !caps.Has(cloud.Idempotency)
	// The first create with the key may be in progress: some clouds refuse the name then.
	inProgress := !obs.Fresh && caps.Has(cloud.Idempotency) && claimStored(obs)
	switch {
	case n.madeWithoutLabels(vm, obs):
		return ambiguous(unprovedName(vm, obs, err))
	case byName || (labels || inProgress) && unlisted(vm, obs):
		return fmt.Errorf("%w; it was free when this VM claimed it, so an earlier create has taken effect: its server is looked for", cloud.Public(err))
	}
	return nil
}

// madeWithoutLabels reports whether an earlier create of the VM may have made the listed server that has the name,
// although that has no owner labels: the cloud may have dropped them. The server must be younger than the VM or, if
// its age is not known, the answer to a create must have been lost.
func (n *nameChecker) madeWithoutLabels(vm *pcapi.VM, obs *observation) bool {
	caps := obs.Capabilities()
	sent := !obs.Fresh && claimStored(obs) && !n.Tracker.AllRefused(vm.UID) && !refusedEarlier(vm, obs)
	lost := answerLost(vm)
	return sent && caps.Has(cloud.Labels) && !caps.Has(cloud.Idempotency) && !takenByAnother(vm, obs) &&
		slices.ContainsFunc(named(obs, obs.Claimed, vm.Spec.Folder), func(s cloud.Server) bool { return lost || !s.CreatedAt.IsZero() })
}

// takenByAnother reports whether a listed server with the claimed name is not the VM's: its labels
// name another owner, or it is older than the VM.
func takenByAnother(vm *pcapi.VM, obs *observation) bool {
	return slices.ContainsFunc(named(obs, obs.Claimed, vm.Spec.Folder), func(s cloud.Server) bool {
		uid := s.Labels[inventory.UIDLabel]
		other := len(uid) >= len(vm.UID) && !strings.EqualFold(uid, string(vm.UID))
		return other || !s.CreatedAt.IsZero() && s.CreatedAt.Before(vm.CreationTimestamp.Time)
	})
}

// unprovedName returns why nothing shows which server has the claimed name, which is taken.
func unprovedName(vm *pcapi.VM, obs *observation, taken error) error {
	listed := "no listed server has it"
	if servers := named(obs, obs.Claimed, vm.Spec.Folder); len(servers) > 0 {
		listed = fmt.Sprintf("VM %s has it", servers[0].ID)
	}
	return fmt.Errorf("%w, and %s; it was free when this VM claimed it, so a create whose answer was lost may have made a server, perhaps with another name or other labels: "+
		"look for it in the cloud and delete or rename it", cloud.Public(taken), listed)
}

// refusedEarlier reports whether the status says that every create was clearly refused, as an earlier
// process wrote. It does not say so where a create is repeated while the outcome of the one before is
// unknown, where only names lead to what another manager creates, or of a spec that the cloud cannot have.
func refusedEarlier(vm *pcapi.VM, obs *observation) bool {
	caps := obs.Capabilities()
	return caps.Has(cloud.Labels) && !caps.Has(cloud.Idempotency) && field.Unsupported(vm, caps) == nil && external.CreateRefused(vm.Status.Conditions)
}

// claimStored reports whether the claim is where users cannot write it, or proves nothing.
func claimStored(obs *observation) bool {
	return obs.ClaimProved || obs.Capabilities().Has(cloud.Labels)
}

// unchecked reports whether the claim may be older than the check of the name: the VM may
// have been created with it, where idempotency keys and labels make a claim worth nothing.
func unchecked(vm *pcapi.VM, obs *observation) bool {
	caps, sent := obs.Capabilities(), obs.Operation.ID != "" || obs.Fault != nil
	sent = sent || vm.Annotations[pcapi.ClaimedUIDAnnotation] == string(vm.UID)
	created := caps == nil || caps.Has(cloud.Idempotency) && caps.Has(cloud.Labels)
	return created && !sent && !meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.NameCheckedCondition)
}

// nameDoubted reports whether an earlier create of the VM may have made the server that has the name now. The name is
// then checked before another create, on clouds with labels, whose servers show their owner. A create with an idempotency
// key leads to what an earlier one made.
func nameDoubted(vm *pcapi.VM, obs *observation) bool {
	caps := obs.Capabilities()
	return caps.Has(cloud.Labels) && caps.Has(cloud.UniqueNames) && !caps.Has(cloud.Idempotency) && answerLost(vm)
}

// answerLost reports whether the status says that a create of the VM may have taken effect.
func answerLost(vm *pcapi.VM) bool {
	created := meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition)
	return created != nil && (created.Reason == pcapi.OutcomeUnknownReason || created.Reason == pcapi.AmbiguousReason)
}
