package vm

import (
	"context"
	"slices"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/pending"
)

// servers finds the servers of a VM, and remembers what the cloud answers about them.
type servers struct {
	// cluster is the UID of the cluster, as in owner labels.
	cluster string
	tracker *pending.Tracker
	clock   func() time.Time
}

// look searches the inventory: by id, or among what this process created, by
// owner label, and else by the claimed name.
func (s *servers) look(ctx context.Context, vm *pcapi.VM, obs *observation, id string) error {
	snapshot := obs.View.Snapshot
	obs.Looked = snapshot != nil && !snapshot.Begun.Before(obs.Horizon)
	obs.Incomplete = snapshot != nil && snapshot.Incomplete
	if id != "" {
		server, known := obs.Inventory.Server(id)
		if known {
			s.attribute(vm, obs, server)
		}
		if listed, ok := obs.Inventory.Listed(snapshot, id); ok && s.owns(vm, obs, listed) {
			obs.ListedAt = snapshot.Begun
		}
		if !obs.Owned && !vm.DeletionTimestamp.IsZero() && !keeps(vm) {
			obs.Duplicates = s.duplicates(vm, obs, id)
		}
		return nil
	}
	obs.Candidates = obs.Inventory.Owned(string(vm.UID), s.cluster)
	if created, ok := s.created(vm, obs); ok && len(obs.Candidates) == 0 {
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
		s.lookAltered(vm, obs)
		return nil
	}
	if !obs.Looked || snapshot.Begun.Before(obs.ClaimedAt) {
		return nil
	}
	return lookByName(ctx, vm, obs)
}

// created returns the server that a create of this process made. Its id may be that of another
// server once its deletion was sent and, if no read has confirmed it, in an older listing.
func (s *servers) created(vm *pcapi.VM, obs *observation) (cloud.Server, bool) {
	id, ok := s.tracker.CreatedID(vm.UID)
	if !ok {
		return cloud.Server{}, false
	}
	server, known := obs.Inventory.Server(id)
	removed, _ := s.tracker.RemovedAt(vm.UID)
	name, unconfirmed := s.tracker.Unconfirmed(vm.UID)
	another := obs.Capabilities().Has(cloud.Labels) && server.Labels[inventory.UIDLabel] != "" && !labelledFor(vm, server)
	switch {
	case unconfirmed && (!obs.Looked || another || !cloud.AlikeNames(server.Name, name)):
		return cloud.Server{}, false
	case !removed.IsZero() && !s.owns(vm, obs, server):
		return cloud.Server{}, false
	}
	return server, known
}

// attribute sets the server of the VM, and which object owns it as far as the
// cloud's labels say.
func (s *servers) attribute(vm *pcapi.VM, obs *observation, server cloud.Server) {
	if obs.Resource == nil && vm.Spec.Import != nil {
		obs.How = pcapi.ImportedReason
	}
	obs.Resource = &server
	if !obs.Capabilities().Has(cloud.Labels) {
		obs.Owned = true
		return
	}
	cluster := server.Labels[inventory.ClusterLabel]
	obs.Foreign = cluster != "" && cluster != s.cluster
	uid := server.Labels[inventory.UIDLabel]
	own := uid == string(vm.UID)
	obs.Owned, obs.unlabelling = own && cluster == s.cluster, own && cluster == ""
	obs.altered = !obs.Owned && (own || uid == "" || inventory.AlteredUID(uid, string(vm.UID))) &&
		(cluster == s.cluster || cluster == "" || inventory.AlteredUID(cluster, s.cluster))
	obs.Duplicates = nil
	if obs.Owned {
		obs.Duplicates = s.duplicates(vm, obs, server.ID)
	}
}

// duplicates returns the servers with the owner labels of the VM beside the one with this
// id. Those that are being deleted count only for a VM that is deleted, which they must not
// outlive.
func (s *servers) duplicates(vm *pcapi.VM, obs *observation, id string) []cloud.Server {
	return slices.DeleteFunc(obs.Inventory.Owned(string(vm.UID), s.cluster), func(other cloud.Server) bool {
		return other.ID == id || !s.owned(vm, other) || other.State == cloud.StateDeleting && vm.DeletionTimestamp.IsZero()
	})
}

// owns reports whether a server has the owner labels of the VM or, on a cloud without labels,
// its name, and was not created after the server whose deletion was sent.
func (s *servers) owns(vm *pcapi.VM, obs *observation, server cloud.Server) bool {
	if obs.Capabilities().Has(cloud.Labels) {
		return s.owned(vm, server)
	}
	return cloud.AlikeNames(server.Name, nameInCloud(vm)) && !s.tracker.CreatedLater(vm.UID, server.ID, server.CreatedAt)
}

// remember stores what the cloud answered of a server of the VM, and makes it the observed one.
func (s *servers) remember(vm *pcapi.VM, obs *observation, server cloud.Server, created bool) {
	if last := obs.Resource; last != nil && last.ID == server.ID && server.CPUUtilization == nil {
		server.CPUUtilization = last.CPUUtilization
	}
	removed, _ := s.tracker.RemovedAt(vm.UID)
	switch {
	case created:
		obs.Inventory.RecordCreated(string(vm.UID), server)
	case removed.IsZero() || s.owns(vm, obs, server): // else another object may have it on record
		obs.Inventory.RecordServer(string(vm.UID), server)
	}
	s.attribute(vm, obs, server)
}

// replaced reports whether the cloud has given the recorded id, or that to import, to another server. That one has
// another name, or was created after the id was recorded: by more than the settle time, since the clocks of the
// cloud and of the operator may differ.
func replaced(vm *pcapi.VM, obs *observation, server cloud.Server) bool {
	recorded := vm.Status.CreatedTime
	younger := recorded != nil && server.CreatedAt.After(obs.View.Settings.ShownFrom(recorded.Time))
	return younger || !cloud.AlikeNames(server.Name, nameInCloud(vm))
}

// ofAnother reports whether the labels of a recorded server name another object as
// its owner, or the cloud has given an imported id to another server. What the server is
// and does is not shown then.
func ofAnother(vm *pcapi.VM, obs *observation, server cloud.Server) bool {
	another := server.Labels[inventory.UIDLabel] != "" && !obs.altered || vm.Spec.Import != nil && vm.Status.VMID != "" && replaced(vm, obs, server)
	return !obs.Owned && !observeOnly(vm) && another && obs.Capabilities().Has(cloud.Labels)
}
