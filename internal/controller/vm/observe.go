package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Observe reads what the plan needs: the inventory, other VM objects, and the
// cloud itself only where the inventory cannot tell.
func (k *kind) Observe(ctx context.Context, vm *v1alpha1.VM) (*scope, error) {
	wanted, err := tenancy.CloudFor(ctx, k.client, vm.Namespace, vm.Spec.CloudRef)
	if err != nil {
		return &scope{now: k.clock()}, err
	}
	recorded := recordedCloud(vm)
	seen := &scope{now: k.clock(), cloud: cmp.Or(recorded, wanted)}
	seen.moved = vm.Status.VMID == "" && seen.cloud != wanted
	seen.inv = k.directory.Cloud(seen.cloud)
	seen.view = seen.inv.View()
	if !seen.caps().Has(cloud.BulkStatus) {
		seen.refresh = seen.view.Settings.PollInterval
	}
	if controllerutil.ContainsFinalizer(vm, Finalizer) {
		seen.claimed = vm.Annotations[ClaimedNameAnnotation]
		if seen.claimed == "" {
			seen.claimed = vm.Spec.VMName
		}
	}
	if err := k.admit(ctx, vm, seen); err != nil {
		return seen, err
	}
	if seen.denied != nil && vm.DeletionTimestamp.IsZero() {
		return seen, nil
	}
	id := knownID(vm)
	switch {
	case id != "":
		if vm.Status.VMID != "" {
			k.creates.Forget(vm.UID)
		}
		return seen, k.observeKnown(ctx, vm, seen, id)
	case seen.claimed != "":
		k.search(vm, seen)
	}
	seen.nameErr = k.refusals.recall(vm, seen.cloud)
	if err := k.observeNetwork(ctx, vm, seen); err != nil {
		return seen, err
	}
	return seen, k.observeRivals(ctx, vm, seen)
}

// admit finds out whether the VM may use its Cloud.
func (k *kind) admit(ctx context.Context, vm *v1alpha1.VM, seen *scope) error {
	_, err := tenancy.Open(ctx, k.client, vm.Namespace, seen.cloud)
	if missing, ok := errors.AsType[*tenancy.MissingError](err); ok {
		seen.cloudless = true
		seen.denied = k.blocked(vm, seen, "%v", missing)
		return nil
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		seen.denied = stall(v1alpha1.CloudUnavailableReason, denied, recheckTaken)
		return nil
	}
	return err
}

// observeKnown looks for the server by its id.
func (k *kind) observeKnown(ctx context.Context, vm *v1alpha1.VM, seen *scope, id string) error {
	server, known := seen.inv.Server(id)
	switch {
	case known:
	case seen.view.Away != "" || (seen.view.Braked && vm.Status.VMID != ""):
		seen.inv.Wait(refOf(vm), seen.view)
		return nil
	default:
		var err error
		server, err = seen.view.Client.GetServer(ctx, id)
		if cloud.Is(err, cloud.NotFound) {
			seen.gone = true
			return k.observeRivals(ctx, vm, seen)
		}
		if err != nil {
			return k.verdictOn(vm, seen, err)
		}
		seen.inv.Note(string(vm.UID), server)
	}
	if seen.refresh > 0 && seen.view.Away == "" && vm.DeletionTimestamp.IsZero() {
		if status, err := seen.inv.Use(ctx, id); err == nil {
			server.CPUUtilization = &status.CPUUtilization
		}
	}
	k.attribute(vm, seen, server)
	switch {
	case vm.Status.VMID == "":
		return k.observeRivals(ctx, vm, seen)
	case !seen.caps().Has(cloud.Labels):
		return k.observeSharers(ctx, vm, seen)
	}
	return nil
}

// observeSharers finds other VM objects that record the same server: two that
// wanted one name when their manager died, or a status forged by hand. It is the
// oldest's, and not deleted while one of them lives. Where the cloud has labels,
// they tell.
func (k *kind) observeSharers(ctx context.Context, vm *v1alpha1.VM, seen *scope) error {
	others, err := k.others(ctx, vm, seen, serverIndex, vm.Status.VMID)
	for _, other := range others {
		shares := other.Status.VMID == vm.Status.VMID && other.DeletionTimestamp.IsZero()
		if shares && (!vm.DeletionTimestamp.IsZero() || older(&other, vm)) {
			seen.rival = errRival
		}
	}
	return err
}

// attribute decides whose the server is, as far as the cloud's labels tell.
func (k *kind) attribute(vm *v1alpha1.VM, seen *scope, server cloud.Server) {
	seen.server, seen.how = &server, v1alpha1.CreatedReason
	if vm.Spec.Import != nil {
		seen.how = v1alpha1.ImportedReason
	}
	if !seen.caps().Has(cloud.Labels) {
		seen.owned = true
		return
	}
	seen.foreign = server.Labels[inventory.ClusterLabel] != "" && server.Labels[inventory.ClusterLabel] != k.cluster
	seen.owned = server.Labels[inventory.UIDLabel] == string(vm.UID) && server.Labels[inventory.ClusterLabel] == k.cluster
	if !seen.owned {
		return
	}
	for _, other := range seen.inv.Owned(string(vm.UID), k.cluster) {
		if other.ID != server.ID && other.State != cloud.StateDeleting {
			seen.duplicates = append(seen.duplicates, other)
		}
	}
}

// search looks for the server of a create that was never recorded: among what
// we made ourselves, by owner label, else by the name we claimed.
func (k *kind) search(vm *v1alpha1.VM, seen *scope) {
	since := k.creates.UncertainSince(vm.UID, seen.inv.Since())
	settled := since.Add(seen.view.Settings.SettleTime)
	seen.settles = max(0, settled.Sub(seen.now))
	seen.horizon = since
	if seen.settles == 0 {
		seen.horizon = settled
	}
	if !vm.DeletionTimestamp.IsZero() {
		// What another manager made before the deletion was known is in a listing begun after it.
		if doomed := k.creates.DoomedSince(vm.UID, seen.now); seen.horizon.Before(doomed) {
			seen.horizon = doomed
		}
	}
	seen.looked = seen.view.Snapshot != nil && !seen.view.Snapshot.Begun.Before(seen.horizon)
	seen.candidates = seen.inv.Owned(string(vm.UID), k.cluster)
	if made, ok := k.creates.MadeFor(vm.UID); ok && len(seen.candidates) == 0 {
		if server, known := seen.inv.Server(made); known {
			seen.candidates = []cloud.Server{server}
		}
	}
	if len(seen.candidates) > 0 {
		seen.proof = labelProof
		return
	}
	if seen.caps().Has(cloud.Labels) || !seen.looked {
		return
	}
	seen.candidates = seen.inv.Named(seen.claimed)
	if seen.caps().Has(cloud.UniqueNames) {
		seen.proof = nameProof
	}
}

// observeRivals finds other VM objects that have the name or the server.
// Names matter only where nothing better tells whose a server is.
func (k *kind) observeRivals(ctx context.Context, vm *v1alpha1.VM, seen *scope) error {
	if len(seen.candidates) > 0 && seen.proof != labelProof {
		mine := seen.candidates[:0]
		for _, s := range seen.candidates {
			others, err := k.others(ctx, vm, seen, serverIndex, s.ID)
			if err != nil {
				return err
			}
			switch {
			case len(others) == 0:
				mine = append(mine, s)
			case seen.caps().Has(cloud.UniqueNames):
				seen.rival = errRival
			}
		}
		seen.candidates = mine
	}
	if vm.Spec.Import != nil {
		others, err := k.others(ctx, vm, seen, serverIndex, vm.Spec.Import.VMID)
		for _, other := range others {
			if other.Status.VMID != "" || older(&other, vm) {
				seen.rival = errRival
			}
		}
		return err
	}
	if seen.caps().Has(cloud.Labels) || !seen.caps().Has(cloud.UniqueNames) {
		return nil
	}
	others, err := k.others(ctx, vm, seen, nameIndex, vm.Spec.VMName)
	for _, other := range others {
		claimed := controllerutil.ContainsFinalizer(&other, Finalizer)
		if other.Status.VMID != "" || (claimed && (seen.claimed == "" || older(&other, vm))) {
			seen.rival = errRival
		}
	}
	if seen.rival != nil && seen.proof == nameProof {
		seen.candidates = nil
	}
	return err
}

// others lists the VM objects but vm that an index holds under a word of this
// Cloud. They are shared with the cache and must not be changed.
func (k *kind) others(ctx context.Context, vm *v1alpha1.VM, seen *scope, index, word string) ([]v1alpha1.VM, error) {
	var others []v1alpha1.VM
	for _, on := range []string{seen.cloud, unresolved} {
		var list v1alpha1.VMList
		err := k.client.List(ctx, &list, client.MatchingFields{index: on + "/" + word}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			return nil, fmt.Errorf("list VMs by %s: %w", index, err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			if other.UID == vm.UID {
				continue
			}
			if on == unresolved {
				uses, err := tenancy.CloudFor(ctx, k.client, other.Namespace, other.Spec.CloudRef)
				if err != nil {
					return nil, err
				}
				if uses != seen.cloud {
					continue
				}
			}
			others = append(others, *other)
		}
	}
	return others, nil
}

func older(a, b *v1alpha1.VM) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// knownID is the id of the VM's server, on record or to be imported; empty if there is none yet.
func knownID(vm *v1alpha1.VM) string {
	if vm.Status.VMID == "" && vm.Spec.Import != nil {
		return vm.Spec.Import.VMID
	}
	return vm.Status.VMID
}

// recordedCloud is the name of the Cloud that the VM is on already: that of its
// server or, as long as a create may have been sent there, of its claim. Empty
// if the VM is on none yet.
func recordedCloud(vm *v1alpha1.VM) string {
	switch {
	case vm.Status.VMID != "":
		return vm.Status.Cloud
	case controllerutil.ContainsFinalizer(vm, Finalizer):
		return vm.Annotations[ClaimedCloudAnnotation]
	}
	return ""
}

func refOf(vm *v1alpha1.VM) inventory.Ref {
	return inventory.Ref{Namespace: vm.Namespace, Name: vm.Name}
}

// blocked waits for the Cloud, and has the VM woken when it can be used.
func (k *kind) blocked(vm *v1alpha1.VM, seen *scope, format string, args ...any) error {
	seen.inv.Wait(refOf(vm), seen.view)
	return reconciler.Blocked("Cloud/"+seen.cloud, v1alpha1.CloudUnavailableReason, format, args...)
}

// verdictOn turns the failure of a call into a verdict. Failures of the cloud as
// a whole are the Cloud's to tell; the VM waits, a little longer each time, or
// until the Cloud is back.
func (k *kind) verdictOn(vm *v1alpha1.VM, seen *scope, err error) error {
	switch {
	case cloud.Is(err, cloud.Throttled):
		return reconciler.Wait(max(cloud.RetryAfter(err), time.Second), v1alpha1.PendingReason, "%v", err)
	case cloud.Is(err, cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Conflict):
		seen.inv.Hasten()
		seen.inv.Wait(refOf(vm), seen.view)
		return reconciler.Wait(k.backoff.When(vm.UID), v1alpha1.CloudUnavailableReason, "%v", err)
	case cloud.KindOf(err) != "":
		return stall(v1alpha1.RejectedReason, err, recheckRefused)
	default:
		return err
	}
}
