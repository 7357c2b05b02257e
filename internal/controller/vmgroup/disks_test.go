package vmgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func diskOf(name string, size pcapi.VMDiskSize) pcapi.VMDisk {
	return pcapi.VMDisk{Name: name, Size: size}
}

// TestChangesOfDisks holds the table of changes in docs/vmgroup.md.
func TestChangesOfDisks(t *testing.T) {
	data, logs := diskOf("data", "10Gi"), diskOf("logs", "2Gi")
	fast := pcapi.VMDisk{Name: "data", Size: "10Gi", Type: "fast"}
	for name, test := range map[string]struct {
		member, group []pcapi.VMDisk
		// revised: the member has another revision than the group then.
		revised, inPlace, kept bool
		want                   []pcapi.VMDisk
	}{
		"none":                             {nil, nil, false, true, true, nil},
		"the same":                         {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{data, logs}, false, true, true, []pcapi.VMDisk{data, logs}},
		"another order":                    {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{logs, data}, false, true, true, []pcapi.VMDisk{data, logs}},
		"the same size in another unit":    {[]pcapi.VMDisk{diskOf("data", "2Ti")}, []pcapi.VMDisk{diskOf("data", "2048Gi")}, false, true, true, []pcapi.VMDisk{diskOf("data", "2Ti")}},
		"one is added":                     {[]pcapi.VMDisk{data}, []pcapi.VMDisk{data, logs}, true, true, false, []pcapi.VMDisk{data, logs}},
		"one grows":                        {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{diskOf("data", "1Ti"), logs}, true, true, false, []pcapi.VMDisk{diskOf("data", "1Ti"), logs}},
		"one is removed: replaced":         {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{data}, true, false, true, []pcapi.VMDisk{data, logs}},
		"one shrinks: replaced":            {[]pcapi.VMDisk{data}, []pcapi.VMDisk{diskOf("data", "9Gi")}, true, false, true, []pcapi.VMDisk{data}},
		"one grows, one shrinks: replaced": {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{diskOf("data", "11Gi"), diskOf("logs", "1Gi")}, true, false, false, []pcapi.VMDisk{diskOf("data", "11Gi"), logs}},
		"a type is changed: replaced":      {[]pcapi.VMDisk{fast}, []pcapi.VMDisk{data}, true, false, false, []pcapi.VMDisk{fast}},
		"one of a type is added":           {nil, []pcapi.VMDisk{fast}, true, true, false, []pcapi.VMDisk{fast}},
		"one is replaced by another one":   {[]pcapi.VMDisk{data}, []pcapi.VMDisk{logs}, true, false, false, []pcapi.VMDisk{data, logs}},
	} {
		t.Run(name, func(t *testing.T) {
			disks := func(of []pcapi.VMDisk) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) { g.Spec.Disks = of }
			}
			before, after := templateOf(groupOfSize(1, disks(test.member)), "default"), templateOf(groupOfSize(1, disks(test.group)), "default")
			member := vm("member", func(vm *pcapi.VM) { vm.Spec.Disks = before.Disks })
			got := []bool{before.revision() != after.revision(), after.sizeOnly(member), contains(member.Spec.Disks, after.Disks)}
			if diff := cmp.Diff([]bool{test.revised, test.inPlace, test.kept}, got); diff != "" {
				t.Errorf("revised, in place, kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, after.withDisks(member.Spec.Disks)); diff != "" {
				t.Errorf("disks of a member that is changed (-want +got):\n%s", diff)
			}
			if test.kept {
				return
			}
			if after.changeable(member, cloud.NewCapabilities(cloud.Resize)) || !after.changeable(member, cloud.NewCapabilities(cloud.WithDisks)) {
				t.Error("the disks can be changed without the capability disks, or not with it")
			}
		})
	}
}

// A change of what happens to disks replaces and restarts no member, and reaches members of older revisions.
func TestChangesOfTheDeletionPolicyOfDisks(t *testing.T) {
	keep := func(disk pcapi.VMDisk, policy pcapi.VMDiskDeletionPolicy) pcapi.VMDisk {
		disk.DeletionPolicy = policy
		return disk
	}
	data, logs := diskOf("data", "10Gi"), diskOf("logs", "2Gi")
	for name, test := range map[string]struct {
		member, group, want []pcapi.VMDisk
	}{
		"kept":                                 {[]pcapi.VMDisk{data, logs}, []pcapi.VMDisk{keep(data, pcapi.VMDiskKeep), logs}, []pcapi.VMDisk{keep(data, pcapi.VMDiskKeep), logs}},
		"not kept any more":                    {[]pcapi.VMDisk{keep(data, pcapi.VMDiskKeep)}, []pcapi.VMDisk{data}, []pcapi.VMDisk{data}},
		"one that the group does not have":     {[]pcapi.VMDisk{keep(data, pcapi.VMDiskKeep)}, nil, []pcapi.VMDisk{keep(data, pcapi.VMDiskKeep)}},
		"one that the member does not have":    {nil, []pcapi.VMDisk{keep(data, pcapi.VMDiskKeep)}, nil},
		"a member of another revision, larger": {[]pcapi.VMDisk{diskOf("data", "1Ti")}, []pcapi.VMDisk{keep(data, pcapi.VMDiskKeep)}, []pcapi.VMDisk{keep(diskOf("data", "1Ti"), pcapi.VMDiskKeep)}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(disks []pcapi.VMDisk) template {
				return templateOf(groupOfSize(1, func(g *pcapi.VmGroup) { g.Spec.Disks = disks }), "default")
			}
			member := vm("member", func(vm *pcapi.VM) { vm.Spec.Disks = test.member })
			after := of(test.group)
			if differs := !cmp.Equal(test.want, test.member); after.shared(member) == differs {
				t.Errorf("the member is as the template says: %t", !differs)
			}
			if plain := of(withoutPolicies(test.group)); plain.revision() != after.revision() {
				t.Error("the policy is part of the revision")
			}
			after.share(member)
			if diff := cmp.Diff(test.want, member.Spec.Disks); diff != "" || !after.shared(member) {
				t.Errorf("disks of the member (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangesOfRootDisks(t *testing.T) {
	root := func(size pcapi.VMDiskSize, of pcapi.VMDiskType) *pcapi.VMRootDisk {
		return &pcapi.VMRootDisk{Size: size, Type: of}
	}
	for name, test := range map[string]struct {
		member, group *pcapi.VMRootDisk
		// shown is the size in the status of the member.
		shown                  string
		revised, inPlace, kept bool
	}{
		"none":                                   {nil, nil, "10Gi", false, true, true},
		"the same":                               {root("20Gi", "fast"), root("20Gi", "fast"), "20Gi", false, true, true},
		"the same size in another unit":          {root("2Ti", ""), root("2048Gi", ""), "2Ti", false, true, true},
		"it grows":                               {root("20Gi", "fast"), root("30Gi", "fast"), "20Gi", true, true, false},
		"a size is added":                        {nil, root("20Gi", ""), "10Gi", true, true, false},
		"a size is added that is smaller":        {nil, root("20Gi", ""), "30Gi", true, false, false},
		"a size is added, and none is shown":     {nil, root("20Gi", ""), "", true, true, false},
		"it shrinks: replaced":                   {root("20Gi", ""), root("19Gi", ""), "20Gi", true, false, true},
		"the size is removed: replaced":          {root("20Gi", "fast"), root("", "fast"), "20Gi", true, false, true},
		"it is removed: replaced":                {root("20Gi", ""), nil, "20Gi", true, false, true},
		"the type is changed: replaced":          {root("20Gi", "fast"), root("20Gi", "slow"), "20Gi", true, false, false},
		"the type is added: replaced":            {root("20Gi", ""), root("30Gi", "slow"), "20Gi", true, false, false},
		"it grows, and is larger in the cloud":   {root("20Gi", ""), root("30Gi", ""), "40Gi", true, false, false},
		"a type alone, and a size: it is larger": {root("", "fast"), root("30Gi", "fast"), "", true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(root *pcapi.VMRootDisk) template {
				return templateOf(groupOfSize(1, func(g *pcapi.VmGroup) { g.Spec.RootDisk = root }), "default")
			}
			before, after := of(test.member), of(test.group)
			member := vm("member", func(vm *pcapi.VM) {
				vm.Spec.RootDisk, vm.Status.RootDisk = before.RootDisk, &pcapi.VMRootDiskStatus{Size: test.shown}
			})
			got := []bool{before.revision() != after.revision(), after.sizeOnly(member), after.stored(member)}
			if diff := cmp.Diff([]bool{test.revised, test.inPlace, test.kept}, got); diff != "" {
				t.Errorf("revised, in place, kept (-want +got):\n%s", diff)
			}
			if !test.kept && (after.changeable(member, cloud.NewCapabilities(cloud.WithDisks)) || !after.changeable(member, cloud.NewCapabilities(cloud.WithRootDisk, cloud.Resize))) {
				t.Error("the root disk can be changed without the capability rootDisk, or not with it")
			}
		})
	}
}
