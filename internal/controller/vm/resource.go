package vm

import (
	"context"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

func (k *kind) Record(vm *pcapi.VM) external.Record {
	record := external.Record{
		Ref: vm.Spec.CloudRef, Name: vm.Spec.VMName, ID: vm.Status.VMID, Cloud: vm.Status.Cloud, ObservedGeneration: vm.Status.ObservedGeneration,
	}
	record.Unclaimed = observeOnly(vm)
	if vm.Status.VMID == "" {
		record.Claimed = vm.Status.NameInCloud
	} else {
		record.Renamed = !cloud.AlikeNames(nameInCloud(vm), vm.Spec.VMName)
	}
	if vm.Status.CreatedTime != nil {
		record.Since = vm.Status.CreatedTime.Time
	}
	if op := vm.Status.Operation; op != nil {
		record.Operation = external.Operation{ID: op.ID, Kind: external.OperationKind(op.Kind), Since: op.Since.Time}
	}
	if vm.Spec.Import != nil {
		record.Import = vm.Spec.Import.VMID
	}
	return record
}

// RecordClaim stores the claim in the fields that later describe the server.
func (k *kind) RecordClaim(vm *pcapi.VM, name, cloudName string) {
	vm.Status.NameInCloud, vm.Status.Cloud = name, cloudName
}

func (k *kind) Identify(s cloud.Server) external.Identity {
	return external.Identity{ID: s.ID, Name: s.Name, State: s.State, Fault: s.Fault, CreatedAt: s.CreatedAt}
}

// Look searches the inventory: by id, or among what this process created, by
// owner label, and else by the claimed name.
func (k *kind) Look(ctx context.Context, vm *pcapi.VM, obs *observation, id string) error {
	snapshot := obs.View.Snapshot
	obs.Looked = snapshot != nil && !snapshot.Begun.Before(obs.Horizon)
	obs.Incomplete = snapshot != nil && snapshot.Incomplete
	if id != "" {
		server, known := obs.Inventory.Server(id)
		if known {
			k.attribute(vm, obs, server)
		}
		if listed, ok := obs.Inventory.Listed(snapshot, id); ok && k.Owns(vm, obs, listed) {
			obs.ListedAt = snapshot.Begun
		}
		if !obs.Owned && !vm.DeletionTimestamp.IsZero() && !keeps(vm) {
			obs.Duplicates = k.duplicates(vm, obs, id)
		}
		return nil
	}
	obs.Candidates = obs.Inventory.Owned(string(vm.UID), k.cluster)
	if created, ok := k.created(vm, obs); ok && len(obs.Candidates) == 0 {
		obs.Candidates = []cloud.Server{created}
		if obs.Capabilities().Has(cloud.Labels) && !labelledFor(vm, created) && !vm.DeletionTimestamp.IsZero() {
			return nil // without labels, the answer to the create is not enough to delete it
		}
	}
	if len(obs.Candidates) > 0 {
		obs.Proof = external.OwnerProof
		return nil
	}
	if obs.Capabilities().Has(cloud.Labels) {
		k.lookAltered(vm, obs)
		return nil
	}
	if !obs.Looked || snapshot.Begun.Before(obs.ClaimedAt) {
		return nil
	}
	return lookByName(ctx, vm, obs)
}

// created returns the server that a create of this process made. Its id may be that of another
// server once its deletion was sent and, if no read has confirmed it, in an older listing.
func (k *kind) created(vm *pcapi.VM, obs *observation) (cloud.Server, bool) {
	id, ok := k.Tracker.CreatedID(vm.UID)
	if !ok {
		return cloud.Server{}, false
	}
	server, known := obs.Inventory.Server(id)
	removed, _ := k.Tracker.RemovedAt(vm.UID)
	name, unconfirmed := k.Tracker.Unconfirmed(vm.UID)
	another := obs.Capabilities().Has(cloud.Labels) && server.Labels[inventory.UIDLabel] != "" && !labelledFor(vm, server)
	switch {
	case unconfirmed && (!obs.Looked || another || !cloud.AlikeNames(server.Name, name)):
		return cloud.Server{}, false
	case !removed.IsZero() && !k.Owns(vm, obs, server):
		return cloud.Server{}, false
	}
	return server, known
}

// attribute sets the server of the VM, and which object owns it as far as the
// cloud's labels say.
func (k *kind) attribute(vm *pcapi.VM, obs *observation, server cloud.Server) {
	if obs.Resource == nil && vm.Spec.Import != nil {
		obs.How = pcapi.ImportedReason
	}
	obs.Resource = &server
	if !obs.Capabilities().Has(cloud.Labels) {
		obs.Owned = true
		return
	}
	cluster := server.Labels[inventory.ClusterLabel]
	obs.Foreign = cluster != "" && cluster != k.cluster
	uid := server.Labels[inventory.UIDLabel]
	own := uid == string(vm.UID)
	obs.Owned, obs.unlabelling = own && cluster == k.cluster, own && cluster == ""
	obs.altered = !obs.Owned && (own || uid == "" || inventory.AlteredUID(uid, string(vm.UID))) &&
		(cluster == k.cluster || cluster == "" || inventory.AlteredUID(cluster, k.cluster))
	obs.Duplicates = nil
	if obs.Owned {
		obs.Duplicates = k.duplicates(vm, obs, server.ID)
	}
}

// duplicates returns the servers with the owner labels of the VM beside the one with this
// id. Those that are being deleted count only for a VM that is deleted, which they must not
// outlive.
func (k *kind) duplicates(vm *pcapi.VM, obs *observation, id string) []cloud.Server {
	return slices.DeleteFunc(obs.Inventory.Owned(string(vm.UID), k.cluster), func(s cloud.Server) bool {
		return s.ID == id || !k.owned(vm, s) || s.State == cloud.StateDeleting && vm.DeletionTimestamp.IsZero()
	})
}

// Owns reports whether a server has the owner labels of the VM or, on a cloud without labels,
// its name, and was not created after the server whose deletion was sent.
func (k *kind) Owns(vm *pcapi.VM, obs *observation, s cloud.Server) bool {
	if obs.Capabilities().Has(cloud.Labels) {
		return k.owned(vm, s)
	}
	return cloud.AlikeNames(s.Name, nameInCloud(vm)) && !k.Tracker.CreatedLater(vm.UID, s.ID, s.CreatedAt)
}

func (k *kind) Get(ctx context.Context, obs *observation, id string) (cloud.Server, error) {
	return obs.View.Client.GetServer(ctx, id)
}

func (k *kind) Remember(vm *pcapi.VM, obs *observation, server cloud.Server, created bool) {
	if last := obs.Resource; last != nil && last.ID == server.ID && server.CPUUtilization == nil {
		server.CPUUtilization = last.CPUUtilization
	}
	removed, _ := k.Tracker.RemovedAt(vm.UID)
	switch {
	case created:
		obs.Inventory.RecordCreated(string(vm.UID), server)
	case removed.IsZero() || k.Owns(vm, obs, server): // else another object may have it on record
		obs.Inventory.RecordServer(string(vm.UID), server)
	}
	k.attribute(vm, obs, server)
}

func (k *kind) ForgetResource(obs *observation, id string) { obs.Inventory.ForgetServer(id) }

// Create sends the create. An event of a server finds its VM by the recorded id
// or by labels: where neither is there yet, the next listing enqueues the VM.
func (k *kind) Create(ctx context.Context, vm *pcapi.VM, obs *observation) (external.Result[cloud.Server], error) {
	var none external.Result[cloud.Server]
	before := obs.Inventory.View().Snapshot
	req := k.request(vm, obs)
	result, err := obs.View.Client.CreateServer(ctx, req)
	err = explained(ctx, k.Client, vm, obs, withoutUserData(explainFlavor(vm, err), req.UserData, obs.userData))
	if err == nil && result.Operation != "" && result.Server.ID == "" {
		return external.Result[cloud.Server]{Operation: result.Operation}, nil
	}
	server := result.Server
	if err == nil && doubtfulAnswer(vm, obs, server, before) {
		server, err = k.confirm(ctx, vm, obs, server, before)
	}
	if err != nil {
		return none, err
	}
	if k.another(vm, obs, server, before) {
		return none, ambiguous(fmt.Errorf("the cloud answered the create with VM %s, which existed before or belongs to another object, so it is not used: "+
			"choose another vmname, or rename or delete that VM in the cloud", server.ID))
	}
	if server.State.Transitional() || !obs.Capabilities().Has(cloud.Labels) {
		obs.Inventory.EnqueueAfterListing(inventory.Ref{Namespace: vm.Namespace, Name: vm.Name}, k.Clock())
	}
	return external.Result[cloud.Server]{Resource: server, Operation: result.Operation}, nil
}

// Made refuses a server that carries the labels of another owner, or none. Once the VM is deleted, those of
// another owner prove that its own server is gone.
func (k *kind) Made(vm *pcapi.VM, obs *observation, server cloud.Server) (own bool, err error) {
	switch {
	case !obs.Capabilities().Has(cloud.Labels), labelledFor(vm, server):
		return true, nil
	case len(server.Labels[inventory.UIDLabel]) >= len(vm.UID) && !vm.DeletionTimestamp.IsZero(): // not cut
		return false, nil
	}
	return false, ambiguous(fmt.Errorf("the cloud says that the create made VM %s, which does not carry this object's owner labels, so it is not used: look in the cloud who created it", server.ID))
}

// request is the create, without fields that the cloud does not support.
func (k *kind) request(vm *pcapi.VM, obs *observation) cloud.CreateServer {
	req := cloud.CreateServer{Name: vm.Spec.VMName, IdempotencyKey: string(vm.UID), First: obs.First}
	if obs.Capabilities().Has(cloud.Labels) {
		req.Labels = k.ownerLabels(vm)
	}
	field.Create(vm, field.Context{Cluster: k.cluster, Capabilities: obs.Capabilities(), Interfaces: obs.interfaces, UserData: obs.userData}, &req)
	return req
}

// Delete deletes a server. One beside that of the VM is read first: only its labels say that
// it is the VM's, and it may be gone and its id used again.
func (k *kind) Delete(ctx context.Context, vm *pcapi.VM, obs *observation, server cloud.Server) (external.Removal, error) {
	if obs.Resource == nil || obs.Resource.ID != server.ID {
		found, err := obs.View.Client.GetServer(ctx, server.ID)
		if err != nil {
			return external.Removal{}, err
		}
		if !k.owned(vm, found) {
			obs.Inventory.RecordServer("", found) // nobody's
			return external.Removal{}, nil
		}
		if server = found; server.State == cloud.StateDeleting {
			obs.Inventory.RecordServer(string(vm.UID), server)
			return external.Removal{}, nil
		}
	}
	obs.Inventory.RecordDeletion(server.ID)
	result, err := obs.View.Client.DeleteServer(ctx, server.ID)
	recordDetached(ctx, k.recorder, vm, server.ID, result.Detached)
	if err != nil {
		return external.Removal{}, err // a 404 may come from a read that lags behind
	}
	if server.State != cloud.StateDeleting {
		recordSnapshots(ctx, k.Client, k.recorder, vm, server.ID)
	}
	server.State = cloud.StateDeleting
	obs.Inventory.RecordServer(string(vm.UID), server)
	if obs.Resource != nil && obs.Resource.ID == server.ID {
		obs.Resource = &server
	}
	return external.Removal{Gone: result.Gone(), Operation: result.Operation}, nil
}
