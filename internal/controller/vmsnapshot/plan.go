package vmsnapshot

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the steps that only VMSnapshots have.
const (
	stepRecordVM = "RecordVM"
	stepExpire   = "Expire"
)

// Repeatable: with a key, a second create makes no second snapshot.
func (k *kind) Repeatable(_ *pcapi.VMSnapshot, obs *observation) bool {
	return obs.Capabilities().Has(cloud.Idempotency)
}

// notReady returns why no snapshot of the VM, nil if there is none, can be created; nil if one
// can. Server is that of the VM, if listed.
func notReady(snap *pcapi.VMSnapshot, vm *pcapi.VM, server cloud.Server, listed bool, obs *observation) error {
	blocked := func(why string) error {
		return reconciler.Blocked("VM/"+snap.Spec.VMName, pcapi.VMNotReadyReason, "VM %q %s", snap.Spec.VMName, why)
	}
	if vm == nil {
		return blocked("does not exist in this namespace")
	}
	switch {
	case !vm.DeletionTimestamp.IsZero():
		return blocked("is being deleted")
	case vm.Status.VMID == "":
		return blocked("has no server yet")
	case snap.Status.VMID != "" && snap.Status.VMID != vm.Status.VMID:
		return reconciler.Stalled(pcapi.VMNotReadyReason, controller.RecheckRefused, fmt.Errorf(
			"this VMSnapshot is one of server %s, and VM %q has another now: delete this VMSnapshot and create another", snap.Status.VMID, snap.Spec.VMName))
	case vm.Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly:
		return blocked("has managementPolicy ObserveOnly, so nothing of it is changed in the cloud")
	case !listed && vm.Status.State == pcapi.VMStateLost:
		return reconciler.Stalled(pcapi.VMNotReadyReason, external.RecheckSoon, fmt.Errorf(
			"VM %q has lost its server: delete this VMSnapshot, or bring the server back in the cloud", snap.Spec.VMName))
	case !listed && obs.Available():
		return notShown(snap)
	case listed && !controller.ProvedServer(vm, server, obs.Capabilities()):
		return reconciler.Wait(external.RecheckSoon, pcapi.VMNotReadyReason, // no event of the VM reports labels
			"VM %q has a server without its owner labels or name, so nothing of it is changed in the cloud", snap.Spec.VMName)
	}
	return nil
}

// notShown is the outcome for a VMSnapshot of a server that the cloud does not show.
func notShown(snap *pcapi.VMSnapshot) error {
	return reconciler.Wait(external.RecheckSoon, pcapi.VMNotReadyReason, "the cloud does not show the server of VM %q at the moment", snap.Spec.VMName)
}

// Refused has the server looked for that a create did not find: the inventory is older.
func (k *kind) Refused(_ context.Context, snap *pcapi.VMSnapshot, _ *observation, err error) error {
	if cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven) {
		return notShown(snap)
	}
	return nil
}

// PlanCreate creates the snapshot once the VM has a server. The server is recorded
// first, so that the snapshot is looked for where its create was sent.
func (k *kind) PlanCreate(snap *pcapi.VMSnapshot, obs *observation) plan {
	const needs = reconciler.NeedsCloud | reconciler.NeedsBrakeOff | reconciler.Mutates
	switch {
	case obs.notReady != nil:
		return k.End(obs.notReady)
	case snap.Status.VMID == "":
		return k.Do(k.Step(stepRecordVM, needs, k.recordVM), k.Steps.FirstClaim, k.Steps.Create)
	case obs.Claimed == "":
		return k.Do(k.Steps.FirstClaim, k.Steps.Create)
	}
	return k.Do(k.Steps.Create)
}

// PlanExisting keeps a recorded snapshot until its maxAge is over.
func (k *kind) PlanExisting(snap *pcapi.VMSnapshot, obs *observation) plan {
	var p plan
	left, limited := timeLeft(snap, obs)
	switch {
	case !k.isNamed(snap, obs, *obs.Resource):
		p.Outcome = renamed(pcapi.DriftReason, obs, "kept")
	case len(obs.Duplicates) > 0:
		p.Steps = append(p.Steps, k.Steps.DeleteDuplicate)
	case limited && left <= 0 && !pcapi.Protected(snap):
		p.Steps = append(p.Steps, k.Step(stepExpire, reconciler.Mutates, k.expire))
	}
	return p
}

// PlanDeletion leaves the snapshot in the cloud if the policy says so, and does not
// delete one of another name.
func (k *kind) PlanDeletion(snap *pcapi.VMSnapshot, obs *observation) (plan, bool) {
	switch {
	case snap.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan:
		return k.Do(k.Steps.Release), true
	case obs.reverting:
		return k.End(reconciler.Wait(external.RecheckSoon, pcapi.RequestedReason,
			"VM %q is being reverted to this snapshot, which is deleted after that", snap.Spec.VMName)), true
	case obs.Resource != nil && !k.isNamed(snap, obs, *obs.Resource) && len(obs.Duplicates) == 0:
		return k.End(renamed(pcapi.BlockedReason, obs, "not deleted")), true
	}
	return plan{}, false
}

// renamed is the outcome for a snapshot whose name does not prove any more that it is
// the object's. The name itself may be that of another tenant's object.
func renamed(reason string, obs *observation, effect string) error {
	return reconciler.Stalled(reason, external.RecheckSoon, fmt.Errorf(
		"snapshot %s is not named %q in the cloud any more, so it is %s: rename it in the cloud, or set spec.deletionPolicy to Orphan to release this object", obs.Resource.ID, obs.name, effect))
}

// timeLeft returns how long the snapshot is kept; limited is false for as long as the
// object exists. The snapshot was taken after the object was created and before its id was
// recorded: a time of the cloud beyond these comes from a wrong clock.
func timeLeft(snap *pcapi.VMSnapshot, obs *observation) (left time.Duration, limited bool) {
	if snap.Spec.MaxAge == nil || obs.Resource == nil {
		return 0, false
	}
	since, recorded := obs.Resource.CreatedAt, obs.Now
	if snap.Status.CreatedTime != nil {
		recorded = snap.Status.CreatedTime.Time
	}
	if since.IsZero() || since.After(recorded) {
		since = recorded
	}
	since = external.Latest(since, snap.CreationTimestamp.Time)
	return since.Add(snap.Spec.MaxAge.Duration).Sub(obs.Now), true
}

// expire deletes the object, and with it the snapshot.
func (k *kind) expire(ctx context.Context, snap *pcapi.VMSnapshot, _ *observation) error {
	uid := snap.UID
	if err := client.IgnoreNotFound(k.Client.Delete(ctx, snap, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete VMSnapshot %s, whose maxAge is over: %w", client.ObjectKeyFromObject(snap), err)
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "maxAge %s is over: this VMSnapshot is being deleted", snap.Spec.MaxAge.Duration)
}
