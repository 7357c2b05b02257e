package vm

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The steps that delete what is left of a server that is gone.
const (
	stepDeleteAddress   = "DeletePublicAddress"
	stepDeleteSnapshots = "DeleteSnapshots"
	stepDeleteDisks     = "DeleteDisks"
)

// Leftovers deletes the public address, the snapshots and the disks of the server, where they outlive it. The snapshots and
// the disks of a server that somebody else deleted stay, as what is left of it.
func (k *kind) Leftovers(vm *pcapi.VM, obs *observation) (steps []step) {
	if vm.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan || observeOnly(vm) || vm.Status.VMID == "" {
		return nil
	}
	removal := func(name string, remove func(context.Context, *pcapi.VM) error) {
		steps = append(steps, k.Step(name, reconciler.NeedsCloud|reconciler.NeedsBrakeOff|reconciler.Mutates, func(ctx context.Context, vm *pcapi.VM, obs *observation) error {
			if err := remove(ctx, vm); err != nil {
				return k.Failed(vm, obs.External(), err)
			}
			return nil
		}))
	}
	created := meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition)
	lost := created != nil && created.Reason == pcapi.LostReason
	addressed := vm.Spec.PublicAddress != nil || vm.Status.PublicAddress != ""
	if remover, outlive := obs.View.Client.(cloud.PublicAddressRemover); outlive && (addressed || !lost) {
		removal(stepDeleteAddress, func(ctx context.Context, vm *pcapi.VM) error {
			return remover.DeletePublicAddresses(ctx, vm.Status.VMID)
		})
	}
	if remover, outlive := obs.View.Client.(cloud.SnapshotRemover); outlive && !lost {
		removal(stepDeleteSnapshots, func(ctx context.Context, vm *pcapi.VM) error {
			return remover.DeleteSnapshots(ctx, vm.Status.VMID, string(vm.UID))
		})
	}
	if remover, outlive := obs.View.Client.(cloud.DiskRemover); outlive && !lost && (vm.Spec.RootDisk != nil || len(vm.Spec.Disks)+len(vm.Status.Disks) > 0) {
		removal(stepDeleteDisks, func(ctx context.Context, vm *pcapi.VM) error {
			return remover.DeleteDisks(ctx, vm.Status.VMID)
		})
	}
	return steps
}

// recordSnapshots records an event that names the VMSnapshots whose snapshots are deleted with
// a server.
func recordSnapshots(ctx context.Context, reader client.Reader, recorder events.EventRecorder, vm *pcapi.VM, serverID string) {
	var list pcapi.VMSnapshotList
	err := reader.List(ctx, &list, client.InNamespace(vm.Namespace), client.MatchingFields{controller.VMSnapshotVMIndex: vm.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "the VMSnapshots of the VM could not be listed")
		return
	}
	var names []string
	for i := range list.Items {
		if s := &list.Items[i].Status; s.SnapshotID != "" && s.VMID == serverID {
			names = append(names, list.Items[i].Name)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	text := firstOf(names)
	log.FromContext(ctx).Info("snapshots are deleted with the VM", "server", serverID, "snapshots", text)
	recorder.Eventf(vm, nil, corev1.EventTypeWarning, pcapi.SnapshotsDeletedReason, external.StepDelete,
		"the snapshots of VM %s are deleted with it: those of the VMSnapshots %s", serverID, text)
}
