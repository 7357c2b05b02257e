package vm

import (
	"cmp"
	"context"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

// lookByName searches the inventory by the claimed name. A server whose name is only
// alike is that of the claim if the cloud compares names so: if the name is taken, though
// no server has it. One whose name the cloud may have made of it may be that of the claim.
func lookByName(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if obs.ClaimProved && nameProves(obs.Capabilities()) {
		obs.Proof = external.NameProof
	}
	if obs.Candidates = obs.Inventory.Named(obs.Claimed); len(obs.Candidates) > 0 {
		dropPredecessors(vm, obs)
		return nil
	}
	alike, chosen := obs.Inventory.NamedAlike(obs.Claimed), chosenFrom(vm, obs)
	switch {
	case len(alike)+len(chosen) == 0:
		return nil
	case obs.Proof == external.NoProof && (len(alike) > 0 || !obs.Capabilities().Has(cloud.UniqueNames)):
		obs.Candidates = slices.Concat(alike, chosen)
		return nil
	case obs.SettleTimeLeft > 0 || !obs.Available(): // a server with the name itself may show yet
		return nil
	}
	err := obs.View.Client.CheckName(ctx, cloud.Name{Name: obs.Claimed})
	switch {
	case err == nil && len(alike) == 0: // nothing has the name
		return nil
	case err == nil:
		obs.Proof, obs.Candidates = external.NoProof, alike
		return nil
	case !cloud.Is(err, cloud.Taken):
		return err
	}
	if obs.Candidates = alike; len(alike) > 0 {
		return nil
	}
	if obs.Proof = external.NoProof; vm.DeletionTimestamp.IsZero() { // else the name keeps the VM
		obs.Candidates = chosen
	}
	return nil
}

// chosenFrom returns the servers with a name that the cloud may have made of the claimed one, unless it created them
// more than the settle time before the VM object. They are looked for, among all servers, only once the settle time has
// passed, since nothing is decided before, and for a claim that a create may have followed.
func chosenFrom(vm *pcapi.VM, obs *observation) []cloud.Server {
	if obs.SettleTimeLeft > 0 || !obs.ClaimProved {
		return nil
	}
	first := vm.CreationTimestamp.Add(-obs.View.Settings.SettleTime)
	return slices.DeleteFunc(obs.Inventory.ChosenFrom(obs.Claimed), func(s cloud.Server) bool {
		return !s.CreatedAt.IsZero() && s.CreatedAt.Before(first)
	})
}

// dropPredecessors drops candidates that may have had the name before the claim: a
// listing may still show a server that is deleted. Until the settle time has passed,
// only one that was created after the VM object counts.
func dropPredecessors(vm *pcapi.VM, obs *observation) {
	if obs.Proof == external.NoProof || !vm.DeletionTimestamp.IsZero() && obs.SettleTimeLeft == 0 {
		return
	}
	obs.Candidates = slices.DeleteFunc(obs.Candidates, func(s cloud.Server) bool {
		dying := s.State == cloud.StateDeleting && vm.DeletionTimestamp.IsZero()
		return dying || (obs.SettleTimeLeft > 0 && s.CreatedAt.Before(vm.CreationTimestamp.Time))
	})
}

// nameProves reports whether a server with a claimed name is that of the claim: no
// second one can exist, and nobody else creates one. Where names are unique per folder
// they prove nothing: the claim does not hold the folder, which can be edited.
func nameProves(caps cloud.Capabilities) bool {
	return caps.Has(cloud.UniqueNames) && caps.Has(cloud.ExclusiveNames) && !caps.Has(cloud.FolderNames)
}

// unlisted reports whether no listing shows a server with the name of the VM, or a form
// of it that the cloud may have chosen, where names are unique.
func unlisted(vm *pcapi.VM, obs *observation) bool {
	return len(named(obs, vm.Spec.VMName, vm.Spec.Folder)) == 0
}

// named returns the listed servers with a name, or a form of it that the cloud may have chosen, where
// that is to be unique.
func named(obs *observation, name, folder string) []cloud.Server {
	found := slices.Concat(obs.Inventory.Named(name), obs.Inventory.NamedAlike(name))
	return slices.DeleteFunc(found, func(s cloud.Server) bool {
		return obs.Capabilities().Has(cloud.FolderNames) && s.Folder != folder
	})
}

// nameInCloud returns the name that the server of a VM has in the cloud, or is to have.
func nameInCloud(vm *pcapi.VM) string { return cmp.Or(vm.Status.NameInCloud, vm.Spec.VMName) }

// wantedName returns the name that the recorded server of a VM must have: the one that the cloud
// gave it, unless the spec asks for another one since the create.
func wantedName(vm *pcapi.VM) string {
	if renamed(vm) {
		return vm.Spec.VMName
	}
	return nameInCloud(vm)
}

// renamed reports whether vmname was edited after the create of the server was sent.
func renamed(vm *pcapi.VM) bool {
	return cmp.Or(vm.Annotations[pcapi.ClaimedNameAnnotation], vm.Spec.VMName) != vm.Spec.VMName
}
