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
func plan(vm *v1alpha1.VM, seen *scope) ([]string, error) {
	switch {
	case !vm.DeletionTimestamp.IsZero():
		return planDeletion(vm, seen)
	case seen.denied != nil:
		return nil, seen.denied
	case vm.Status.VMID != "":
		return planExisting(vm, seen)
	case vm.Spec.Import != nil:
		return planImport(vm, seen)
	default:
		return planCreate(vm, seen)
	}
}

// planCreate leads to a server that does not exist yet, or whose create was
// sent and never recorded.
func planCreate(vm *v1alpha1.VM, seen *scope) ([]string, error) {
	if err := unsupported(vm, seen.caps()); err != nil && seen.view.Away == "" {
		return nil, err
	}
	if seen.claimed == "" {
		switch {
		case seen.detached != nil:
			return planDetached(seen)
		case seen.rival != nil:
			return nil, taken(seen.rival)
		case seen.nameErr != nil:
			return nil, refusedName(seen.nameErr)
		}
		return []string{stepCheckName, stepClaim, stepCreate}, nil
	}
	steps, verdict, found := planFound(vm, seen)
	switch {
	case found:
		return steps, verdict
	case seen.moved:
		return []string{stepUnclaim}, reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "nothing of the VM is on the Cloud that spec.cloudRef named before")
	case seen.detached != nil:
		return planDetached(seen)
	case seen.rival != nil && seen.settles > 0:
		return nil, taken(seen.rival)
	case seen.rival != nil:
		return []string{stepUnclaim}, taken(seen.rival)
	case seen.claimed != vm.Spec.VMName:
		if seen.nameErr != nil {
			return nil, refusedName(seen.nameErr)
		}
		return []string{stepCheckName, stepClaim, stepCreate}, nil
	}
	return []string{stepCreate}, nil
}

// planFound handles what an earlier create may have left: the protocol's
// "look first". found is false when a create may be sent.
func planFound(vm *v1alpha1.VM, seen *scope) (steps []string, verdict error, found bool) { //nolint:revive // the verdict belongs to the steps
	// The key makes a second create safe as long as it says the same.
	keyed := seen.caps().Has(cloud.Idempotency) && seen.claimed == vm.Spec.VMName && !seen.moved
	switch {
	case seen.moved && seen.proof != noProof && len(seen.candidates) > 0:
		return nil, moved(seen, seen.candidates[0].ID), true
	case seen.proof == labelProof && len(seen.candidates) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil, true
	case seen.proof != noProof && len(seen.candidates) == 1:
		return []string{stepAdopt}, adopted(vm, seen.candidates[0]), true
	case !seen.looked:
		return []string{stepLook}, nil, true
	case len(seen.candidates) > 0 && !keyed:
		return nil, stall(v1alpha1.AmbiguousReason, fmt.Errorf(
			"%s may be this VM, made by a create whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"set spec.import.vmId to the one that is this VM's, or rename or delete them in the cloud", names(seen.candidates)), recheckTaken), true
	case seen.settles > 0 && !keyed:
		return nil, reconciler.Wait(seen.settles, v1alpha1.OutcomeUnknownReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime before a second one, looking for the first one's server meanwhile"), true
	}
	return nil, nil, false
}

// planImport takes a server over that is there already.
func planImport(vm *v1alpha1.VM, seen *scope) ([]string, error) {
	switch {
	case seen.moved:
		return nil, moved(seen, vm.Spec.Import.VMID)
	case seen.rival != nil:
		return nil, stall(v1alpha1.AmbiguousReason, seen.rival, recheckTaken)
	case seen.gone:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"the cloud has no VM %s: check spec.import.vmId, then delete this VM and make another", vm.Spec.Import.VMID), recheckRefused)
	case seen.server == nil:
		return []string{stepLook}, nil
	case seen.foreign:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"VM %s carries the owner labels of another cluster: have it released there by deleting its object with deletionPolicy Orphan, or take the labels off in the cloud",
			vm.Spec.Import.VMID), recheckRefused)
	case seen.server.Name != vm.Spec.VMName:
		return nil, stall(v1alpha1.RejectedReason, fmt.Errorf(
			"VM %s is named %q in the cloud: set spec.vmname to that", vm.Spec.Import.VMID, seen.server.Name), recheckRefused)
	case vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly:
		return []string{stepAdopt}, progress(*seen.server)
	case !seen.owned && seen.caps().Has(cloud.Labels):
		return []string{stepClaim, stepLabel, stepAdopt}, adopted(vm, *seen.server)
	}
	return []string{stepClaim, stepAdopt}, adopted(vm, *seen.server)
}

// planExisting keeps a recorded server as the spec says.
func planExisting(vm *v1alpha1.VM, seen *scope) ([]string, error) {
	observeOnly := vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly
	switch {
	case seen.gone:
		return nil, reconciler.Stalled(v1alpha1.LostReason, fmt.Errorf(
			"VM %s is gone from the cloud and not by this operator; it is not made again: delete this object and make another", vm.Status.VMID))
	case seen.server == nil:
		return nil, reconciler.ErrUnknown
	case observeOnly:
		return nil, progress(*seen.server)
	case seen.rival != nil:
		return nil, stall(v1alpha1.AmbiguousReason, seen.rival, recheckTaken)
	}
	var steps []string
	if seen.claimed == "" {
		steps = append(steps, stepClaim)
	}
	if vm.Spec.Import != nil && !seen.owned && seen.caps().Has(cloud.Labels) && seen.server.Labels[inventory.UIDLabel] == "" {
		return append(steps, stepLabel), adopted(vm, *seen.server)
	}
	if len(seen.duplicates) > 0 {
		return append(steps, stepDeleteDuplicate), nil
	}
	if err := progress(*seen.server); err != nil {
		return steps, err
	}
	if seen.server.Name != vm.Spec.VMName {
		return steps, reconciler.Stalled(v1alpha1.DriftReason, fmt.Errorf(
			"the VM is named %q in the cloud, not %q, and cannot be renamed from here: rename it in the cloud", seen.server.Name, vm.Spec.VMName))
	}
	change := difference(vm, *seen.server)
	if change.Empty() {
		return steps, nil
	}
	if err := unchangeable(change, seen.caps()); err != nil {
		return steps, err
	}
	if !seen.owned {
		return steps, foreign(*seen.server)
	}
	return append(steps, stepUpdate), nil
}

// planDeletion gets the server out of the cloud and proves it, then lets the object go.
func planDeletion(vm *v1alpha1.VM, seen *scope) ([]string, error) {
	keep := vm.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan || vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly
	switch {
	case unproved(vm, seen) && !keep:
		return nil, stall(v1alpha1.BlockedReason, fmt.Errorf(
			"%w; nothing but a name tells on this cloud which server is this VM's, so none is deleted: have the namespace allowed, or set spec.deletionPolicy to Orphan to let go of it",
			seen.denied), recheckTaken)
	case keep && (seen.cloudless || (seen.view.Client != nil && !seen.caps().Has(cloud.Labels))):
		return []string{stepRelease}, nil
	case knownID(vm) == "":
		return planDeletionUnrecorded(vm, keep, seen)
	case seen.gone, seen.server == nil:
		return []string{stepConfirmGone, stepRelease}, nil
	case keep && seen.owned && seen.caps().Has(cloud.Labels):
		return []string{stepUnlabel, stepRelease}, nil
	case keep, seen.rival != nil, vm.Status.VMID == "" && notImported(vm, seen):
		return []string{stepRelease}, nil //nolint:nilerr // a rival keeps the server, which is no failure
	case !seen.owned:
		return nil, foreign(*seen.server)
	case len(seen.duplicates) > 0:
		return []string{stepDeleteDuplicate}, nil
	case seen.server.State == cloud.StateDeleting:
		return nil, underDeletion(vm, seen, seen.server.ID)
	}
	return []string{stepDelete, stepConfirmGone, stepRelease}, nil
}

// unproved: the namespace may not use the Cloud, no server is on record, and on
// this cloud a claim, which anybody can write, would be all that proves one.
func unproved(vm *v1alpha1.VM, seen *scope) bool {
	return seen.denied != nil && !seen.cloudless && vm.Status.VMID == "" && !seen.caps().Has(cloud.Labels)
}

// notImported tells whether an import that is not on record never got to take
// the server over.
func notImported(vm *v1alpha1.VM, seen *scope) bool {
	return !seen.owned || seen.server.Name != vm.Spec.VMName
}

// planDeletionUnrecorded deletes what a create without a recorded answer may have left.
func planDeletionUnrecorded(vm *v1alpha1.VM, keep bool, seen *scope) ([]string, error) {
	proved := len(seen.candidates) > 0 && (seen.proof == labelProof || (seen.proof == nameProof && len(seen.candidates) == 1))
	switch {
	case proved && keep:
		return []string{stepAdopt, stepUnlabel, stepRelease}, nil
	case proved && seen.candidates[0].State == cloud.StateDeleting:
		return []string{stepAdopt}, underDeletion(vm, seen, seen.candidates[0].ID)
	case proved && len(seen.candidates) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil
	case proved:
		return []string{stepAdopt, stepDelete, stepConfirmGone, stepRelease}, nil
	case keep:
		return []string{stepRelease}, nil
	case !seen.looked:
		return []string{stepLook}, nil
	case len(seen.candidates) > 0:
		return nil, stall(v1alpha1.BlockedReason, fmt.Errorf(
			"%s may be this VM, made by a create whose answer was lost, or somebody else's; nothing on this cloud proves which: "+
				"delete it in the cloud if it is, or set spec.deletionPolicy to Orphan to let go of it", names(seen.candidates)), recheckTaken)
	case seen.settles > 0:
		return nil, reconciler.Wait(seen.settles, v1alpha1.RequestedReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime to be sure that no server comes of it")
	}
	return []string{stepRelease}, nil
}

// underDeletion waits for a deletion that the cloud is at. The status tells of
// it only once it takes long.
func underDeletion(vm *v1alpha1.VM, seen *scope, id string) error {
	wait := &reconciler.WaitError{After: safety, Reason: v1alpha1.RequestedReason, Message: "the cloud is deleting VM " + id}
	if seen.now.Sub(vm.DeletionTimestamp.Time) < quiet {
		wait.After, wait.Quiet = quiet, true
	}
	return wait
}
