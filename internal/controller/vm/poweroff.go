package vm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// powerOffTimeout is the default of spec.powerOffTimeout.
const powerOffTimeout = 5 * time.Minute

func powerOffMode(vm *pcapi.VM) pcapi.PowerOffMode {
	return cmp.Or(vm.Spec.PowerOffMode, pcapi.PowerOffModeTrySoft)
}

// powerOffAt returns when a server is powered off whose guest was asked to shut down.
func powerOffAt(vm *pcapi.VM) time.Time {
	return vm.Status.ShutdownRequestedTime.Add(ptr.Deref(vm.Spec.PowerOffTimeout, metav1.Duration{Duration: powerOffTimeout}).Duration)
}

// shutdownRequested returns when the guest was asked to shut down. It is nil if it was not,
// or if nobody has powered the server off for long after that: the operator was away, and
// the guest may have been started again since.
func shutdownRequested(vm *pcapi.VM, now time.Time) *metav1.Time {
	if since := vm.Status.ShutdownRequestedTime; since != nil && now.Sub(powerOffAt(vm)) < restartWindow {
		return since
	}
	return nil
}

// stopWanted reports whether a server that runs is to be stopped.
func stopWanted(vm *pcapi.VM, obs *observation) bool {
	update := obs.allowed(field.Difference(vm, *obs.Resource))
	return update.PowersOff() || restartOf(vm, obs.Now) == restartDue || update.Resizes() && vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed
}

// stop stops the server before a change of its size, or for a restart. It returns nil once
// the cloud has accepted that.
func (c *changer) stop(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if err := c.recordStop(ctx, vm); err != nil {
		return err
	}
	if asked, outcome := c.shutDown(ctx, vm, obs); asked {
		return outcome
	}
	id := obs.Resource.ID
	result, err := obs.View.Client.UpdateServer(ctx, id, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
	if err != nil {
		return c.ChangeFailed(vm, &obs.Observation, id, err)
	}
	repeated := c.Repeated(vm, &obs.Observation, "stop")
	if result.Operation != "" {
		return c.updating(vm, obs, result.Operation, repeated)
	}
	c.servers.remember(vm, obs, result.Server, false)
	if repeated && result.Server.State != cloud.StateStopped {
		return c.NotApplied(vm, &obs.Observation, id)
	}
	return nil
}

// asksGuest reports whether the guest is asked to shut down before the server is powered off.
func asksGuest(vm *pcapi.VM, caps cloud.Capabilities) bool {
	mode := powerOffMode(vm)
	return mode == pcapi.PowerOffModeSoft || mode == pcapi.PowerOffModeTrySoft && caps.Has(cloud.SoftPowerOff)
}

// shutDown has the guest shut down and returns the outcome, nil once the server is off.
// asked is false if the server is to be powered off instead.
func (c *changer) shutDown(ctx context.Context, vm *pcapi.VM, obs *observation) (asked bool, outcome error) {
	since, id := shutdownRequested(vm, obs.Now), obs.Resource.ID
	try := powerOffMode(vm) == pcapi.PowerOffModeTrySoft
	switch {
	case !asksGuest(vm, obs.Capabilities()):
		return false, nil
	case since == nil:
		return c.requestShutdown(ctx, vm, obs)
	case try && !obs.Now.Before(powerOffAt(vm)):
		log.FromContext(ctx).Info("powering the VM off, because its guest did not shut down", "server", id, "requestedTime", since)
		return false, nil
	case c.Tracker.AcceptedShutdown(vm.UID).Equal(since.Time):
		return true, shuttingDown(vm, obs)
	}
	err := c.askGuest(ctx, vm, obs)
	if cloud.Is(err, cloud.GuestUnavailable) { // it was asked before, and may be shutting down
		c.Tracker.AcceptShutdown(vm.UID, since.Time)
		return true, shuttingDown(vm, obs)
	}
	return true, err
}

// requestShutdown asks the guest for the first time. The time is stored before: a guest that
// is shutting down must not be powered off because it cannot be asked again.
func (c *changer) requestShutdown(ctx context.Context, vm *pcapi.VM, obs *observation) (asked bool, outcome error) {
	now := reconciler.StatusTime(c.Clock())
	err := reconciler.WriteStatus(ctx, c.Client, vm, func() { vm.Status.ShutdownRequestedTime = &now })
	if err != nil {
		return true, err
	}
	err = c.askGuest(ctx, vm, obs)
	if !cloud.Is(err, cloud.GuestUnavailable) {
		return true, err
	}
	vm.Status.ShutdownRequestedTime = nil
	if powerOffMode(vm) == pcapi.PowerOffModeTrySoft {
		log.FromContext(ctx).Info("powering the VM off, because its guest cannot be asked to shut down", "server", obs.Resource.ID, "error", err.Error())
		return false, nil
	}
	return true, reconciler.Stalled(pcapi.GuestUnavailableReason, external.RecheckSoon, fmt.Errorf(
		"%w: shut the VM down from within, or set spec.powerOffMode to TrySoft or Hard", cloud.Public(err)))
}

// askGuest asks the guest to shut down, as status.shutdownRequestedTime says. It returns the
// outcome, or the error of the cloud if the guest cannot be asked.
func (c *changer) askGuest(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	id := obs.Resource.ID
	result, err := obs.View.Client.UpdateServer(ctx, id, cloud.Update{cloud.SetPower{State: cloud.PowerOff, Soft: true}})
	switch {
	case cloud.Is(err, cloud.GuestUnavailable):
		return err
	case err != nil:
		return c.ChangeFailed(vm, &obs.Observation, id, err)
	}
	c.Tracker.AcceptShutdown(vm.UID, vm.Status.ShutdownRequestedTime.Time)
	log.FromContext(ctx).Info("asked the guest to shut down", "server", id)
	if result.Operation != "" {
		return c.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	c.servers.remember(vm, obs, result.Server, false)
	if result.Server.State == cloud.StateStopped {
		return nil
	}
	return shuttingDown(vm, obs)
}

// shuttingDown waits for the guest. The inventory enqueues the VM when its server is off.
func shuttingDown(vm *pcapi.VM, obs *observation) error {
	id, since := obs.Resource.ID, vm.Status.ShutdownRequestedTime.UTC().Format(time.RFC3339)
	if powerOffMode(vm) == pcapi.PowerOffModeSoft {
		return reconciler.Wait(external.Safety, pcapi.ShuttingDownReason,
			"the guest of VM %s was asked to shut down at %s and still runs; spec.powerOffMode is Soft, so the VM is not powered off", id, since)
	}
	at := powerOffAt(vm)
	return reconciler.Wait(max(at.Sub(obs.Now), time.Second), pcapi.ShuttingDownReason,
		"the guest of VM %s was asked to shut down at %s and still runs; the VM is powered off at %s", id, since, at.UTC().Format(time.RFC3339))
}
