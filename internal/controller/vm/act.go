package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// quiet is how long an accepted deletion may take before the status tells of it.
const quiet = 30 * time.Second

// patience is how long after a start a VM waits for the first listing of its
// cloud before its status tells of the wait.
const patience = 5 * time.Second

// unattended are the steps that need no cloud.
var unattended = []string{stepClaim, stepUnclaim, stepAdopt, stepRelease}

// braking are the steps that the brake forbids. The name check is one: a claim
// proves a name free only if its create follows at once.
var braking = []string{stepCheckName, stepCreate, stepDelete, stepDeleteDuplicate, stepConfirmGone}

// Act takes one step.
func (k *kind) Act(ctx context.Context, vm *v1alpha1.VM, obs *scope, step string) error {
	if err := k.usable(vm, obs, step); err != nil {
		return err
	}
	switch step {
	case stepCheckName:
		return k.checkName(ctx, vm, obs)
	case stepClaim:
		return k.claim(ctx, vm, obs)
	case stepUnclaim:
		return k.unclaim(ctx, vm, obs)
	case stepLook:
		obs.inv.EnqueueAfterListing(refOf(vm), obs.horizon)
		return &reconciler.WaitError{After: safety, Reason: v1alpha1.OutcomeUnknownReason, Message: "looking in the cloud for the server of an earlier create", Quiet: true}
	case stepCreate:
		return k.create(ctx, vm, obs)
	case stepAdopt:
		return k.adopt(vm, obs)
	case stepLabel:
		return k.label(ctx, vm, obs, k.ownerLabels(vm))
	case stepUnlabel:
		return k.unlabel(ctx, vm, obs)
	case stepUpdate:
		return k.update(ctx, vm, obs)
	case stepDeleteDuplicate:
		return k.deleteDuplicate(ctx, vm, obs)
	case stepDelete:
		return k.remove(ctx, vm, obs)
	case stepConfirmGone:
		return k.confirmGone(ctx, vm, obs)
	case stepRelease:
		return k.release(ctx, vm, obs)
	default:
		return fmt.Errorf("no such step: %s", step)
	}
}

// usable holds a step back while the cloud is away or its brake is on.
func (k *kind) usable(vm *v1alpha1.VM, obs *scope, step string) error {
	switch {
	case slices.Contains(unattended, step):
		return nil
	case obs.view.Snapshot == nil && obs.now.Sub(obs.inv.StartedAt()) < patience:
		obs.inv.EnqueueWhenAvailable(refOf(vm), obs.view)
		return &reconciler.WaitError{After: patience, Reason: v1alpha1.CloudUnavailableReason, Message: "the cloud has not been listed yet", Quiet: true}
	case obs.view.Unavailable != "":
		return k.blocked(vm, obs, "waiting for Cloud %q: %s", obs.cloud, obs.view.Unavailable)
	case obs.view.Braked && slices.Contains(braking, step):
		obs.inv.EnqueueWhenAvailable(refOf(vm), obs.view)
		return reconciler.Blocked("Cloud/"+obs.cloud, v1alpha1.BrakedReason,
			"the brake of Cloud %q is on: nothing is created or deleted there until it is acknowledged; see its Braked condition", obs.cloud)
	}
	return nil
}

func (k *kind) checkName(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	err := obs.view.Client.CheckName(ctx, vm.Spec.VMName)
	switch {
	case err == nil:
		obs.checked = true
		return nil
	case cloud.Is(err, cloud.Prohibited, cloud.Taken):
		return k.refused(vm, obs, err)
	}
	return k.outcomeOf(vm, obs, err)
}

func (k *kind) refused(vm *v1alpha1.VM, obs *scope, err error) error {
	k.refusals.record(vm, obs.cloud, err)
	obs.nameErr = err
	return refusedName(err)
}

// claim stores the intent, and on it the name that was just found free: where
// names are unique, that is what later proves a server of this name ours.
func (k *kind) claim(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	annotations := map[string]string{ClaimedNameAnnotation: vm.Spec.VMName, ClaimedCloudAnnotation: obs.cloud}
	if err := reconciler.Claim(ctx, k.client, vm, Finalizer, annotations); err != nil {
		return err
	}
	obs.fresh = obs.fresh || obs.claimed == ""
	obs.claimed = vm.Spec.VMName
	return nil
}

func (k *kind) unclaim(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if err := reconciler.Release(ctx, k.client, vm, Finalizer, ClaimedNameAnnotation, ClaimedCloudAnnotation); err != nil {
		return err
	}
	obs.claimed = ""
	return nil
}

// adopt takes the server that was found as this VM's: the oldest, where one
// create made several.
func (k *kind) adopt(vm *v1alpha1.VM, obs *scope) error {
	if obs.server != nil {
		return nil
	}
	server := obs.candidates[0]
	k.backoff.Forget(vm.UID)
	obs.server, obs.owned, obs.how = &server, true, v1alpha1.AdoptedReason
	k.follow(vm, obs)
	if obs.proof == labelProof {
		obs.duplicates = obs.candidates[1:]
	}
	return nil
}

// follow has the next listing wake a VM whose id is not on record yet: news of a
// server find its VM by that, or by its labels.
func (k *kind) follow(vm *v1alpha1.VM, obs *scope) { obs.inv.EnqueueAfterListing(refOf(vm), k.clock()) }

// label merges labels into the server's; nil values remove.
func (k *kind) label(ctx context.Context, vm *v1alpha1.VM, obs *scope, set map[string]string) error {
	merge := map[string]*string{}
	for key, value := range set {
		merge[key] = &value
	}
	if err := k.patch(ctx, vm, obs, cloud.UpdateServer{Labels: merge}); err != nil {
		return err
	}
	obs.owned = true
	return nil
}

func (k *kind) unlabel(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if !obs.caps().Has(cloud.Labels) {
		return nil
	}
	merge := map[string]*string{}
	for key := range k.ownerLabels(vm) {
		merge[key] = nil
	}
	err := k.patch(ctx, vm, obs, cloud.UpdateServer{Labels: merge})
	if cloud.Is(err, cloud.NotFound) {
		return nil
	}
	return err
}

func (k *kind) update(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if err := k.patch(ctx, vm, obs, difference(vm, *obs.server)); err != nil {
		return err
	}
	return progress(*obs.server)
}

func (k *kind) patch(ctx context.Context, vm *v1alpha1.VM, obs *scope, change cloud.UpdateServer) error {
	id := obs.server.ID
	server, err := obs.view.Client.UpdateServer(ctx, id, change)
	if err != nil {
		return k.outcomeOf(vm, obs, err)
	}
	k.backoff.Forget(vm.UID)
	obs.inv.RecordServer(string(vm.UID), server)
	if server.CPUUtilization == nil {
		server.CPUUtilization = obs.server.CPUUtilization
	}
	obs.server = &server
	return nil
}

// deleteDuplicate removes one of several servers that carry this VM's labels.
func (k *kind) deleteDuplicate(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	extra := obs.duplicates[0]
	_, err := obs.view.Client.DeleteServer(ctx, extra.ID)
	if err != nil && !cloud.Is(err, cloud.NotFound) {
		return k.outcomeOf(vm, obs, err)
	}
	extra.State = cloud.StateDeleting
	obs.inv.RecordServer(string(vm.UID), extra)
	return reconciler.Wait(time.Second, v1alpha1.CreatingReason, "one create made several servers; VM %s is kept, VM %s is being deleted", obs.server.ID, extra.ID)
}

// remove asks for the server's deletion. Where the cloud takes its time over
// it, the inventory tells when the server is gone.
func (k *kind) remove(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	server := *obs.server
	gone, err := obs.view.Client.DeleteServer(ctx, server.ID)
	if err != nil && !cloud.Is(err, cloud.NotFound) {
		return k.outcomeOf(vm, obs, err)
	}
	k.backoff.Forget(vm.UID)
	server.State = cloud.StateDeleting
	obs.inv.RecordServer(string(vm.UID), server)
	obs.server = &server
	if err == nil && !gone {
		return &reconciler.WaitError{After: quiet, Reason: v1alpha1.RequestedReason, Message: "the cloud is deleting VM " + server.ID, Quiet: true}
	}
	return nil
}

// confirmGone has the cloud itself say that the server does not exist.
func (k *kind) confirmGone(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if obs.gone {
		return nil
	}
	id := knownID(vm)
	if obs.server != nil {
		id = obs.server.ID
	}
	server, err := obs.view.Client.GetServer(ctx, id)
	if cloud.Is(err, cloud.NotFound) {
		obs.gone = true
		return nil
	}
	if err != nil {
		return k.outcomeOf(vm, obs, err)
	}
	obs.inv.RecordServer(string(vm.UID), server)
	obs.server = &server
	return reconciler.Wait(time.Second, v1alpha1.RequestedReason, "the cloud is deleting VM %s", id)
}

// release lets the object go.
func (k *kind) release(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	err := k.unclaim(ctx, vm, obs)
	if err != nil && !errors.Is(err, reconciler.ErrUnknown) {
		return err
	}
	k.creates.Forget(vm.UID)
	k.backoff.Forget(vm.UID)
	if obs.gone && obs.server != nil {
		obs.inv.ForgetServer(obs.server.ID)
	}
	return err
}
