package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/reconciler"
)

// changer changes the servers of VMs. Its steps return nil once the server is as the spec says.
type changer struct {
	*lifecycle

	servers  *servers
	refusals refusals
}

// label marks an imported server as the VM's.
func (c *changer) label(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	var labels cloud.Update
	for key, value := range c.servers.ownerLabels(vm) {
		labels = append(labels, cloud.SetLabel{Key: key, Value: value})
	}
	if err := c.patch(ctx, vm, obs, labels); err != nil {
		return err
	}
	if !obs.Owned {
		return c.NotApplied(vm, &obs.Observation, obs.Resource.ID)
	}
	c.Backoff.Forget(vm.UID)
	return nil
}

// unlabel removes the owner labels. A server that is released with them would count as
// an orphan, so an answer that it does not exist counts only once reads cannot lag
// behind its create.
func (c *changer) unlabel(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if !obs.Capabilities().Has(cloud.Labels) {
		return nil
	}
	var labels cloud.Update
	for key := range c.servers.ownerLabels(vm) {
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
		return c.ChangeFailed(vm, &obs.Observation, obs.Resource.ID, err)
	case result.Operation != "":
		return c.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	c.servers.remember(vm, obs, result.Server, false)
	if obs.labelled() {
		return c.NotApplied(vm, &obs.Observation, result.Server.ID)
	}
	return nil
}

// update changes what differs from the spec.
func (c *changer) update(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	whole, id := field.Difference(vm, *obs.Resource), obs.Resource.ID
	update := firstChange(vm, obs, whole)
	if update.PowersOff() {
		if asked, outcome := c.shutDown(ctx, vm, obs); asked {
			return cmp.Or(outcome, furtherChange(vm, obs))
		}
	}
	first := sizeFirst(whole) && update.Resizes()
	if obs.NeedsStop() && update.Resizes() && obs.Resource.State == cloud.StateActive {
		if first && !mayStop(vm, obs) {
			return c.withoutSize(vm, cloud.Public(obs.Fault))
		}
		return c.stopToChange(ctx, vm, obs, update, obs.Fault)
	}
	part, sentAlone := partAside(update)
	result, err := obs.View.Client.UpdateServer(ctx, id, update)
	err = explainFlavor(vm, err)
	switch {
	case first && cloud.Is(err, cloud.Rejected, cloud.Forbidden, cloud.Quota, cloud.NoHost, cloud.Unsupported, cloud.Misconfigured),
		first && cloud.Is(err, cloud.NeedsStop) && !mayStop(vm, obs):
		return c.withoutSize(vm, cloud.Public(err))
	case cloud.Is(err, cloud.NeedsStop) && obs.Resource.State == cloud.StateActive && update.Resizes():
		return c.stopToChange(ctx, vm, obs, update, err)
	case err != nil && sentAlone:
		return c.without(part, vm, obs, c.ChangeFailed(vm, &obs.Observation, id, err))
	case err != nil:
		return c.ChangeFailed(vm, &obs.Observation, id, explained(ctx, c.Client, vm, obs, err))
	}
	return c.updated(vm, obs, update, first, result)
}

// updated returns the outcome of an update that the cloud answered. first reports whether the power state
// changes after it.
func (c *changer) updated(vm *pcapi.VM, obs *observation, update cloud.Update, first bool, result cloud.Result) error {
	id := obs.Resource.ID
	repeated := c.Repeated(vm, &obs.Observation, fmt.Sprint(update))
	part, sentAlone := partAside(update)
	if result.Operation != "" {
		return c.updating(vm, obs, result.Operation, repeated)
	}
	shown := len(undone(vm, obs, update, result.Server)) == 0
	if !repeated || !shown {
		c.servers.remember(vm, obs, result.Server, false)
	}
	if err := c.Progress(result.Server); err != nil {
		return err
	}
	switch {
	case repeated && !shown && first:
		return c.withoutSize(vm, errIgnored)
	case (repeated || !shown) && sentAlone:
		return c.without(part, vm, obs, c.NotApplied(vm, &obs.Observation, id))
	case repeated || !shown:
		return c.NotApplied(vm, &obs.Observation, id)
	case first:
		return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s has its new size; its power state is changed next", id)
	}
	c.Backoff.Forget(vm.UID)
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
func (c *changer) withoutSize(vm *pcapi.VM, cause error) error {
	c.Tracker.Refuse(vm.UID, pending.Refusal{Generation: vm.Generation, Reason: cause.Error()})
	follows := "started"
	if vm.Spec.PowerState == pcapi.PowerSuspended {
		follows = "suspended"
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "%v; the VM is %s with its old size", cause, follows)
}

// updating waits for the operation of a change, longer each time if the change was
// made before and had no effect.
func (c *changer) updating(vm *pcapi.VM, obs *observation, operation string, repeated bool) error {
	outcome := c.Begin(vm, obs, external.OperationUpdate, operation)
	if wait, ok := errors.AsType[*reconciler.WaitError](outcome); ok && repeated {
		wait.After = max(wait.After, c.Backoff.When(vm.UID))
	}
	return outcome
}

// mayStop reports whether a server that runs may be stopped for a change of its size.
func mayStop(vm *pcapi.VM, obs *observation) bool {
	return obs.Resource.State == cloud.StateActive && obs.Capabilities().Has(cloud.Power) && vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed
}

// stopToChange stops a server for a change that needs it, if the spec allows that or
// asks for it anyway.
func (c *changer) stopToChange(ctx context.Context, vm *pcapi.VM, obs *observation, update cloud.Update, cause error) error {
	needs := func(format string, args ...any) error {
		return reconciler.Stalled(pcapi.NeedsRestartReason, controller.RecheckRefused, fmt.Errorf(format, args...))
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
	if err := c.stop(ctx, vm, obs); err != nil {
		return err
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "VM %s is stopped for a change of its size", obs.Resource.ID)
}

// patch sends an update and remembers the server that the cloud answers with.
func (c *changer) patch(ctx context.Context, vm *pcapi.VM, obs *observation, update cloud.Update) error {
	result, err := obs.View.Client.UpdateServer(ctx, obs.Resource.ID, update)
	if err != nil {
		return c.ChangeFailed(vm, &obs.Observation, obs.Resource.ID, err)
	}
	if result.Operation != "" {
		return c.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	c.servers.remember(vm, obs, result.Server, false)
	return nil
}
