package vm

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	stepRevert      = "Revert"
	stepAwaitRevert = "AwaitRevert"
	stepResume      = "Resume"

	// revertKeys is how long a cloud certainly knows the idempotency key of a revert.
	revertKeys = time.Hour
	// revertLook and revertLooks bound the time between two looks at a revert.
	revertLook  = time.Second
	revertLooks = 30 * time.Second
	// maxRevertMessage bounds the message of a failed revert, in bytes.
	maxRevertMessage = 1024
)

// revertWanted reports whether spec.currentSnapshotName asks for a revert that was not
// requested yet. One that ended is not repeated, also if the VMSnapshot is created anew.
func revertWanted(vm *pcapi.VM) bool {
	r, name := vm.Status.Revert, vm.Spec.CurrentSnapshotName
	return name != "" && !vm.RevertOpen() && (r == nil || r.SnapshotName != name)
}

// observeRevert reads the VMSnapshot that the VM is to be reverted to.
func (o *observer) observeRevert(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	name := vm.Spec.CurrentSnapshotName
	if !revertWanted(vm) || !vm.DeletionTimestamp.IsZero() || observeOnly(vm) {
		return nil
	}
	var snap pcapi.VMSnapshot
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: name}, &snap, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read VMSnapshot %q: %w", name, err)
	}
	if obs.unreverted = unrevertable(vm, &snap, apierrors.IsNotFound(err)); obs.unreverted == nil {
		obs.snapshot = &snap
	}
	return nil
}

// unrevertable returns why the VM cannot be reverted to a VMSnapshot; nil if it can.
func unrevertable(vm *pcapi.VM, snap *pcapi.VMSnapshot, missing bool) error {
	blocked := func(format string, args ...any) error {
		return reconciler.Blocked("VMSnapshot/"+vm.Spec.CurrentSnapshotName, pcapi.SnapshotUnavailableReason,
			"VMSnapshot %q %s; the VM is not reverted", vm.Spec.CurrentSnapshotName, fmt.Sprintf(format, args...))
	}
	const another = "name another in spec.currentSnapshotName, or clear it"
	created := meta.FindStatusCondition(snap.Status.Conditions, pcapi.CreatedCondition)
	switch {
	case missing:
		return blocked("does not exist in this namespace: %s", another)
	case snap.Spec.VMName != vm.Name:
		return blocked("is one of VM %q: %s", snap.Spec.VMName, another)
	case !snap.DeletionTimestamp.IsZero():
		return blocked("is being deleted: %s", another)
	case created != nil && created.Reason == pcapi.LostReason:
		return blocked("has lost its snapshot: %s", another)
	case snap.Status.SnapshotID == "" || created == nil || created.Status != metav1.ConditionTrue:
		return blocked("has no snapshot yet")
	case snap.Status.VMID != vm.Status.VMID || snap.Status.Cloud != vm.Status.Cloud:
		return blocked("is one of the server %s, which is not that of this VM: %s", snap.Status.VMID, another)
	}
	return nil
}

// reverter reverts the servers of VMs to VMSnapshots.
type reverter struct {
	*lifecycle

	servers  *servers
	changer  *changer
	recorder events.EventRecorder
}

// plan plans for a revert. The plan has steps if nothing else may be sent to the server;
// else its outcome holds once the server is as the spec says.
func (rev *reverter) plan(vm *pcapi.VM, obs *observation) plan {
	r, caps := vm.Status.Revert, obs.Capabilities()
	const sends = reconciler.NeedsCloud | reconciler.NeedsBrakeOff | reconciler.Mutates
	switch {
	case vm.RevertOpen() && r.Operation != "":
		return rev.Do(rev.Step(stepAwaitRevert, reconciler.NeedsCloud, rev.awaitRevert))
	case vm.RevertOpen():
		return rev.Do(rev.Step(stepRevert, sends, rev.revertAgain))
	case r != nil && r.Phase == pcapi.VMRevertFailed && r.SnapshotName == vm.Spec.CurrentSnapshotName:
		return rev.End(reconciler.Stalled(pcapi.RevertFailedReason, 0, fmt.Errorf(
			"the revert to VMSnapshot %q failed: %s; to try again, clear spec.currentSnapshotName and set it again", r.SnapshotName, r.Message)))
	case !revertWanted(vm):
		return plan{}
	case obs.unreverted != nil:
		return rev.End(obs.unreverted)
	case obs.snapshot == nil, !obs.Available():
		return plan{}
	case !caps.Has(cloud.Revert):
		return rev.End(field.Lacks("currentSnapshotName"))
	case obs.Resource.State == cloud.StateSuspended && caps.Has(cloud.Power):
		return rev.Do(rev.Step(stepResume, sends, rev.resume))
	}
	return rev.Do(rev.Step(stepRevert, sends, rev.revert))
}

// resume resumes a server that is to be reverted: not each cloud reverts one that is suspended.
func (rev *reverter) resume(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	id := obs.Resource.ID
	if err := rev.changer.patch(ctx, vm, obs, cloud.Update{cloud.SetPower{State: cloud.PowerOn}}); err != nil {
		return err
	}
	if obs.Resource.State == cloud.StateSuspended {
		return rev.NotApplied(vm, &obs.Observation, id)
	}
	return reconciler.Wait(revertLook, pcapi.ProgressingReason, "VM %s is resumed before it is reverted", id)
}

// revert records the revert and requests it. In between, it may have been sent: only this
// step sends it without asking the cloud for that.
func (rev *reverter) revert(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	snap := obs.snapshot
	err := reconciler.WriteStatus(ctx, rev.Client, vm, func() {
		vm.Status.Revert = &pcapi.VMRevertStatus{
			Phase: pcapi.VMRevertRequested, SnapshotName: snap.Name, SnapshotUID: snap.UID, SnapshotID: snap.Status.SnapshotID,
			RequestedTime: metav1.NewMicroTime(rev.Clock().Truncate(time.Microsecond)),
		}
	})
	if err != nil {
		return err
	}
	err = rev.requestRevert(ctx, vm, obs, false)
	switch {
	case cloud.KindOf(err) == "":
		return err
	case cloud.Is(err, cloud.NotFoundUnproven):
		return rev.uncertain(vm, err) // a gateway may have passed it on
	case cloud.Uncertain(err):
		return rev.uncertain(vm, err)
	}
	vm.Status.Revert = nil // it had no effect
	if cloud.Is(err, cloud.NotFound) {
		return reconciler.Stalled(pcapi.SnapshotUnavailableReason, controller.RecheckRefused, fmt.Errorf(
			"%w; the VM is not reverted: name another VMSnapshot in spec.currentSnapshotName, or clear it", cloud.Public(err)))
	}
	return rev.Failed(vm, &obs.Observation, err)
}

// revertAgain requests a revert whose answer was lost, on a cloud that honours its key.
func (rev *reverter) revertAgain(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if obs.Now.Sub(vm.Status.Revert.RequestedTime.Time) >= revertKeys || !rev.servers.owns(vm, obs, *obs.Resource) {
		return revertUnknown(vm, obs)
	}
	err := rev.requestRevert(ctx, vm, obs, true)
	switch {
	case cloud.KindOf(err) == "":
		return err
	case !cloud.Uncertain(err) && cloud.Is(err, cloud.NotFound, cloud.Rejected, cloud.Unsupported, cloud.KeyReused):
		return revertUnknown(vm, obs)
	}
	return rev.uncertain(vm, err)
}

// uncertain waits before the next reconcile decides about a revert without an answer.
func (rev *reverter) uncertain(vm *pcapi.VM, err error) error {
	return reconciler.Wait(rev.Backoff.When(vm.UID), pcapi.OutcomeUnknownReason, "%v; the VM may be reverted all the same", cloud.Public(err))
}

// revertUnknown ends a revert that cannot be sent again: a second one would destroy what was
// written since the first.
func revertUnknown(vm *pcapi.VM, obs *observation) error {
	return reconciler.Stalled(pcapi.OutcomeUnknownReason, controller.RecheckRefused, fmt.Errorf(
		"the answer to the revert to VMSnapshot %q was lost, and nothing else is done to VM %s: look in the cloud whether it was reverted, then clear spec.currentSnapshotName; to revert the VM once more, set it again",
		vm.Status.Revert.SnapshotName, obs.Resource.ID))
}

// requestRevert sends the revert on record. It returns the error of the cloud, or the outcome.
func (rev *reverter) requestRevert(ctx context.Context, vm *pcapi.VM, obs *observation, again bool) error {
	r, id := vm.Status.Revert, obs.Resource.ID
	c, ok := obs.View.Client.(cloud.Reverter)
	if !ok {
		return &cloud.Error{Kind: cloud.Unsupported, Op: "revert", Detail: "this kind of cloud cannot revert a VM"}
	}
	result, err := c.RevertServer(ctx, cloud.RevertServer{
		ServerID: id, SnapshotID: r.SnapshotID, Again: again,
		IdempotencyKey: fmt.Sprintf("%s-revert-%d", vm.UID, r.RequestedTime.UnixMicro()),
	})
	if err != nil {
		return err
	}
	if !again {
		log.FromContext(ctx).Info("reverting the VM", "server", id, "snapshot", r.SnapshotName, "operation", result.Operation)
	}
	if result.Operation != "" {
		r.Operation = result.Operation // written when this reconcile ends, which is now
		return reconciler.Wait(revertLook, pcapi.ProgressingReason, "VM %s is being reverted to VMSnapshot %q", id, r.SnapshotName)
	}
	return rev.reverted(ctx, vm, obs, result.Server)
}

// awaitRevert asks the cloud for the operation of the revert.
func (rev *reverter) awaitRevert(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	r, id := vm.Status.Revert, obs.Resource.ID
	state, err := obs.View.Client.GetOperation(ctx, r.Operation)
	switch {
	case cloud.Is(err, cloud.NotFound):
		r.Operation = "" // whether it took effect is unknown
		return reconciler.Wait(revertLook, pcapi.OutcomeUnknownReason, "the cloud does not know the operation that reverts VM %s any more", id)
	case err != nil:
		return rev.Failed(vm, &obs.Observation, err)
	case !state.Done:
		wait := min(max(obs.Now.Sub(r.RequestedTime.Time)/5, revertLook), revertLooks)
		return reconciler.Wait(wait, pcapi.ProgressingReason, "VM %s is being reverted to VMSnapshot %q", id, r.SnapshotName)
	case state.Err != nil:
		return revertFailed(ctx, vm, obs, state.Err)
	case state.Server != nil && state.Server.ID == id:
		return rev.reverted(ctx, vm, obs, *state.Server)
	}
	server, err := obs.View.Client.GetServer(ctx, id)
	if err != nil {
		return rev.ChangeFailed(vm, &obs.Observation, id, err)
	}
	return rev.reverted(ctx, vm, obs, server)
}

func revertFailed(ctx context.Context, vm *pcapi.VM, obs *observation, cause *cloud.Error) error {
	r := vm.Status.Revert
	endRevert(r, pcapi.VMRevertFailed, cloud.PublicMessage(cause), obs.Now)
	log.FromContext(ctx).Info("the VM was not reverted", "server", obs.Resource.ID, "snapshot", r.SnapshotName, "error", r.Message)
	return reconciler.Wait(revertLook, pcapi.ProgressingReason, "the revert of VM %s to VMSnapshot %q failed", obs.Resource.ID, r.SnapshotName)
}

// reverted records the end of a revert. The next reconcile brings the server in line with the spec.
func (rev *reverter) reverted(ctx context.Context, vm *pcapi.VM, obs *observation, server cloud.Server) error {
	r := vm.Status.Revert
	endRevert(r, pcapi.VMRevertSucceeded, "", obs.Now)
	rev.Backoff.Forget(vm.UID)
	rev.servers.remember(vm, obs, server, false)
	log.FromContext(ctx).Info("reverted the VM", "server", server.ID, "snapshot", r.SnapshotName)
	rev.recorder.Eventf(vm, nil, corev1.EventTypeNormal, pcapi.RevertedReason, stepRevert, "VM %s was reverted to VMSnapshot %q", server.ID, r.SnapshotName)
	return reconciler.Wait(revertLook, pcapi.ProgressingReason, "VM %s was reverted and is being brought in line with the spec", server.ID)
}

func endRevert(r *pcapi.VMRevertStatus, phase pcapi.VMRevertPhase, message string, now time.Time) {
	r.Phase, r.Operation, r.EndedTime = phase, "", new(reconciler.EndTime(r.RequestedTime.Time, now))
	r.Message = names.Bounded(maxRevertMessage, message)
}

// reportRevert ends a revert whose server is gone, and removes one that is over, or given up, once the spec names no
// VMSnapshot.
func reportRevert(vm *pcapi.VM, obs *observation) {
	if r := vm.Status.Revert; obs.Gone && r != nil && r.Phase == pcapi.VMRevertRequested {
		endRevert(r, pcapi.VMRevertFailed, fmt.Sprintf("VM %s was deleted in the cloud before the end of the revert was known", vm.Status.VMID), obs.Now)
	}
	if vm.Spec.CurrentSnapshotName == "" && !vm.RevertOpen() {
		vm.Status.Revert = nil
	}
}

// watchSnapshots enqueues a VM when the VMSnapshot that it is to be reverted to changes.
func watchSnapshots(b *builder.Builder, reader client.Reader) *builder.Builder {
	waiting := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		var vm pcapi.VM
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*pcapi.VMSnapshot).Spec.VMName}
		err := reader.Get(ctx, key, &vm, client.UnsafeDisableDeepCopy)
		if err != nil || vm.Spec.CurrentSnapshotName != o.GetName() {
			return nil
		}
		return []reconcile.Request{{NamespacedName: key}}
	})
	changed := predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.(*pcapi.VMSnapshot), e.ObjectNew.(*pcapi.VMSnapshot)
			return before.Status.SnapshotID != after.Status.SnapshotID || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	return b.Watches(&pcapi.VMSnapshot{}, waiting, builder.WithPredicates(changed))
}
