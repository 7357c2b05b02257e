package vmgroup

import (
	"cmp"
	"slices"

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

// diskNamed returns the disk of this name, nil if there is none.
func diskNamed(disks []pcapi.VMDisk, name string) *pcapi.VMDisk {
	if i := slices.IndexFunc(disks, func(d pcapi.VMDisk) bool { return d.Name == name }); i >= 0 {
		return &disks[i]
	}
	return nil
}

// contains reports whether the first disks include the others, each with at least its size.
func contains(disks, others []pcapi.VMDisk) bool {
	return !slices.ContainsFunc(others, func(other pcapi.VMDisk) bool {
		disk := diskNamed(disks, other.Name)
		return disk == nil || disk.Size.Bytes() < other.Size.Bytes()
	})
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
