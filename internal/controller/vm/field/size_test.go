package field

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestSizeChangeComparesFlavorsWhereBothHaveOne(t *testing.T) {
	of := func(flavor string) *pcapi.VM {
		return vmWith(func(vm *pcapi.VM) {
			vm.Spec.ClassName, vm.Spec.CPU = "c1", nil
			vm.Status.Class = &pcapi.VMClassStatus{Name: "c1", Flavor: flavor, Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(2), Memory: *pcapi.GiB(4)}}
		})
	}
	for name, tc := range map[string]struct {
		vm     *pcapi.VM
		server cloud.Server
		want   cloud.Update
	}{
		"the flavor, of another size":           {of("small"), cloud.Server{Flavor: "small", CPU: 1, MemoryMiB: 1024}, nil},
		"another flavor, of the class's size":   {of("small"), cloud.Server{Flavor: "large", CPU: 2, MemoryMiB: 4096}, cloud.Update{cloud.SetFlavor("small")}},
		"a server without a flavor, other size": {of("small"), cloud.Server{CPU: 1, MemoryMiB: 4096}, cloud.Update{cloud.SetCPU(2)}},
		"a class without a flavor, other size":  {of(""), cloud.Server{Flavor: "small", CPU: 2, MemoryMiB: 1024}, cloud.Update{cloud.SetMemory(4096)}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "change", tc.want, sizeChange(tc.vm, tc.server)) })
	}
}
