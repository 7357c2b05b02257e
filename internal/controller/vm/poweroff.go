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
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// powerOffTimeout is the default of spec.powerOffTimeout.
const powerOffTimeout = 5 * time.Minute

func powerOffMode(vm *pcapi.VM) pcapi.PowerOffMode {
	return cmp.Or(vm.Spec.PowerOffMode, pcapi.PowerOffModeTrySoft)
}

// powersOff reports whether a change is to stop the server.
func powersOff(change cloud.UpdateServer) bool {
	return change.PowerState != nil && *change.PowerState == cloud.PowerOff
}

// powerOffAt returns when a server is powered off whose guest was asked to shut down.
func powerOffAt(vm *pcapi.VM) time.Time {
	return vm.Status.ShutdownRequestedTime.Add(ptr.Deref(vm.Spec.PowerOffTimeout, metav1.Duration{Duration: powerOffTimeout}).Duration)
}

// stop stops the server before a change of its size, or for a restart. It returns nil once
// the cloud has accepted that.
func (k *kind) stop(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if asked, outcome := k.shutDown(ctx, vm, obs); asked {
		return outcome
	}
	repeated := k.Repeated(vm, &obs.Observation, "stop")
	if err := k.patch(ctx, vm, obs, cloud.UpdateServer{PowerState: new(cloud.PowerOff)}); err != nil {
		return err
	}
	if repeated && obs.Resource.State != cloud.StateStopped {
		return k.NotApplied(vm, &obs.Observation, obs.Resource.ID)
	}
	return nil
}

// shutDown asks the guest to shut down and returns the outcome, nil once the server is
// off. asked is false if the server is to be powered off instead.
func (k *kind) shutDown(ctx context.Context, vm *pcapi.VM, obs *observation) (asked bool, outcome error) {
	mode, since, id := powerOffMode(vm), vm.Status.ShutdownRequestedTime, obs.Resource.ID
	try := mode == pcapi.PowerOffModeTrySoft
	switch {
	case mode == pcapi.PowerOffModeHard, try && !obs.Capabilities().Has(cloud.SoftPowerOff):
		return false, nil
	case since != nil && try && !obs.Now.Before(powerOffAt(vm)):
		log.FromContext(ctx).Info("powering the VM off, because its guest did not shut down", "server", id, "requestedTime", since)
		return false, nil
	case since != nil:
		return true, shuttingDown(vm, obs)
	}
	result, err := obs.View.Client.UpdateServer(ctx, id, cloud.UpdateServer{PowerState: new(cloud.PowerOff), Soft: true})
	switch {
	case try && cloud.Is(err, cloud.GuestUnavailable):
		log.FromContext(ctx).Info("powering the VM off, because its guest cannot be asked to shut down", "server", id, "error", err.Error())
		return false, nil
	case cloud.Is(err, cloud.GuestUnavailable):
		return true, reconciler.Stalled(pcapi.GuestUnavailableReason, external.RecheckSoon, fmt.Errorf(
			"%w: shut the VM down from within, or set spec.powerOffMode to TrySoft or Hard", cloud.Public(err)))
	case err != nil:
		return true, k.ChangeFailed(vm, &obs.Observation, id, err)
	}
	vm.Status.ShutdownRequestedTime = new(metav1.NewTime(k.Clock()))
	log.FromContext(ctx).Info("asked the guest to shut down", "server", id)
	if result.Operation != "" {
		return true, k.Begin(vm, obs, external.OperationUpdate, result.Operation)
	}
	k.Remember(vm, obs, result.Server, false)
	if result.Server.State == cloud.StateStopped {
		return true, nil
	}
	return true, shuttingDown(vm, obs)
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
