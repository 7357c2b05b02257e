package vm

import (
	"fmt"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The steps of a plan. Those in mutations change the cloud; a plan holds at
// most one of them.
const (
	stepCheckName       = "CheckName"
	stepClaim           = "Claim"
	stepUnclaim         = "Unclaim"
	stepLook            = "Look"
	stepCreate          = "Create"
	stepAdopt           = "Adopt"
	stepLabel           = "Label"
	stepUpdate          = "Update"
	stepDeleteDuplicate = "DeleteDuplicate"
	stepDelete          = "Delete"
	stepConfirmGone     = "ConfirmGone"
	stepUnlabel         = "Unlabel"
	stepRelease         = "Release"
)

const (
	// recheckRefused is how often a refused spec or name is tried again unchanged.
	recheckRefused = 10 * time.Minute
	// recheckTaken is how often a name that somebody else has is asked for again.
	recheckTaken = time.Minute
	// safety is how long a pass trusts the inventory to wake it.
	safety = time.Minute
)

// plan decides what to do, from what was seen and nothing else.
func plan(vm *v1alpha1.VM, obs *scope) ([]string, error) {
	switch {
	case !vm.DeletionTimestamp.IsZero():
		return planDeletion(vm, obs)
	case obs.denied != nil:
		return nil, obs.denied
	case vm.Status.VMID != "":
		return planExisting(vm, obs)
	case vm.Spec.Import != nil:
		return planImport(vm, obs)
	default:
		return planCreate(vm, obs)
	}
}

// planCreate leads to a server that does not exist yet, or whose create was
// sent and never recorded.
func planCreate(vm *v1alpha1.VM, obs *scope) ([]string, error) {
	if err := unsupported(vm, obs.caps()); err != nil && obs.view.Unavailable == "" {
		return nil, err
	}
	if obs.claimed == "" {
		switch {
		case obs.detached != nil:
			return planDetached(obs)
		case obs.rival != nil:
			return nil, taken(obs.rival)
		case obs.nameErr != nil:
			return nil, refusedName(obs.nameErr)
		}
		return []string{stepCheckName, stepClaim, stepCreate}, nil
	}
	steps, outcome, found := planFound(vm, obs)
	switch {
	case found:
		return steps, outcome
	case obs.moved:
		return []string{stepUnclaim}, reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "nothing of the VM is on the Cloud that spec.cloudRef named before")
	case obs.detached != nil:
		return planDetached(obs)
	case obs.rival != nil && obs.settles > 0:
		return nil, taken(obs.rival)
	case obs.rival != nil:
		return []string{stepUnclaim}, taken(obs.rival)
	case obs.claimed != vm.Spec.VMName:
		if obs.nameErr != nil {
			return nil, refusedName(obs.nameErr)
		}
		return []string{stepCheckName, stepClaim, stepCreate}, nil
	}
	return []string{stepCreate}, nil
}

// planFound handles what an earlier create may have left: the protocol's
// "look first". found is false when a create may be sent.
func planFound(vm *v1alpha1.VM, obs *scope) (steps []string, outcome error, found bool) { //nolint:revive // the outcome belongs to the steps
	// The key makes a second create safe as long as it says the same.
	keyed := obs.caps().Has(cloud.Idempotency) && obs.claimed == vm.Spec.VMName && !obs.moved
	switch {
	case obs.moved && obs.proof != noProof && len(obs.candidates) > 0:
		return nil, moved(obs, obs.candidates[0].ID), true
	case obs.proof == labelProof && len(obs.candidates) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil, true
	case obs.proof != noProof && len(obs.candidates) == 1:
		return []string{stepAdopt}, adopted(vm, obs.candidates[0]), true
	case !obs.looked:
		return []string{stepLook}, nil, true
	case len(obs.candidates) > 0 && !keyed:
		return nil, stall(v1alpha1.AmbiguousReason, fmt.Errorf(
			"%s may be this VM, made by a create whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"set spec.import.vmId to the one that is this VM's, or rename or delete them in the cloud", names(obs.candidates)), recheckTaken), true
	case obs.settles > 0 && !keyed:
		return nil, reconciler.Wait(obs.settles, v1alpha1.OutcomeUnknownReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime before a second one, looking for the first one's server meanwhile"), true
	}
	return nil, nil, false
}

// planImport takes a server over that is there already.
func planImport(vm *v1alpha1.VM, obs *scope) ([]string, error) {
	switch {
	case obs.moved:
		return nil, moved(obs, vm.Spec.Import.VMID)
	case obs.rival != nil:
		return nil, stall(v1alpha1.AmbiguousReason, obs.rival, recheckTaken)
	case obs.gone:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"the cloud has no VM %s: check spec.import.vmId, then delete this VM and make another", vm.Spec.Import.VMID), recheckRefused)
	case obs.server == nil:
		return []string{stepLook}, nil
	case obs.foreign:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"VM %s carries the owner labels of another cluster: have it released there by deleting its object with deletionPolicy Orphan, or take the labels off in the cloud",
			vm.Spec.Import.VMID), recheckRefused)
	case obs.server.Name != vm.Spec.VMName:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"VM %s is named %q in the cloud: set spec.vmname to that", vm.Spec.Import.VMID, obs.server.Name), recheckRefused)
	case vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly:
		return []string{stepAdopt}, progress(*obs.server)
	case !obs.owned && obs.caps().Has(cloud.Labels):
		return []string{stepClaim, stepLabel, stepAdopt}, adopted(vm, *obs.server)
	}
	return []string{stepClaim, stepAdopt}, adopted(vm, *obs.server)
}

// planExisting keeps a recorded server as the spec says.
func planExisting(vm *v1alpha1.VM, obs *scope) ([]string, error) {
	observeOnly := vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly
	switch {
	case obs.gone:
		return nil, reconciler.Stalled(v1alpha1.LostReason, 0, fmt.Errorf(
			"VM %s is gone from the cloud and not by this operator; it is not made again: delete this object and make another", vm.Status.VMID))
	case obs.server == nil:
		return nil, reconciler.ErrUnknown
	case observeOnly:
		return nil, progress(*obs.server)
	case obs.rival != nil:
		return nil, stall(v1alpha1.AmbiguousReason, obs.rival, recheckTaken)
	}
	var steps []string
	if obs.claimed == "" {
		steps = append(steps, stepClaim)
	}
	if vm.Spec.Import != nil && !obs.owned && obs.caps().Has(cloud.Labels) && obs.server.Labels[inventory.UIDLabel] == "" {
		return append(steps, stepLabel), adopted(vm, *obs.server)
	}
	if len(obs.duplicates) > 0 {
		return append(steps, stepDeleteDuplicate), nil
	}
	if err := progress(*obs.server); err != nil {
		return steps, err
	}
	if obs.server.Name != vm.Spec.VMName {
		return steps, reconciler.Stalled(v1alpha1.DriftReason, 0, fmt.Errorf(
			"the VM is named %q in the cloud, not %q, and cannot be renamed from here: rename it in the cloud", obs.server.Name, vm.Spec.VMName))
	}
	change := difference(vm, *obs.server)
	if change.Empty() {
		return steps, nil
	}
	if err := unchangeable(change, obs.caps()); err != nil {
		return steps, err
	}
	if !obs.owned {
		return steps, foreign(*obs.server)
	}
	return append(steps, stepUpdate), nil
}

// planDeletion gets the server out of the cloud and proves it, then lets the object go.
func planDeletion(vm *v1alpha1.VM, obs *scope) ([]string, error) {
	keep := vm.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan || vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly
	switch {
	case unproved(vm, obs) && !keep:
		return nil, stall(v1alpha1.BlockedReason, fmt.Errorf(
			"%w; nothing but a name tells on this cloud which server is this VM's, so none is deleted: have the namespace allowed, or set spec.deletionPolicy to Orphan to let go of it",
			obs.denied), recheckTaken)
	case keep && (obs.cloudless || (obs.view.Client != nil && !obs.caps().Has(cloud.Labels))):
		return []string{stepRelease}, nil
	case knownID(vm) == "":
		return planDeletionUnrecorded(vm, keep, obs)
	case obs.gone, obs.server == nil:
		return []string{stepConfirmGone, stepRelease}, nil
	case keep && obs.owned && obs.caps().Has(cloud.Labels):
		return []string{stepUnlabel, stepRelease}, nil
	case keep, obs.rival != nil, vm.Status.VMID == "" && notImported(vm, obs):
		return []string{stepRelease}, nil //nolint:nilerr // a rival keeps the server, which is no failure
	case !obs.owned:
		return nil, foreign(*obs.server)
	case len(obs.duplicates) > 0:
		return []string{stepDeleteDuplicate}, nil
	case obs.server.State == cloud.StateDeleting:
		return nil, underDeletion(vm, obs, obs.server.ID)
	}
	return []string{stepDelete, stepConfirmGone, stepRelease}, nil
}

// unproved: the namespace may not use the Cloud, no server is on record, and on
// this cloud a claim, which anybody can write, would be all that proves one.
func unproved(vm *v1alpha1.VM, obs *scope) bool {
	return obs.denied != nil && !obs.cloudless && vm.Status.VMID == "" && !obs.caps().Has(cloud.Labels)
}

// notImported tells whether an import that is not on record never got to take
// the server over.
func notImported(vm *v1alpha1.VM, obs *scope) bool {
	return !obs.owned || obs.server.Name != vm.Spec.VMName
}

// planDeletionUnrecorded deletes what a create without a recorded answer may have left.
func planDeletionUnrecorded(vm *v1alpha1.VM, keep bool, obs *scope) ([]string, error) {
	proved := len(obs.candidates) > 0 && (obs.proof == labelProof || (obs.proof == nameProof && len(obs.candidates) == 1))
	switch {
	case proved && keep:
		return []string{stepAdopt, stepUnlabel, stepRelease}, nil
	case proved && obs.candidates[0].State == cloud.StateDeleting:
		return []string{stepAdopt}, underDeletion(vm, obs, obs.candidates[0].ID)
	case proved && len(obs.candidates) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil
	case proved:
		return []string{stepAdopt, stepDelete, stepConfirmGone, stepRelease}, nil
	case keep:
		return []string{stepRelease}, nil
	case !obs.looked:
		return []string{stepLook}, nil
	case len(obs.candidates) > 0:
		return nil, stall(v1alpha1.BlockedReason, fmt.Errorf(
			"%s may be this VM, made by a create whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"delete it in the cloud if it is, or set spec.deletionPolicy to Orphan to let go of it", names(obs.candidates)), recheckTaken)
	case obs.settles > 0:
		return nil, reconciler.Wait(obs.settles, v1alpha1.RequestedReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime to be sure that no server comes of it")
	}
	return []string{stepRelease}, nil
}

// underDeletion waits for a deletion that the cloud is at. The status tells of
// it only once it takes long.
func underDeletion(vm *v1alpha1.VM, obs *scope, id string) error {
	wait := &reconciler.WaitError{After: safety, Reason: v1alpha1.RequestedReason, Message: "the cloud is deleting VM " + id}
	if obs.now.Sub(vm.DeletionTimestamp.Time) < quiet {
		wait.After, wait.Quiet = quiet, true
	}
	return wait
}
