package vm

import (
	"context"
	"fmt"

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

// Look searches the inventory for the server.
func (k *kind) Look(ctx context.Context, vm *pcapi.VM, obs *observation, id string) error {
	return k.servers.look(ctx, vm, obs, id)
}

// Relate observes the other objects that the plan needs.
func (k *kind) Relate(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	return k.observer.relate(ctx, vm, obs)
}

// Owns reports whether a server is that of the VM.
func (k *kind) Owns(vm *pcapi.VM, obs *observation, server cloud.Server) bool {
	return k.servers.owns(vm, obs, server)
}

func (k *kind) Get(ctx context.Context, obs *observation, id string) (cloud.Server, error) {
	return obs.View.Client.GetServer(ctx, id)
}

func (k *kind) Remember(vm *pcapi.VM, obs *observation, server cloud.Server, created bool) {
	k.servers.remember(vm, obs, server, created)
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
		server, err = k.servers.confirm(ctx, vm, obs, server, before)
	}
	if err != nil {
		return none, err
	}
	if k.servers.another(vm, obs, server, before) {
		return none, ambiguous(fmt.Errorf("the cloud answered the create with VM %s, which existed before or belongs to another object, so it is not used: "+
			"choose another vmname, or rename or delete that VM in the cloud", server.ID))
	}
	if server.State.Transitional() || !obs.Capabilities().Has(cloud.Labels) {
		obs.Inventory.EnqueueAfterListing(inventory.Ref{Namespace: vm.Namespace, Name: vm.Name}, k.Clock())
	}
	return external.Result[cloud.Server]{Resource: server, Operation: result.Operation}, nil
}

// Refused remembers a refused name.
func (k *kind) Refused(ctx context.Context, vm *pcapi.VM, obs *observation, err error) error {
	return k.names.refused(ctx, vm, obs, err)
}

// KeepsClaim: with labels, the claim of a create that had no effect does no harm.
func (k *kind) KeepsClaim(obs *observation, _ error) bool {
	return obs.Capabilities().Has(cloud.Labels)
}

// Unclear explains refusals that an earlier create of this VM may have caused.
func (k *kind) Unclear(vm *pcapi.VM, obs *observation, err error) error {
	caps := obs.Capabilities()
	labels := caps.Has(cloud.Labels)
	// Only the key says which VM owns the server, and one that it may own exists.
	byKey := caps.Has(cloud.Idempotency) && !labels && len(obs.Candidates) > 0
	switch {
	case cloud.Is(err, cloud.Taken):
		return k.names.unclear(vm, obs, err)
	case cloud.Is(err, cloud.KeyReused) && !labels && !nameProves(caps):
		return ambiguous(fmt.Errorf("%w: the spec was edited after a create whose answer was lost, and only the key leads to its server: "+
			"set the spec back to what it was or, if the Cloud allows imports, spec.import.vmId to the VM that was created", cloud.Public(err)))
	case cloud.Is(err, cloud.KeyReused), cloud.Is(err, cloud.Busy) && byKey:
		return err
	case cloud.Is(err, cloud.Rejected, cloud.Conflict) && byKey:
		return ambiguous(fmt.Errorf("%w; a server of this name exists, and an earlier create with this VM's key may have created it: "+
			"set the spec back to what it was or, if the Cloud allows imports, spec.import.vmId to that VM", cloud.Public(err)))
	}
	return nil
}

// ConfirmNothing asks the cloud for the claimed name, where names are unique, unless every create
// was clearly refused: the cloud may have given the server another name, or other labels.
func (k *kind) ConfirmNothing(vm *pcapi.VM, obs *observation) []step {
	if !k.names.mustConfirm(vm, obs) {
		return nil
	}
	return []step{k.vmSteps.confirmName}
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

// Kept returns an outcome if the server that the VM created lacks its owner labels: the cloud did not keep
// them, or has given the id to another server.
func (k *kind) Kept(vm *pcapi.VM, obs *observation) error {
	if vm.Spec.Import != nil || !obs.altered || !obs.Capabilities().Has(cloud.Labels) {
		return nil
	}
	if vm.Status.VMID != "" && replaced(vm, obs, *obs.Resource) {
		return foreign(*obs.Resource)
	}
	return labelsMissing(pcapi.LabelsMissingReason, vm, *obs.Resource, "changed or deleted")
}

// request is the create, without fields that the cloud does not support.
func (k *kind) request(vm *pcapi.VM, obs *observation) cloud.CreateServer {
	req := cloud.CreateServer{Name: vm.Spec.VMName, IdempotencyKey: string(vm.UID), First: obs.First}
	if obs.Capabilities().Has(cloud.Labels) {
		req.Labels = k.servers.ownerLabels(vm)
	}
	field.Create(vm, field.Context{Cluster: k.servers.cluster, Capabilities: obs.Capabilities(), Interfaces: obs.interfaces, UserData: obs.userData}, &req)
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
		if !k.servers.owned(vm, found) {
			obs.Inventory.RecordServer("", found) // nobody's
			return external.Removal{}, nil
		}
		if server = found; server.State == cloud.StateDeleting {
			obs.Inventory.RecordServer(string(vm.UID), server)
			return external.Removal{}, nil
		}
	}
	if obs.Resource != nil && obs.Resource.ID == server.ID {
		var err error
		if server, err = keepDisks(ctx, vm, obs, server); err != nil {
			return external.Removal{}, err
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
		recordKept(ctx, k.recorder, vm, server)
	}
	server.State = cloud.StateDeleting
	obs.Inventory.RecordServer(string(vm.UID), server)
	if obs.Resource != nil && obs.Resource.ID == server.ID {
		obs.Resource = &server
	}
	return external.Removal{Gone: result.Gone(), Operation: result.Operation}, nil
}
