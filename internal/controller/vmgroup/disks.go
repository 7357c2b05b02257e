package vmgroup

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// disksOf returns the disks of a group's members in the order of their names: their order in
// the spec is not part of the revision, and neither are the units of their sizes.
func disksOf(g *pcapi.VmGroup) []pcapi.VMDisk {
	disks := slices.Clone(g.Spec.Disks)
	for i := range disks {
		disks[i].Size = disks[i].Size.Canonical()
	}
	slices.SortFunc(disks, func(a, b pcapi.VMDisk) int { return cmp.Compare(a.Name, b.Name) })
	return disks
}

// withoutPolicies returns the disks without what happens to them when their VM is deleted.
func withoutPolicies(disks []pcapi.VMDisk) []pcapi.VMDisk {
	disks = slices.Clone(disks)
	for i := range disks {
		disks[i].DeletionPolicy = ""
	}
	return disks
}

// withPolicies returns the disks of a member with what the template says happens to them when the member is deleted.
func (t template) withPolicies(disks []pcapi.VMDisk) []pcapi.VMDisk {
	disks = slices.Clone(disks)
	for i := range disks {
		if want := diskNamed(t.Disks, disks[i].Name); want != nil {
			disks[i].DeletionPolicy = want.DeletionPolicy
		}
	}
	return disks
}

// diskNamed returns the disk of this name, nil if there is none.
func diskNamed(disks []pcapi.VMDisk, name string) *pcapi.VMDisk {
	if i := slices.IndexFunc(disks, func(d pcapi.VMDisk) bool { return d.Name == name }); i >= 0 {
		return &disks[i]
	}
	return nil
}

// contains reports whether the first disks include the others, each with its type and at least its size.
func contains(disks, others []pcapi.VMDisk) bool {
	return !slices.ContainsFunc(others, func(other pcapi.VMDisk) bool {
		disk := diskNamed(disks, other.Name)
		return disk == nil || disk.Type != other.Type || disk.Size.Bytes() < other.Size.Bytes()
	})
}

// rootDiskOf returns the root disk of a group's members. The unit of its size is not part of the revision.
func rootDiskOf(g *pcapi.VmGroup) *pcapi.VMRootDisk {
	root := g.Spec.RootDisk.DeepCopy()
	if root != nil {
		root.Size = root.Size.Canonical()
	}
	return root
}

// rooted reports whether the first root disk is as large as the other, and of the same type.
func rooted(root, other *pcapi.VMRootDisk) bool {
	has, wants := ptr.Deref(root, pcapi.VMRootDisk{}), ptr.Deref(other, pcapi.VMRootDisk{})
	return has.Type == wants.Type && has.Size.Bytes() >= wants.Size.Bytes()
}

// rootFits reports whether the root disk of a member has the type of that of the template, and is not larger: it cannot
// shrink.
func (t template) rootFits(vm *pcapi.VM) bool {
	if root := vm.Status.RootDisk; root != nil && t.RootDisk != nil && t.RootDisk.Size != "" {
		if pcapi.VMDiskSize(root.Size).Bytes() > t.RootDisk.Size.Bytes() {
			return false
		}
	}
	return rooted(t.RootDisk, vm.Spec.RootDisk)
}

// withDisks returns the disks of a member with those of the template. Disks of a member do
// not shrink, and are not removed.
func (t template) withDisks(disks []pcapi.VMDisk) []pcapi.VMDisk {
	merged := slices.Clone(disks)
	for _, want := range t.Disks {
		switch disk := diskNamed(merged, want.Name); {
		case disk == nil:
			merged = append(merged, want)
		case disk.Size.Bytes() < want.Size.Bytes():
			disk.Size = want.Size
		}
	}
	return merged
}
