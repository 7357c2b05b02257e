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
	obs := &scope{now: k.clock(), cloud: cmp.Or(recorded, wanted)}
	obs.moved = vm.Status.VMID == "" && obs.cloud != wanted
	obs.inv = k.directory.Cloud(obs.cloud)
	obs.view = obs.inv.View()
	if !obs.caps().Has(cloud.BulkStatus) {
		obs.refresh = obs.view.Settings.PollInterval
	}
	if controllerutil.ContainsFinalizer(vm, Finalizer) {
		obs.claimed = vm.Annotations[ClaimedNameAnnotation]
		if obs.claimed == "" {
			obs.claimed = vm.Spec.VMName
		}
	}
	if err := k.admit(ctx, vm, obs); err != nil {
		return obs, err
	}
	if obs.denied != nil && vm.DeletionTimestamp.IsZero() {
		return obs, nil
	}
	id := knownID(vm)
	switch {
	case id != "":
		if vm.Status.VMID != "" {
			k.creates.Forget(vm.UID)
		}
		return obs, k.observeKnown(ctx, vm, obs, id)
	case obs.claimed != "":
		k.search(vm, obs)
	}
	obs.nameErr = k.refusals.recall(vm, obs.cloud)
	if err := k.observeNetwork(ctx, vm, obs); err != nil {
		return obs, err
	}
	return obs, k.observeRivals(ctx, vm, obs)
}

// admit finds out whether the VM may use its Cloud.
func (k *kind) admit(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	_, err := tenancy.Open(ctx, k.client, vm.Namespace, obs.cloud)
	if missing, ok := errors.AsType[*tenancy.MissingError](err); ok {
		obs.cloudless = true
		obs.denied = k.blocked(vm, obs, "%v", missing)
		return nil
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		obs.denied = stall(v1alpha1.CloudUnavailableReason, denied, recheckTaken)
		return nil
	}
	return err
}

// observeKnown looks for the server by its id.
func (k *kind) observeKnown(ctx context.Context, vm *v1alpha1.VM, obs *scope, id string) error {
	server, known := obs.inv.Server(id)
	switch {
	case known:
	case obs.view.Unavailable != "" || (obs.view.Braked && vm.Status.VMID != ""):
		obs.inv.EnqueueWhenAvailable(refOf(vm), obs.view)
		return nil
	default:
		var err error
		server, err = obs.view.Client.GetServer(ctx, id)
		if cloud.Is(err, cloud.NotFound) {
			obs.gone = true
			return k.observeRivals(ctx, vm, obs)
		}
		if err != nil {
			return k.outcomeOf(vm, obs, err)
		}
		obs.inv.RecordServer(string(vm.UID), server)
	}
	if obs.refresh > 0 && obs.view.Unavailable == "" && vm.DeletionTimestamp.IsZero() {
		if status, err := obs.inv.Utilization(ctx, id); err == nil {
			server.CPUUtilization = &status.CPUUtilization
		}
	}
	k.attribute(vm, obs, server)
	switch {
	case vm.Status.VMID == "":
		return k.observeRivals(ctx, vm, obs)
	case !obs.caps().Has(cloud.Labels):
		return k.observeSharers(ctx, vm, obs)
	}
	return nil
}

// observeSharers finds other VM objects that record the same server: two that
// wanted one name when their manager died, or a status forged by hand. It is the
// oldest's, and not deleted while one of them lives. Where the cloud has labels,
// they tell.
func (k *kind) observeSharers(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	others, err := k.others(ctx, vm, obs, serverIndex, vm.Status.VMID)
	for _, other := range others {
		shares := other.Status.VMID == vm.Status.VMID && other.DeletionTimestamp.IsZero()
		if shares && (!vm.DeletionTimestamp.IsZero() || older(&other, vm)) {
			obs.rival = errRival
		}
	}
	return err
}

// attribute decides whose the server is, as far as the cloud's labels tell.
func (k *kind) attribute(vm *v1alpha1.VM, obs *scope, server cloud.Server) {
	obs.server, obs.how = &server, v1alpha1.CreatedReason
	if vm.Spec.Import != nil {
		obs.how = v1alpha1.ImportedReason
	}
	if !obs.caps().Has(cloud.Labels) {
		obs.owned = true
		return
	}
	obs.foreign = server.Labels[inventory.ClusterLabel] != "" && server.Labels[inventory.ClusterLabel] != k.cluster
	obs.owned = server.Labels[inventory.UIDLabel] == string(vm.UID) && server.Labels[inventory.ClusterLabel] == k.cluster
	if !obs.owned {
		return
	}
	for _, other := range obs.inv.Owned(string(vm.UID), k.cluster) {
		if other.ID != server.ID && other.State != cloud.StateDeleting {
			obs.duplicates = append(obs.duplicates, other)
		}
	}
}

// search looks for the server of a create that was never recorded: among what
// we made ourselves, by owner label, else by the name we claimed.
func (k *kind) search(vm *v1alpha1.VM, obs *scope) {
	since := k.creates.UncertainSince(vm.UID, obs.inv.StartedAt())
	settled := since.Add(obs.view.Settings.SettleTime)
	obs.settles = max(0, settled.Sub(obs.now))
	obs.horizon = since
	if obs.settles == 0 {
		obs.horizon = settled
	}
	if !vm.DeletionTimestamp.IsZero() {
		// What another manager made before the deletion was known is in a listing begun after it.
		if doomed := k.creates.DoomedSince(vm.UID, obs.now); obs.horizon.Before(doomed) {
			obs.horizon = doomed
		}
	}
	obs.looked = obs.view.Snapshot != nil && !obs.view.Snapshot.Begun.Before(obs.horizon)
	obs.candidates = obs.inv.Owned(string(vm.UID), k.cluster)
	if made, ok := k.creates.MadeFor(vm.UID); ok && len(obs.candidates) == 0 {
		if server, known := obs.inv.Server(made); known {
			obs.candidates = []cloud.Server{server}
		}
	}
	if len(obs.candidates) > 0 {
		obs.proof = labelProof
		return
	}
	if obs.caps().Has(cloud.Labels) || !obs.looked {
		return
	}
	obs.candidates = obs.inv.Named(obs.claimed)
	if obs.caps().Has(cloud.UniqueNames) {
		obs.proof = nameProof
	}
}

// observeRivals finds other VM objects that have the name or the server.
// Names matter only where nothing better tells whose a server is.
func (k *kind) observeRivals(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	if len(obs.candidates) > 0 && obs.proof != labelProof {
		mine := obs.candidates[:0]
		for _, s := range obs.candidates {
			others, err := k.others(ctx, vm, obs, serverIndex, s.ID)
			if err != nil {
				return err
			}
			switch {
			case len(others) == 0:
				mine = append(mine, s)
			case obs.caps().Has(cloud.UniqueNames):
				obs.rival = errRival
			}
		}
		obs.candidates = mine
	}
	if vm.Spec.Import != nil {
		others, err := k.others(ctx, vm, obs, serverIndex, vm.Spec.Import.VMID)
		for _, other := range others {
			if other.Status.VMID != "" || older(&other, vm) {
				obs.rival = errRival
			}
		}
		return err
	}
	if obs.caps().Has(cloud.Labels) || !obs.caps().Has(cloud.UniqueNames) {
		return nil
	}
	others, err := k.others(ctx, vm, obs, nameIndex, vm.Spec.VMName)
	for _, other := range others {
		claimed := controllerutil.ContainsFinalizer(&other, Finalizer)
		if other.Status.VMID != "" || (claimed && (obs.claimed == "" || older(&other, vm))) {
			obs.rival = errRival
		}
	}
	if obs.rival != nil && obs.proof == nameProof {
		obs.candidates = nil
	}
	return err
}

// others lists the VM objects but vm that an index holds under a word of this
// Cloud. They are shared with the cache and must not be changed.
func (k *kind) others(ctx context.Context, vm *v1alpha1.VM, obs *scope, index, word string) ([]v1alpha1.VM, error) {
	var others []v1alpha1.VM
	for _, on := range []string{obs.cloud, unresolved} {
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
				if uses != obs.cloud {
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
func (k *kind) blocked(vm *v1alpha1.VM, obs *scope, format string, args ...any) error {
	obs.inv.EnqueueWhenAvailable(refOf(vm), obs.view)
	return reconciler.Blocked("Cloud/"+obs.cloud, v1alpha1.CloudUnavailableReason, format, args...)
}

// outcomeOf turns the failure of a call into a outcome. Failures of the cloud as
// a whole are the Cloud's to tell; the VM waits, a little longer each time, or
// until the Cloud is back.
func (k *kind) outcomeOf(vm *v1alpha1.VM, obs *scope, err error) error {
	switch {
	case cloud.Is(err, cloud.Throttled):
		return reconciler.Wait(max(cloud.RetryAfter(err), time.Second), v1alpha1.PendingReason, "%v", err)
	case cloud.Is(err, cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Conflict):
		obs.inv.RequestPoll()
		obs.inv.EnqueueWhenAvailable(refOf(vm), obs.view)
		return reconciler.Wait(k.backoff.When(vm.UID), v1alpha1.CloudUnavailableReason, "%v", err)
	case cloud.KindOf(err) != "":
		return stall(v1alpha1.RejectedReason, err, recheckRefused)
	default:
		return err
	}
}
