package vm

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/reconciler"
)

// restartWindow is how long after its time a restart may begin.
const restartWindow = time.Hour

const (
	stepRestart       = "Restart"
	stepRecordRestart = "RecordRestart"
)

// restart is what spec.nextRestartTime asks for at the moment.
type restart int

const (
	noRestart restart = iota
	restartScheduled
	// restartDue: the server is to be stopped. It has been restarted once it was off, which
	// is recorded before it is started: a manager that starts anew stops it no second time.
	restartDue
	restartMissed
)

func restartOf(vm *pcapi.VM, now time.Time) restart {
	if vm.Spec.NextRestartTime == nil {
		return noRestart
	}
	at, stored := vm.Spec.NextRestartTime.Time, reconciler.StatusTime(vm.Spec.NextRestartTime.Time)
	last, created, asked := vm.Status.LastRestart, vm.Status.CreatedTime, shutdownRequested(vm, now)
	switch {
	case last != nil && !last.RequestedTime.Before(&stored), created != nil && stored.Before(created):
		return noRestart
	case now.Before(at):
		return restartScheduled
	case !vm.Spec.PowerState.Runs():
		return restartMissed
	case now.Sub(at) < restartWindow, asked != nil && !asked.Before(&stored):
		return restartDue
	}
	return restartMissed
}

// planRestart plans for a restart; whole is false if the rest of the plan holds, too.
func (k *kind) planRestart(vm *pcapi.VM, obs *observation) (p plan, whole bool) {
	due, server := restartOf(vm, obs.Now), obs.Resource
	switch {
	case due == restartMissed, due == restartDue && field.PowerOf(vm) == pcapi.PowerUnmanaged && server.State != cloud.StateActive: // it is not started
		return k.Do(k.stepRecordRestart(pcapi.VMRestartMissed)), false
	case due != restartDue, server.State == cloud.StateSuspended: // it is resumed first
		return plan{}, false
	case server.State == cloud.StateStopped:
		return k.Do(k.stepRecordRestart(pcapi.VMRestarted)), false
	case !obs.Capabilities().Has(cloud.Power):
		return k.End(field.Lacks("nextRestartTime")), true
	case field.LacksSoft(vm, obs.Capabilities()):
		return k.End(field.Lacks("powerOffMode")), true
	}
	stop := k.Step(stepRestart, reconciler.NeedsCloud|reconciler.Mutates, k.changer.stop)
	return k.Do(stop).Then(reconciler.Wait(time.Second, pcapi.ProgressingReason,
		"VM %s is stopped for the restart of %s", server.ID, vm.Spec.NextRestartTime.UTC().Format(time.RFC3339))), true
}

// stepRecordRestart stores what became of the restart.
func (k *kind) stepRecordRestart(result pcapi.VMRestartResult) step {
	return k.Step(stepRecordRestart, reconciler.Mutates, func(ctx context.Context, vm *pcapi.VM, _ *observation) error {
		at := reconciler.StatusTime(vm.Spec.NextRestartTime.Time)
		err := reconciler.WriteStatus(ctx, k.Client, vm, func() {
			vm.Status.LastRestart = &pcapi.VMRestartStatus{RequestedTime: at, Result: result}
		})
		if err != nil {
			return err
		}
		log.FromContext(ctx).Info("restart handled", "requestedTime", at.UTC().Format(time.RFC3339), "result", result)
		if result == pcapi.VMRestartMissed {
			k.recorder.Eventf(vm, nil, corev1.EventTypeWarning, pcapi.RestartMissedReason, stepRestart,
				"the restart of %s was missed: it had not begun an hour later, or the VM was off or suspended; set spec.nextRestartTime to another time", at.UTC().Format(time.RFC3339))
		}
		return nil
	})
}

// restartIn returns the time until the next restart, 0 if none is scheduled.
func restartIn(vm *pcapi.VM, now time.Time) time.Duration {
	if restartOf(vm, now) != restartScheduled {
		return 0
	}
	return vm.Spec.NextRestartTime.Sub(now)
}
