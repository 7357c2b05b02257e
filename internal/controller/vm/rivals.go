package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/tenancy"
)

var errRival = errors.New("another VM object has this vmname or server on the same cloud: choose another, or delete that object")

// observeSharers finds other VMs that record the same server: two that wanted
// one name when their manager stopped, or a status that somebody edited. The
// server belongs to the oldest, and is not deleted as long as another of them
// exists. Where the cloud has labels, they say which VM owns the server.
func (o *observer) observeSharers(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	sharers, err := o.others(ctx, vm, obs, serverIndex, vm.Status.VMID, func(other *pcapi.VM) bool {
		shares := other.Status.VMID == vm.Status.VMID && other.DeletionTimestamp.IsZero() && mayHold(other, vm, *obs.Resource)
		return shares && (!vm.DeletionTimestamp.IsZero() || older(other, vm))
	})
	if len(sharers) > 0 {
		obs.rival = errRival
	}
	return err
}

// observeNextOwner finds the VM to which the cloud has given the id of a deleted VM's server: it records the id, and
// the server has its owner labels, so that the server of the deleted VM is gone.
func (o *observer) observeNextOwner(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	owners, err := o.others(ctx, vm, obs, serverIndex, vm.Status.VMID, func(other *pcapi.VM) bool {
		return other.Status.VMID == vm.Status.VMID && o.servers.owned(other, *obs.Resource)
	})
	if len(owners) > 0 {
		obs.MarkGone()
	}
	return err
}

// mayHold reports whether a server whose id two VMs record may be the other's: its name does
// not show that it is vm's alone. The cloud may have given the id of one server to the other.
func mayHold(other, vm *pcapi.VM, s cloud.Server) bool {
	return cloud.AlikeNames(s.Name, nameInCloud(other)) || !cloud.AlikeNames(s.Name, nameInCloud(vm))
}

// observeRivals finds other VMs that have the name or the server. Names matter
// only where nothing better says which VM owns a server.
func (o *observer) observeRivals(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	rivals, err := o.dropTaken(ctx, vm, obs)
	if err != nil {
		return err
	}
	if vm.Spec.Import != nil {
		importers, err := o.others(ctx, vm, obs, serverIndex, vm.Spec.Import.VMID, func(other *pcapi.VM) bool {
			return !released(other) && (other.Status.VMID != "" || older(other, vm))
		})
		setRivals(vm, obs, append(rivals, importers...))
		return err
	}
	if obs.Capabilities().Has(cloud.Labels) || !obs.Capabilities().Has(cloud.UniqueNames) {
		setRivals(vm, obs, rivals)
		return nil
	}
	named, err := o.others(ctx, vm, obs, nameIndex, cloud.NormalName(vm.Spec.VMName), func(other *pcapi.VM) bool { return rivalsByName(other, vm, obs) })
	setRivals(vm, obs, append(rivals, named...))
	if obs.rival != nil && obs.Proof == external.NameProof {
		obs.contested = append(obs.contested, obs.Candidates...)
		obs.Candidates = nil
	}
	return err
}

func setRivals(vm *pcapi.VM, obs *observation, rivals []pcapi.VM) {
	if len(rivals) > 0 {
		obs.rival, obs.freeSoon = errRival, freeSoon(vm, rivals)
	}
}

// rivalsByName reports whether another VM, whose name is alike, has the name. Where
// names matter, the status holds the claim: users can write finalizers.
func rivalsByName(other, vm *pcapi.VM, obs *observation) bool {
	if obs.Capabilities().Has(cloud.FolderNames) && other.Spec.Folder != vm.Spec.Folder {
		return false // names are unique per folder
	}
	recorded := other.Status.VMID != "" && !released(other)
	claimed := other.Status.NameInCloud != "" && !released(other)
	if other.Spec.VMName == vm.Spec.VMName {
		return recorded || (claimed && (obs.Claimed == "" || older(other, vm)))
	}
	return obs.Proof == external.NameProof && claimed && !recorded && mayOwn(other, vm, obs)
}

// mayOwn reports whether the candidate whose name is alike those of both VMs is rather
// the other's: it has exactly its name, or the other is older.
func mayOwn(other, vm *pcapi.VM, obs *observation) bool {
	if len(obs.Candidates) == 0 || obs.Candidates[0].Name == vm.Spec.VMName {
		return false
	}
	return obs.Candidates[0].Name == other.Spec.VMName || older(other, vm)
}

// dropTaken removes the candidates that other VMs have on record. It returns these VMs if names are unique.
func (o *observer) dropTaken(ctx context.Context, vm *pcapi.VM, obs *observation) (rivals []pcapi.VM, err error) {
	if len(obs.Candidates) == 0 || obs.Proof == external.OwnerProof {
		return nil, nil
	}
	mine := obs.Candidates[:0]
	for _, s := range obs.Candidates {
		others, err := o.others(ctx, vm, obs, serverIndex, s.ID, func(other *pcapi.VM) bool { return mayHold(other, vm, s) })
		if err != nil {
			return nil, err
		}
		if len(others) == 0 {
			mine = append(mine, s)
			continue
		}
		if !slices.ContainsFunc(others, keepsServer) {
			obs.contested = append(obs.contested, s)
		}
		if obs.Capabilities().Has(cloud.UniqueNames) && cloud.AlikeNames(s.Name, obs.Claimed) {
			rivals = append(rivals, others...)
		}
	}
	obs.Candidates = mine
	return rivals, nil
}

// keepsServer reports whether a VM that has a server on record is not being deleted: the record of one that is may be
// of a server that is gone, and whose id the cloud has given to another one.
func keepsServer(vm pcapi.VM) bool {
	return vm.Status.VMID != "" && vm.DeletionTimestamp.IsZero()
}

// observeHolders finds out whether a name that the cloud reports as taken is only that of VMs which are being deleted.
func (o *observer) observeHolders(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if !cloud.Is(obs.nameErr, cloud.Taken) {
		return nil
	}
	holders, err := o.others(ctx, vm, obs, nameIndex, cloud.NormalName(vm.Spec.VMName), func(other *pcapi.VM) bool {
		return !released(other) && o.hasName(other) && (!obs.Capabilities().Has(cloud.FolderNames) || other.Spec.Folder == vm.Spec.Folder)
	})
	obs.freeSoon = freeSoon(vm, holders)
	return err
}

// hasName reports whether the status of a VM says that its server may have the name. Users can write finalizers.
func (o *observer) hasName(vm *pcapi.VM) bool {
	return vm.Status.VMID != "" || vm.Status.NameInCloud != "" || o.CreateOpen(vm)
}

// freeSoon returns the outcome for a VM that wants what holders have, if all of these are being deleted; else nil. It
// names none of another namespace.
func freeSoon(vm *pcapi.VM, holders []pcapi.VM) error {
	if len(holders) == 0 || slices.ContainsFunc(holders, func(holder pcapi.VM) bool { return !leaving(&holder) }) {
		return nil
	}
	who := "a VM object of another namespace"
	for i := range holders {
		if holders[i].Namespace == vm.Namespace {
			who = fmt.Sprintf("VM %q", holders[i].Name)
		}
	}
	what := fmt.Sprintf("the name %q", vm.Spec.VMName)
	if vm.Spec.Import != nil {
		what = "VM " + vm.Spec.Import.VMID
	}
	return awaitDeletion(what, who)
}

// others lists the VMs but vm that accept accepts and an index holds under a value of this
// observation's Cloud, or of another Cloud object for the same cloud, abandoned ones
// included. VMs that name no Cloud and use none yet are indexed without one: which they
// use is decided here. A VM whose status records nothing does not count if its
// namespace may not use its Cloud.
func (o *observer) others(ctx context.Context, vm *pcapi.VM, obs *observation, index, value string, accept func(*pcapi.VM) bool) ([]pcapi.VM, error) {
	same, err := tenancy.SameCloud(ctx, o.Client, obs.Cloud)
	if err != nil {
		return nil, err
	}
	if index == serverIndex {
		value = cloud.CanonicalUUID(value)
	}
	var others []pcapi.VM
	for _, on := range append(same, unresolved) {
		var list pcapi.VMList
		wanted := key(on, value)
		err := o.Client.List(ctx, &list, matching(index, wanted), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			return nil, fmt.Errorf("list VMs by %s: %w", index, err)
		}
		for _, abandoned := range o.Abandoned() {
			if has(abandoned, index, wanted) {
				list.Items = append(list.Items, *abandoned)
			}
		}
		for i := range list.Items {
			other := &list.Items[i]
			if other.UID == vm.UID || !has(other, index, wanted) || !accept(other) {
				continue
			}
			counts, err := o.counts(ctx, other, on, same)
			if err != nil {
				return nil, err
			}
			if counts {
				others = append(others, *other)
			}
		}
	}
	return others, nil
}

// counts reports whether a VM that is indexed under a Cloud uses one of same, and may.
func (o *observer) counts(ctx context.Context, vm *pcapi.VM, on string, same []string) (bool, error) {
	if vm.Status.Cloud != "" {
		return slices.Contains(same, vm.Status.Cloud), nil
	}
	if on == unresolved {
		uses, err := tenancy.CloudFor(ctx, o.Client, vm.Namespace, vm.Spec.CloudRef)
		if err != nil {
			return false, err
		}
		if on = uses; !slices.Contains(same, on) {
			return false, nil
		}
	}
	allowed, err := tenancy.Allowed(ctx, o.Client, vm.Namespace, on)
	if !allowed || err != nil || vm.Spec.Import == nil || vm.Status.VMID != "" {
		return allowed, err
	}
	c, err := tenancy.Open(ctx, o.Client, vm.Namespace, on)
	return err == nil && tenancy.MayImport(&c.Spec, vm.Namespace, vm.Spec.Import.VMID) == nil, err
}
