package vmsnapshot

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

// maxName bounds a snapshot's name in the cloud, in bytes.
const maxName = 63

// Record describes a VMSnapshot. Its name in the cloud proves which object owns a
// snapshot, because snapshots have no labels.
func (k *kind) Record(snap *pcapi.VMSnapshot) external.Record {
	record := external.Record{
		Name: names.Owned(maxName, k.cluster, snap.Namespace, snap.Name, string(snap.UID)),
		ID:   snap.Status.SnapshotID, Cloud: snap.Status.Cloud, ObservedGeneration: snap.Status.ObservedGeneration,
	}
	if snap.Status.CreatedTime != nil {
		record.Since = snap.Status.CreatedTime.Time
	}
	return record
}

// Identify describes a snapshot, which has no states.
func (k *kind) Identify(s cloud.Snapshot) external.Identity {
	return external.Identity{ID: s.ID, Name: s.Name, State: cloud.StateActive, CreatedAt: s.CreatedAt}
}

// recordedName returns the name that the snapshot of the object has.
func (k *kind) recordedName(snap *pcapi.VMSnapshot) string {
	return external.RecordedName(k.Record(snap).Name, snap.Status.SnapshotID, snap.Status.NameInCloud)
}

// isNamed reports whether the snapshot with the recorded id has the name of the object.
func (k *kind) isNamed(snap *pcapi.VMSnapshot, obs *observation, s cloud.Snapshot) bool {
	return obs.IsNamed(k.Record(snap).Name, k.recordedName(snap), names.Bounded(maxText, s.Name), snap.Status.CreatedTime, s.CreatedAt)
}

// Owns reports whether a snapshot has the name of the object, and is not a later one that has got its id. Before the id is
// on record, the answer to the create says which snapshot it made, unless that was deleted since.
func (k *kind) Owns(snap *pcapi.VMSnapshot, obs *observation, s cloud.Snapshot) bool {
	removed, _ := k.Tracker.RemovedAt(snap.UID)
	switch asked := k.Record(snap).Name; {
	case k.Tracker.CreatedLater(snap.UID, s.ID, s.CreatedAt):
		return false
	case snap.Status.SnapshotID != "":
		return k.isNamed(snap, obs, s)
	case removed.IsZero():
		return cloud.MadeFrom(s.Name, asked)
	default:
		return cloud.ProvesOwner(s.Name, asked)
	}
}

// cloudFor returns the Cloud of the VM or, as long as there is no VM, the default one.
func (k *kind) cloudFor(ctx context.Context, o client.Object) (string, error) {
	snap := o.(*pcapi.VMSnapshot)
	if snap.Status.Cloud != "" {
		return snap.Status.Cloud, nil
	}
	vm, err := k.vm(ctx, snap)
	if err != nil {
		return "", err
	}
	return external.CloudOfVM(ctx, k.Client, snap.Namespace, vm)
}

// vm returns the VM of a VMSnapshot, which is shared with the cache; nil if there is none.
func (k *kind) vm(ctx context.Context, snap *pcapi.VMSnapshot) (*pcapi.VM, error) {
	return external.FindVM(ctx, k.Client, snap.Namespace, snap.Spec.VMName)
}

// Relate observes the VM.
func (k *kind) Relate(ctx context.Context, snap *pcapi.VMSnapshot, obs *observation) error {
	obs.name, obs.server = k.recordedName(snap), snap.Status.VMID
	vm, err := k.vm(ctx, snap)
	if err != nil {
		return err
	}
	var server cloud.Server
	listed := false
	if vm != nil {
		obs.vmID, obs.vmCloud, obs.reverting = vm.Status.VMID, vm.Status.Cloud, reverting(vm) == snap.UID
		server, listed = obs.Inventory.Server(vm.Status.VMID)
	}
	obs.notReady = notReady(snap, vm, server, listed, obs)
	if vm == nil && snap.Status.VMID == "" {
		obs.Denied = obs.notReady // the Cloud of the VM is not known, so that no other says anything
	}
	return nil
}

// Look searches the snapshots of the server. A server that is gone has none.
func (k *kind) Look(ctx context.Context, snap *pcapi.VMSnapshot, obs *observation, id string) error {
	vm, err := k.vm(ctx, snap)
	if err != nil {
		return err
	}
	obs.server, obs.noServer = snap.Status.VMID, serverGone(snap, vm, obs)
	var found []cloud.Snapshot
	if obs.server != "" {
		if found, err = k.list(ctx, obs, id); err != nil && !cloud.Is(err, cloud.NotFound) {
			return err
		}
	}
	obs.Looked, obs.Owned, obs.Proof = !k.Clock().Before(obs.Horizon), true, external.OwnerProof
	name, recorded := k.Record(snap).Name, k.recordedName(snap)
	if id == "" {
		obs.Candidates = cloud.OfOwner(found, name, func(s cloud.Snapshot) string { return s.Name })
		return nil
	}
	for _, s := range found {
		switch {
		case s.ID == id:
			obs.Resource, obs.ListedAt = &s, obs.Now
		case cloud.AlikeNames(s.Name, recorded) && cloud.ProvesOwner(s.Name, name):
			obs.Duplicates = append(obs.Duplicates, s)
		}
	}
	return nil
}

// serverGone reports whether the server that the status records is gone: the cloud created the one that has the id after
// the snapshot was recorded or, as listings show that have to show it, has none with the id. As long as the VM of
// the snapshot has the id on record, the time proves nothing: the clock of the cloud may be ahead.
func serverGone(snap *pcapi.VMSnapshot, vm *pcapi.VM, obs *observation) bool {
	created, listing := snap.Status.CreatedTime, obs.View.Snapshot
	if created == nil || listing == nil {
		return false
	}
	if server, ok := obs.Inventory.Server(snap.Status.VMID); ok {
		kept := vm != nil && vm.Status.VMID == snap.Status.VMID && (vm.Status.CreatedTime == nil || !vm.Status.CreatedTime.After(created.Time))
		return !kept && server.CreatedAt.After(obs.View.Settings.ShownFrom(created.Time))
	}
	return obs.SettleTimeLeft == 0 && !listing.Incomplete && !listing.Begun.Before(obs.Horizon)
}

// list returns the snapshots of the server, none if that is gone. While the cloud takes one, only the snapshot with
// the id proves something: it exists.
func (k *kind) list(ctx context.Context, obs *observation, id string) ([]cloud.Snapshot, error) {
	c, err := snapshotter(obs)
	if err != nil {
		return nil, err
	}
	if _, another := obs.Inventory.Server(obs.server); obs.noServer && another {
		return nil, nil
	}
	found, err := c.ListSnapshots(ctx, obs.server)
	if cloud.Is(err, cloud.NotFoundUnproven) && obs.noServer {
		return nil, nil
	}
	if cloud.Is(err, cloud.Busy) && slices.ContainsFunc(found, func(s cloud.Snapshot) bool { return s.ID == id }) {
		return found, nil
	}
	return found, err
}

// Get returns a snapshot of the server. A complete listing without it says that it does
// not exist.
func (k *kind) Get(ctx context.Context, obs *observation, id string) (cloud.Snapshot, error) {
	found, err := k.list(ctx, obs, id)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	for _, s := range found {
		if s.ID == id {
			return s, nil
		}
	}
	return cloud.Snapshot{}, &cloud.Error{Kind: cloud.NotFound, Op: fmt.Sprintf("get snapshot %q", id), Detail: "the server has no such snapshot"}
}

// Create fails if the answer is about a snapshot of a name that the cloud cannot have made of that in the create: it may
// belong to another request.
func (k *kind) Create(ctx context.Context, snap *pcapi.VMSnapshot, obs *observation) (external.Result[cloud.Snapshot], error) {
	none := external.Result[cloud.Snapshot]{}
	c, err := snapshotter(obs)
	if err != nil {
		return none, err
	}
	name := k.Record(snap).Name
	req := cloud.CreateSnapshot{ServerID: snap.Status.VMID, Name: name, Description: snap.Spec.Description, IdempotencyKey: string(snap.UID)}
	if snap.Spec.Memory != nil {
		req.Memory = *snap.Spec.Memory
	}
	if snap.Spec.Quiesce != nil {
		req.Quiesce = snap.Spec.Quiesce.Timeout.Duration
	}
	made, err := c.CreateSnapshot(ctx, req)
	if err == nil && !cloud.MadeFrom(made.Name, name) {
		return none, &cloud.Error{
			Kind: cloud.Unreadable, Op: fmt.Sprintf("create snapshot %q", name), Detail: "the answer is about a snapshot of another name", Uncertain: true,
		}
	}
	return external.Result[cloud.Snapshot]{Resource: made}, err
}

// Delete deletes a snapshot. One goes with its server, too.
func (k *kind) Delete(ctx context.Context, snap *pcapi.VMSnapshot, obs *observation, s cloud.Snapshot) (external.Removal, error) {
	c, err := snapshotter(obs)
	if err != nil {
		return external.Removal{}, err
	}
	return external.Removal{Gone: true}, c.DeleteSnapshot(ctx, snap.Status.VMID, s.ID)
}

// Remember keeps the answer for this reconcile: the next one asks the cloud again.
func (k *kind) Remember(_ *pcapi.VMSnapshot, obs *observation, s cloud.Snapshot, _ bool) {
	obs.Resource, obs.Owned = &s, true
}

// snapshotter returns the client for the snapshots of a cloud.
func snapshotter(obs *observation) (cloud.Snapshotter, error) {
	c, ok := obs.View.Client.(cloud.Snapshotter)
	if !ok {
		return nil, &cloud.Error{Kind: cloud.Unsupported, Op: "use snapshots", Detail: "this kind of cloud has none"}
	}
	return c, nil
}

// recordVM stores which server the snapshot is of, before the create is sent.
func (k *kind) recordVM(ctx context.Context, snap *pcapi.VMSnapshot, obs *observation) error {
	return reconciler.WriteStatus(ctx, k.Client, snap, func() { snap.Status.VMID, snap.Status.Cloud = obs.vmID, obs.vmCloud })
}
