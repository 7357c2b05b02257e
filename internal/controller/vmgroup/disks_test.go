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
