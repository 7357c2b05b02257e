package vmconsolerequest

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observation is what one reconcile knows.
type observation struct {
	now time.Time
	vm  *pcapi.VM
	// cloud is the name of the Cloud of the VM.
	cloud string
	// client and caps are those of the cloud.
	client cloud.Client
	caps   cloud.Capabilities
	// notReady is why the console cannot be read; nil if it can.
	notReady error

	// console is the encrypted text, once it was read.
	console string
}

// Observe reads the VM and the inventory. It calls no cloud.
func (k *kind) Observe(ctx context.Context, r *pcapi.VMConsoleRequest) (*observation, error) {
	obs := &observation{now: k.clock()}
	if r.Status.ReadTime != nil {
		return obs, nil
	}
	obs.notReady = k.observe(ctx, r, obs)
	if obs.notReady != nil && reconciler.Reason(obs.notReady) == "" {
		return obs, obs.notReady
	}
	return obs, nil
}

// observe returns why the console cannot be read, or an error that ends the reconcile.
func (k *kind) observe(ctx context.Context, r *pcapi.VMConsoleRequest, obs *observation) (err error) {
	if err = console.Check(r.Spec.PublicKey); err != nil {
		return stalled(pcapi.RejectedReason, "%w", err)
	}
	if obs.vm, err = external.FindVM(ctx, k.client, r.Namespace, r.Spec.VMName); err != nil {
		return err
	}
	if obs.cloud, err = external.CloudOfVM(ctx, k.client, r.Namespace, obs.vm); err != nil {
		return controller.AwaitNamespace(err)
	}
	switch {
	case obs.vm == nil:
		return refusedLater(r, obs, "VM %q does not exist in this namespace", r.Spec.VMName)
	case obs.vm.Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly:
		return stalled(pcapi.VMNotReadyReason, "VM %q has managementPolicy ObserveOnly, so its console is not read", r.Spec.VMName)
	}
	_, err = tenancy.Open(ctx, k.client, r.Namespace, obs.cloud)
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		refused := controller.Inaccessible(r, obs.now, denied, "delete this VMConsoleRequest")
		controller.LogAccess(ctx, r, denied, refused.Error())
		return refused
	}
	if err != nil {
		return controller.AwaitNamespace(err)
	}
	inv := k.directory.Cloud(obs.cloud)
	view := inv.View()
	if err := controller.AwaitListing(view, inv.StartedAt(), obs.now); err != nil {
		return err
	}
	obs.client, obs.caps = view.Client, view.Capabilities
	server, listed := inv.Server(obs.vm.Status.VMID)
	switch {
	case view.Unavailable != "":
		return reconciler.Wait(untilRetry(r, obs.now), pcapi.CloudUnavailableReason, "waiting for Cloud %q: %s", obs.cloud, view.Unavailable)
	case !view.Capabilities.Has(cloud.Console):
		return stalled(pcapi.UnsupportedReason, "Cloud %q does not show the consoles of its servers: look at the console with the tools of that cloud", obs.cloud)
	case obs.vm.Status.VMID == "":
		return reconciler.Wait(untilRetry(r, obs.now), pcapi.VMNotReadyReason, "VM %q has no server yet: see its conditions", r.Spec.VMName)
	case !listed:
		return reconciler.Wait(untilRetry(r, obs.now), pcapi.VMNotReadyReason, "the cloud does not show the server of VM %q at the moment: see its conditions", r.Spec.VMName)
	case !controller.ProvedServer(obs.vm, server, view.Capabilities):
		return notProved(r, obs)
	}
	return nil
}

// notProved is the outcome for a VM of whose server nothing proves that it is the VM's: its console may be that of others.
func notProved(r *pcapi.VMConsoleRequest, obs *observation) error {
	return refusedLater(r, obs, "VM %q has a server without its owner labels or name, so its console is not read: see the conditions of the VM", r.Spec.VMName)
}

// refusedLater is the outcome for what is a refusal unless it passes within seconds, as while caches lag.
func refusedLater(r *pcapi.VMConsoleRequest, obs *observation, format string, args ...any) error {
	const passing = 3 * time.Second
	if obs.now.Sub(begun(r, obs.now)) < passing {
		return reconciler.Wait(time.Second, pcapi.VMNotReadyReason, format, args...)
	}
	return stalled(pcapi.VMNotReadyReason, format, args...)
}

// begun returns since when a request is refused or waits, now if it was not seen before. The time is of this clock, unlike the
// creation.
func begun(r *pcapi.VMConsoleRequest, now time.Time) time.Time {
	if ready := meta.FindStatusCondition(r.Status.Conditions, pcapi.ReadyCondition); ready != nil && ready.LastTransitionTime.Time.Before(now) {
		return ready.LastTransitionTime.Time
	}
	return now
}

// untilRetry returns when to try again what may pass: the longer it lasts, the later.
func untilRetry(r *pcapi.VMConsoleRequest, now time.Time) time.Duration {
	return min(max(now.Sub(begun(r, now))/2, time.Second), 30*time.Second)
}
