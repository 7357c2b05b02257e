package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the steps that only VMs have.
const (
	stepCheckName     = "CheckName"
	stepConfirmName   = "ConfirmName"
	stepConfirmImport = "ConfirmImport"
	stepLabel         = "Label"
	stepUnlabel       = "Unlabel"
	stepUpdate        = "Update"
)

type step = reconciler.Step[*pcapi.VM, *observation]

// stepCheckName asks the cloud for the name. It is not run while the brake is
// on: a claim proves that a name is free only if the create follows at once.
func (k *kind) stepCheckName() step {
	return k.Step(stepCheckName, reconciler.NeedsCloud|reconciler.NeedsBrakeOff, k.checkName)
}

// ConfirmNothing asks the cloud for the claimed name, where names are unique, unless every create
// was clearly refused: the cloud may have given the server another name, or other labels.
func (k *kind) ConfirmNothing(vm *pcapi.VM, obs *observation) []step {
	sent := !k.Tracker.UnknownSince(vm.UID, time.Time{}).IsZero() // by this process, whatever the status says
	unsent := !claimStored(obs) || unchecked(vm, obs) && !sent || k.Tracker.UnknownSince(vm.UID, obs.ClaimedAt).IsZero()
	if unsent || refusedEarlier(vm, obs) || obs.rival != nil || !obs.Capabilities().Has(cloud.UniqueNames) {
		return nil
	}
	return []step{k.Step(stepConfirmName, reconciler.NeedsCloud, k.confirmName)}
}

// refusedEarlier reports whether the status says that every create was clearly refused, as an earlier
// process wrote. It does not say so where a create is repeated while the outcome of the one before is
// unknown, where only names lead to what another manager creates, or of a spec that the cloud cannot have.
func refusedEarlier(vm *pcapi.VM, obs *observation) bool {
	caps := obs.Capabilities()
	return caps.Has(cloud.Labels) && !caps.Has(cloud.Idempotency) && field.Unsupported(vm, caps) == nil && external.CreateRefused(vm.Status.Conditions)
}

// confirmName fails if the claimed name is taken and no server shows by whom.
func (k *kind) confirmName(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	err := obs.View.Client.CheckName(ctx, cloud.Name{Name: obs.Claimed, Folder: vm.Spec.Folder})
	switch {
	case err == nil, cloud.Is(err, cloud.Prohibited), cloud.Is(err, cloud.Taken) && takenByAnother(vm, obs):
		return nil
	case !cloud.Is(err, cloud.Taken):
		return k.Failed(vm, &obs.Observation, err)
	}
	err = unprovedName(vm, obs, err)
	if vm.DeletionTimestamp.IsZero() {
		return ambiguous(err)
	}
	return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf("%w, or set spec.deletionPolicy to Orphan to release this object", err))
}

// stepLabel marks an imported server as the VM's, and stepUnlabel removes the marks.
func (k *kind) stepLabel() step {
	return k.Step(stepLabel, reconciler.NeedsCloud|reconciler.Mutates, k.label)
}

func (k *kind) stepUnlabel() step {
	return k.Step(stepUnlabel, reconciler.NeedsCloud|reconciler.Mutates, k.unlabel)
}

// stepUpdate changes what differs from the spec.
func (k *kind) stepUpdate() step {
	return k.Step(stepUpdate, reconciler.NeedsCloud|reconciler.Mutates, k.update)
}

func (k *kind) checkName(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	err := obs.View.Client.CheckName(ctx, nameOf(vm))
	if err == nil {
		obs.checked = true
		return nil
	}
	if cloud.Is(err, cloud.Taken) && obs.Claimed == vm.Spec.VMName {
		// By the create of another manager, perhaps: the VM may have been created with its claim.
		switch {
		case !obs.Looked:
			return k.Steps.Look.Run(ctx, vm, obs)
		case obs.SettleTimeLeft > 0 && unlisted(vm, obs):
			return reconciler.Wait(obs.SettleTimeLeft, pcapi.OutcomeUnknownReason,
				"%v; an earlier create of this VM may have taken it: its server is looked for until the Cloud's settleTime has passed", cloud.Public(err))
		case k.madeWithoutLabels(vm, obs), nameDoubted(vm, obs) && unlisted(vm, obs):
			obs.nameErr = err
			return ambiguous(unprovedName(vm, obs, err))
		}
	}
	if outcome := k.Refused(ctx, vm, obs, err); outcome != nil {
		return outcome
	}
	return k.Failed(vm, &obs.Observation, err)
}

// Refused remembers a refused name.
func (k *kind) Refused(ctx context.Context, vm *pcapi.VM, obs *observation, err error) error {
	if !cloud.Is(err, cloud.Prohibited, cloud.Taken) {
		return nil
	}
	k.refusals.record(vm, obs.Cloud, obs.Now, err)
	obs.nameErr = err
	if err := k.observer.observeHolders(ctx, vm, obs); err != nil {
		return err
	}
	return refusedName(obs, cloud.Public(err))
}

// KeepsClaim: with labels, the claim of a create that had no effect does no harm.
func (k *kind) KeepsClaim(obs *observation, _ error) bool {
	return obs.Capabilities().Has(cloud.Labels)
}

// Unclear explains refusals that an earlier create of this VM may have caused.
func (k *kind) Unclear(vm *pcapi.VM, obs *observation, err error) error {
	caps := obs.Capabilities()
	labels := caps.Has(cloud.Labels)
	// Only the key says which VM owns the server, and one that it may own exists.
	byKey := caps.Has(cloud.Idempotency) && !labels && len(obs.Candidates) > 0
	switch {
	case cloud.Is(err, cloud.Taken):
		return k.unclearName(vm, obs, err)
	case cloud.Is(err, cloud.KeyReused) && !labels && !nameProves(caps):
		return ambiguous(fmt.Errorf("%w: the spec was edited after a create whose answer was lost, and only the key leads to its server: "+
			"set the spec back to what it was or, if the Cloud allows imports, spec.import.vmId to the VM that was created", cloud.Public(err)))
	case cloud.Is(err, cloud.KeyReused), cloud.Is(err, cloud.Busy) && byKey:
		return err
	case cloud.Is(err, cloud.Rejected, cloud.Conflict) && byKey:
		return ambiguous(fmt.Errorf("%w; a server of this name exists, and an earlier create with this VM's key may have created it: "+
			"set the spec back to what it was or, if the Cloud allows imports, spec.import.vmId to that VM", cloud.Public(err)))
	}
	return nil
}

func (k *kind) label(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	var labels cloud.Update
	for key, value := range k.servers.ownerLabels(vm) {
		labels = append(labels, cloud.SetLabel{Key: key, Value: value})
	}
	if err := k.patch(ctx, vm, obs, labels); err != nil {
		return err
	}
	if !obs.Owned {
		return k.NotApplied(vm, &obs.Observation, obs.Resource.ID)
	}
	k.Backoff.Forget(vm.UID)
	return nil
}

// unlabel removes the owner labels. A server that is released with them would count as
// an orphan, so an answer that it does not exist counts only once reads cannot lag
// behind its create.
func (k *kind) unlabel(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if !obs.Capabilities().Has(cloud.Labels) {
		return nil
	}
	var labels cloud.Update
	for key := range k.servers.ownerLabels(vm) {
		labels = append(labels, cloud.RemoveLabel(key))
	}
	if _, tagged := obs.Resource.Labels[inventory.TagsLabel]; tagged {
		labels = append(labels, cloud.RemoveLabel(inventory.TagsLabel))
	}
	result, err := obs.View.Client.UpdateServer(ctx, obs.Resource.ID, labels)
	switch {
	case cloud.Is(err, cloud.NotFound) && obs.SettleTimeLeft == 0:
		return nil
	case err != nil:
		return k.ChangeFailed(vm, &obs.Observation, obs.Resource.ID, err)
	case result.Operation != "":
		return k.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	k.servers.remember(vm, obs, result.Server, false)
	if obs.labelled() {
		return k.NotApplied(vm, &obs.Observation, result.Server.ID)
	}
	return nil
}

// update changes what differs from the spec.
func (k *kind) update(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	whole, id := field.Difference(vm, *obs.Resource), obs.Resource.ID
	update := firstChange(vm, obs, whole)
	if update.PowersOff() {
		if asked, outcome := k.shutDown(ctx, vm, obs); asked {
			return cmp.Or(outcome, furtherChange(vm, obs))
		}
	}
	first := sizeFirst(whole) && update.Resizes()
	if obs.NeedsStop() && update.Resizes() && obs.Resource.State == cloud.StateActive {
		if first && !mayStop(vm, obs) {
			return k.withoutSize(vm, cloud.Public(obs.Fault))
		}
		return k.stopToChange(ctx, vm, obs, update, obs.Fault)
	}
	result, err := obs.View.Client.UpdateServer(ctx, id, update)
	err = explainFlavor(vm, err)
	switch {
	case first && cloud.Is(err, cloud.Rejected, cloud.Forbidden, cloud.Quota, cloud.NoHost, cloud.Unsupported, cloud.Misconfigured),
		first && cloud.Is(err, cloud.NeedsStop) && !mayStop(vm, obs):
		return k.withoutSize(vm, cloud.Public(err))
	case cloud.Is(err, cloud.NeedsStop) && obs.Resource.State == cloud.StateActive:
		return k.stopToChange(ctx, vm, obs, update, err)
	case err != nil && update.Has(cloud.LabelPart):
		return k.withoutTags(vm, obs, k.ChangeFailed(vm, &obs.Observation, id, err))
	case err != nil:
		return k.ChangeFailed(vm, &obs.Observation, id, explained(ctx, k.Client, vm, obs, err))
	}
	return k.updated(vm, obs, update, first, result)
}

// updated returns the outcome of an update that the cloud answered. first reports whether the power state
// changes after it.
func (k *kind) updated(vm *pcapi.VM, obs *observation, update cloud.Update, first bool, result cloud.Result) error {
	id := obs.Resource.ID
	repeated := k.Repeated(vm, &obs.Observation, fmt.Sprint(update))
	if result.Operation != "" {
		return k.updating(vm, obs, result.Operation, repeated)
	}
	shown := len(undone(vm, obs, update, result.Server)) == 0
	if !repeated || !shown {
		k.servers.remember(vm, obs, result.Server, false)
	}
	if err := k.Progress(result.Server); err != nil {
		return err
	}
	switch {
	case repeated && !shown && first:
		return k.withoutSize(vm, errIgnored)
	case (repeated || !shown) && update.Has(cloud.LabelPart):
		return k.withoutTags(vm, obs, k.NotApplied(vm, &obs.Observation, id))
	case repeated || !shown:
		return k.NotApplied(vm, &obs.Observation, id)
	case first:
		return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s has its new size; its power state is changed next", id)
	}
	k.Backoff.Forget(vm.UID)
	return furtherChange(vm, obs)
}

// furtherChange returns the outcome of a change after which others follow; nil if none do.
func furtherChange(vm *pcapi.VM, obs *observation) error {
	if len(possible(vm, obs, field.Difference(vm, *obs.Resource))) == 0 {
		return nil
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s is changed further", obs.Resource.ID)
}

// errIgnored is why a size is not tried again that the cloud accepted and did not set.
var errIgnored = errors.New("the cloud accepts the new size and does not set it")

// withoutSize records that the cloud refused the size, so that the server is started or
// suspended with its old one.
func (k *kind) withoutSize(vm *pcapi.VM, cause error) error {
	k.Tracker.Refuse(vm.UID, pending.Refusal{Generation: vm.Generation, Reason: cause.Error()})
	follows := "started"
	if vm.Spec.PowerState == pcapi.PowerSuspended {
		follows = "suspended"
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "%v; the VM is %s with its old size", cause, follows)
}

// updating waits for the operation of a change, longer each time if the change was
// made before and had no effect.
func (k *kind) updating(vm *pcapi.VM, obs *observation, operation string, repeated bool) error {
	outcome := k.Begin(vm, obs, external.OperationUpdate, operation)
	if wait, ok := errors.AsType[*reconciler.WaitError](outcome); ok && repeated {
		wait.After = max(wait.After, k.Backoff.When(vm.UID))
	}
	return outcome
}

// mayStop reports whether a server that runs may be stopped for a change of its size.
func mayStop(vm *pcapi.VM, obs *observation) bool {
	return obs.Resource.State == cloud.StateActive && obs.Capabilities().Has(cloud.Power) && vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed
}

// stopToChange stops a server for a change that needs it, if the spec allows that or
// asks for it anyway.
func (k *kind) stopToChange(ctx context.Context, vm *pcapi.VM, obs *observation, update cloud.Update, cause error) error {
	needs := func(format string, args ...any) error {
		return reconciler.Stalled(pcapi.NeedsRestartReason, external.RecheckRefused, fmt.Errorf(format, args...))
	}
	switch {
	case !obs.Capabilities().Has(cloud.Power):
		return needs("%w; stop the VM in the cloud: this cloud cannot be asked to", cloud.Public(cause))
	case update.PowersOff():
	case vm.Spec.UpdatePolicy != pcapi.UpdatePolicyRestartAllowed:
		return needs("%w; stop the VM, or set spec.updatePolicy to RestartAllowed", cloud.Public(cause))
	case obs.refusal != "":
		return needs("%w; while the VM was stopped for it, the cloud refused the change: %s; edit the size in the spec", cloud.Public(cause), obs.refusal)
	}
	if err := k.stop(ctx, vm, obs); err != nil {
		return err
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s is stopped for a change of its size", obs.Resource.ID)
}

func (k *kind) patch(ctx context.Context, vm *pcapi.VM, obs *observation, update cloud.Update) error {
	result, err := obs.View.Client.UpdateServer(ctx, obs.Resource.ID, update)
	if err != nil {
		return k.ChangeFailed(vm, &obs.Observation, obs.Resource.ID, err)
	}
	if result.Operation != "" {
		return k.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	k.servers.remember(vm, obs, result.Server, false)
	return nil
}
