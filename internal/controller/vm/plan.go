package vm

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Repeatable: an idempotency key makes a second create safe as long as it is the
// same, and the claim of the first one is not a user's.
func (k *kind) Repeatable(vm *pcapi.VM, obs *observation) bool {
	return obs.Capabilities().Has(cloud.Idempotency) && obs.Claimed == vm.Spec.VMName && claimStored(obs)
}

// PlanCreate checks the name before the create, and before a claim of its own. A claim is
// removed if another VM has the name.
func (k *kind) PlanCreate(vm *pcapi.VM, obs *observation) plan {
	unsupported := field.Unsupported(vm, obs.Capabilities())
	claimed := obs.Claimed == vm.Spec.VMName && claimStored(obs)
	switch {
	case unsupported != nil && obs.Available():
		return k.End(unsupported)
	case obs.detached != nil:
		return k.planWaiting(vm, obs, obs.detached)
	case obs.unclassed != nil:
		return k.planWaiting(vm, obs, obs.unclassed)
	case obs.flavorRefused != nil:
		return k.planWaiting(vm, obs, obs.flavorRefused)
	case obs.rival != nil && obs.Claimed != "" && obs.SettleTimeLeft == 0:
		return k.Do(k.Steps.Unclaim).Then(taken(obs, obs.rival))
	case obs.rival != nil:
		return k.End(taken(obs, obs.rival))
	case claimed && !unchecked(vm, obs) && obs.nameErr == nil && !k.names.allRefused(vm) && !nameDoubted(vm, obs):
		return k.creating(vm, obs)
	case obs.nameErr != nil:
		return k.End(refusedName(obs, cloud.Public(obs.nameErr)))
	case claimed:
		return k.creating(vm, obs, k.vmSteps.checkName)
	}
	return k.creating(vm, obs, k.vmSteps.checkName, k.Steps.FirstClaim)
}

// creating plans for a create after these steps. What the create needs of a Secret is
// read first: nothing is asked, and nothing but the class stored, before it is there. Where a cloud cannot create
// stopped servers, the server is created running, and the difference is corrected. None can
// create suspended ones. Allowed and public addresses need a server that exists.
func (k *kind) creating(vm *pcapi.VM, obs *observation, before ...step) plan {
	var steps []step
	if obs.class != nil {
		steps = append(steps, k.vmSteps.takeClass)
	}
	if secretOf(vm) != nil {
		steps = append(steps, k.vmSteps.readUserData)
	}
	p := k.Do(append(append(steps, before...), k.Steps.Create)...)
	progress := func(what string) plan {
		return p.Then(reconciler.Wait(time.Second, pcapi.ProgressingReason, "%s", what))
	}
	switch caps := obs.Capabilities(); {
	case !obs.Available():
		return p
	case vm.Spec.PowerState == pcapi.PowerSuspended:
		return progress("the VM was created running and is being suspended")
	case !vm.Spec.PowerState.Runs() && !caps.Has(cloud.PowerAtCreate):
		return progress("the VM was created running, as this cloud does, and is being stopped")
	case len(vm.Spec.AllowedAddresses) > 0 && caps.Has(cloud.WithAllowedAddresses):
		return progress("the VM was created and is being given its allowed addresses")
	case vm.Spec.PublicAddress != nil && caps.Has(cloud.PublicAddresses):
		return progress("the VM was created and is being given its public address")
	}
	return p
}

// planWaiting plans for a VM whose Network or class is not ready, or whose flavor is not allowed. The claim of a create
// that had no effect is removed: it would keep the Network, so that a deletion
// of the Network would wait for the VM.
func (k *kind) planWaiting(vm *pcapi.VM, obs *observation, why error) plan {
	switch {
	case obs.Claimed == "", len(obs.Candidates) > 0:
		return k.End(why)
	case !obs.ShowsAbsence():
		return k.Do(k.Steps.Look)
	case obs.SettleTimeLeft > 0:
		return k.End(reconciler.Wait(obs.SettleTimeLeft, pcapi.OutcomeUnknownReason,
			"a create may have been sent; waiting for the Cloud's settleTime to pass, to be sure that it created no VM, since now %v", why))
	}
	return k.Do(append(k.ConfirmNothing(vm, obs), k.Steps.Unclaim)...).Then(why)
}

// PlanImport takes over a server that exists already.
func (k *kind) PlanImport(vm *pcapi.VM, obs *observation) plan {
	id, rejected := vm.Spec.Import.VMID, func(format string, args ...any) plan {
		return k.End(reconciler.Stalled(pcapi.RejectedReason, controller.RecheckRefused, fmt.Errorf(format, args...)))
	}
	switch {
	case obs.Moved:
		return k.End(k.Moved(&obs.Observation, id))
	case obs.importErr != nil && !errors.Is(obs.importErr, errOwned):
		return rejected("%w", obs.importErr)
	case obs.rival != nil:
		return k.End(cmp.Or(obs.freeSoon, ambiguous(obs.rival)))
	case obs.importErr != nil:
		return rejected("%w", obs.importErr)
	case obs.Gone:
		return rejected("the cloud has no VM %s: check spec.import.vmId, then delete this VM and create another", id)
	case obs.Absent:
		return k.End(k.Unproved(&obs.Observation, id))
	case obs.Resource == nil:
		return k.Do(k.Steps.Look)
	case obs.Foreign:
		return rejected("VM %s carries the owner labels of another cluster: release it there by deleting its object with deletionPolicy Orphan, or remove the labels in the cloud", id)
	case obs.Resource.Name == "":
		return rejected("VM %s has no name in the cloud: give it the name of spec.vmname there", id)
	case obs.Resource.Name != vm.Spec.VMName:
		return rejected("VM %s is named %q in the cloud: set spec.vmname to that", id, obs.Resource.Name)
	case observeOnly(vm):
		return k.Do(k.vmSteps.confirmImport, k.Steps.Adopt).Then(k.Progress(*obs.Resource))
	case !obs.Owned:
		return k.Do(k.vmSteps.confirmImport, k.Steps.Claim, k.vmSteps.label, k.Steps.Adopt).Then(k.Adopted(vm, *obs.Resource))
	case !obs.Capabilities().Has(cloud.Labels):
		return k.Do(k.vmSteps.confirmImport, k.Steps.Claim, k.Steps.Adopt).Then(k.Adopted(vm, *obs.Resource))
	}
	return k.Do(k.Steps.Claim, k.Steps.Adopt).Then(k.Adopted(vm, *obs.Resource))
}

// PlanExisting keeps a recorded server as the spec says.
func (k *kind) PlanExisting(vm *pcapi.VM, obs *observation) plan {
	server := *obs.Resource
	switch {
	case observeOnly(vm):
		return k.planObserved(vm, obs)
	case obs.rival != nil:
		return k.End(ambiguous(obs.rival))
	}
	var p plan
	update, revert := field.Difference(vm, server), k.reverter.plan(vm, obs)
	switch progress := cmp.Or(k.Progress(server), k.Kept(vm, obs)); {
	case vm.RevertOpen():
		p.Steps = append(p.Steps, revert.Steps...)
	case lacksLabels(vm, obs, server):
		p.Steps, p.Outcome = append(p.Steps, k.vmSteps.confirmImport, k.vmSteps.label), k.Adopted(vm, server)
	case vm.Spec.Import != nil && ofAnother(vm, obs, server):
		p.Outcome = foreign(server)
	case len(obs.Duplicates) > 0:
		p.Steps = append(p.Steps, k.Steps.DeleteDuplicate)
	case progress != nil:
		p.Outcome = progress
	case server.Name != wantedName(vm):
		p.Outcome = misnamed(vm, obs, server)
	case obs.class != nil:
		p.Steps = append(p.Steps, k.vmSteps.takeClass)
		p.Outcome = reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s is getting the size of VMClass %q", server.ID, obs.class.Name)
	case !obs.Owned && (len(update) > 0 || len(revert.Steps) > 0 || restartOf(vm, obs.Now) == restartDue):
		p.Outcome = foreign(server)
	case len(revert.Steps) > 0:
		p.Steps = append(p.Steps, revert.Steps...)
	default:
		changes := k.planChanges(vm, obs, update)
		p.Steps, p.Outcome = append(p.Steps, changes.Steps...), changes.Outcome
		if p.Outcome == nil {
			p.Outcome = revert.Outcome
		}
	}
	return p
}

// planObserved plans for a recorded server that is only observed.
func (k *kind) planObserved(vm *pcapi.VM, obs *observation) plan {
	progress := k.Progress(*obs.Resource)
	switch {
	case obs.Claimed == "" && obs.labelled(): // its labels are removed with it
		return k.Do(k.Steps.Claim).Then(progress)
	case vm.RevertOpen():
		return k.reverter.plan(vm, obs)
	}
	return k.End(progress)
}

// misnamed returns the outcome for a server that has another name than the spec.
func misnamed(vm *pcapi.VM, obs *observation, server cloud.Server) error {
	if ofAnother(vm, obs, server) {
		return foreign(server)
	}
	return reconciler.Stalled(pcapi.DriftReason, 0, fmt.Errorf(
		"the VM is named %q in the cloud, not %q, and cannot be renamed from here: rename it in the cloud", server.Name, wantedName(vm)))
}

// lacksLabels reports whether a server that the VM imported is to get its owner labels: it has none.
func lacksLabels(vm *pcapi.VM, obs *observation, server cloud.Server) bool {
	return vm.Spec.Import != nil && !obs.Owned && server.Labels[inventory.UIDLabel] == "" && !replaced(vm, obs, server)
}

// planChanges plans for a server that may be changed.
func (k *kind) planChanges(vm *pcapi.VM, obs *observation, update cloud.Update) plan {
	update = possible(vm, obs, update)
	p, whole := k.planRestart(vm, obs)
	refused, keeps := field.Unchangeable(vm, update, obs.Capabilities()), keepsSuspended(vm, obs, update)
	rest := cmp.Or(field.Drift(vm, *obs.Resource, obs.Capabilities()), asideDrift(vm, obs), obs.unclassed, obs.flavorRefused)
	_, aside := partAside(update)
	switch {
	case whole && refused != nil: // with such a change, the server could not be started again
		p = k.End(refused)
	case whole:
	case len(update) == 0:
		p.Outcome = rest
	case aside: // sent alone, whatever else is refused
		p.Steps, p.Outcome = append(p.Steps, k.vmSteps.update), rest
	case refused != nil:
		p.Outcome = refused
	case keeps != nil:
		p.Outcome = keeps
	default:
		p.Steps, p.Outcome = append(p.Steps, k.vmSteps.update), rest
	}
	return p
}

// PlanDeletion objects to the deletion of a server that is not proved to be the
// VM's, and releases VMs whose server stays.
func (k *kind) PlanDeletion(vm *pcapi.VM, obs *observation) (plan, bool) {
	keep := keeps(vm)
	labels, unrecorded := obs.Capabilities().Has(cloud.Labels), vm.Status.VMID == ""
	if doubt := doubtful(vm, obs); doubt != nil && !keep {
		return k.End(doubt), true
	}
	switch {
	case keep && (obs.CloudMissing || (obs.View.Client != nil && !labels)):
		return k.Do(k.Steps.Release), true
	case unrecorded && vm.Spec.Import == nil:
		return k.planRelease(obs), keep
	case keep && obs.Displaced != nil:
		return k.Do(k.Steps.Release), true
	case obs.Gone, obs.Resource == nil, !keep && unrecorded && len(obs.Duplicates) > 0:
		return plan{}, false
	case keep && obs.labelled():
		return k.Do(k.vmSteps.unlabel, k.Steps.Release), true
	case keep, obs.rival != nil, unrecorded && !accepted(vm, obs):
		return k.Do(k.Steps.Release), true
	}
	if objection := notProved(vm, obs); objection != nil {
		return k.End(objection), true
	}
	return plan{}, false
}

// doubtful returns why no server of an earlier create is deleted: nothing proves which one is the VM's.
// It returns nil otherwise.
func doubtful(vm *pcapi.VM, obs *observation) error {
	switch {
	case unprovable(vm, obs):
		return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf(
			"%w; only its name says on this cloud which server is this VM's, so none is deleted: ask the administrator of the Cloud to allow the namespace, or set spec.deletionPolicy to Orphan to release this object",
			obs.Denied))
	case vm.Status.VMID == "" && len(obs.contested) > 0:
		return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf(
			"VM %s may be this object's or that of another VM object that has its name or id: delete that object, or set spec.deletionPolicy to Orphan to release this one", obs.contested[0].ID))
	}
	return nil
}

// unprovable reports whether a claim in a namespace that may not use the Cloud is all that
// says which server is the VM's: there are neither labels nor a record, and anybody can write a
// claim.
func unprovable(vm *pcapi.VM, obs *observation) bool {
	return obs.Denied != nil && !obs.CloudMissing && vm.Status.VMID == "" && !obs.Capabilities().Has(cloud.Labels)
}

// notProved returns why a recorded server must not be deleted: its labels are not
// those of the VM or, on a cloud without labels, it has another name than it was
// recorded with and may be another server with the same id. It returns nil otherwise.
func notProved(vm *pcapi.VM, obs *observation) error {
	server, name := *obs.Resource, nameInCloud(vm)
	switch {
	case server.State == cloud.StateDeleting: // nothing is sent, and the cloud may have renamed it
		return nil
	case obs.altered && vm.Spec.Import == nil && !replaced(vm, obs, server):
		return labelsMissing(pcapi.BlockedReason, vm, server, "deleted")
	case !obs.Owned:
		return foreign(server)
	case obs.Capabilities().Has(cloud.Labels), cloud.AlikeNames(server.Name, name):
		return nil
	}
	return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf(
		"VM %s is named %q in the cloud, not %q, and nothing else proves on this cloud that it is this object's, so it is not deleted: "+
			"rename it in the cloud, or set spec.deletionPolicy to Orphan to release this object", server.ID, server.Name, name))
}

// planRelease releases a VM whose server, if a create made one, stays. The server is
// found first: with its labels it would be an orphan.
func (k *kind) planRelease(obs *observation) plan {
	switch {
	case obs.Proved():
		return k.Do(k.Steps.Adopt, k.vmSteps.unlabel, k.Steps.Release)
	case !obs.ShowsAbsence():
		return k.Do(k.Steps.Look)
	case obs.SettleTimeLeft > 0:
		return k.End(reconciler.Wait(obs.SettleTimeLeft, pcapi.RequestedReason,
			"the answer to the create was lost; waiting for the Cloud's settleTime to pass, to release the VM that it may have created"))
	}
	return k.Do(k.Steps.Release)
}

// accepted reports whether an import that is not on record may have taken the server
// over: only labels show that, and without them nothing was changed.
func accepted(vm *pcapi.VM, obs *observation) bool {
	return obs.Capabilities().Has(cloud.Labels) && obs.Owned && obs.Resource.Name == vm.Spec.VMName
}

// Adopted follows in the next reconcile a spec that was edited since its create.
func (k *kind) Adopted(vm *pcapi.VM, server cloud.Server) error {
	if err := k.Progress(server); err != nil {
		return err
	}
	if inventory.AlteredUID(server.Labels[inventory.UIDLabel], string(vm.UID)) {
		return labelsMissing(pcapi.LabelsMissingReason, vm, server, "changed or deleted")
	}
	if renamed(vm) || len(field.Difference(vm, server)) > 0 {
		return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s was found and is being brought in line with the spec", server.ID)
	}
	return nil
}
