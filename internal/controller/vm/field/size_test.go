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
	own := vmWith(func(vm *pcapi.VM) { vm.Spec.Flavor, vm.Spec.CPU = "small", nil })
	for name, tc := range map[string]struct {
		vm     *pcapi.VM
		server cloud.Server
		want   cloud.Update
	}{
		"the flavor, of another size":           {of("small"), cloud.Server{Flavor: "small", CPU: 1, MemoryMiB: 1024}, nil},
		"another flavor, of the class's size":   {of("small"), cloud.Server{Flavor: "large", CPU: 2, MemoryMiB: 4096}, cloud.Update{cloud.SetFlavor("small")}},
		"a server without a flavor, other size": {of("small"), cloud.Server{CPU: 1, MemoryMiB: 4096}, cloud.Update{cloud.SetCPU(2)}},
		"its own flavor, another one":           {own, cloud.Server{Flavor: "large", CPU: 2, MemoryMiB: 4096}, cloud.Update{cloud.SetFlavor("small")}},
		"its own flavor, the same":              {own, cloud.Server{Flavor: "small", CPU: 1, MemoryMiB: 1024}, nil},
		"its own flavor, and none is shown":     {own, cloud.Server{CPU: 1, MemoryMiB: 1024}, nil},
		"its own flavor, a resize goes on":      {own, cloud.Server{Flavor: cloud.FlavorPending}, cloud.Update{cloud.SetFlavor("small")}},
		"a class without a flavor, other size":  {of(""), cloud.Server{Flavor: "small", CPU: 2, MemoryMiB: 1024}, cloud.Update{cloud.SetMemory(4096)}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "change", tc.want, sizeChange(tc.vm, tc.server)) })
	}
}

func TestStatusShowsTheFlavorAndNoResize(t *testing.T) {
	small := &pcapi.VMHardwareStatus{CPU: 1, Flavor: "small"}
	for name, tc := range map[string]struct {
		server cloud.Server
		last   *pcapi.VMHardwareStatus
		want   *pcapi.VMHardwareStatus
	}{
		"a flavor":                           {cloud.Server{CPU: 1, Flavor: "small"}, nil, small},
		"a flavor and no size":               {cloud.Server{Flavor: "small"}, nil, &pcapi.VMHardwareStatus{Flavor: "small"}},
		"another flavor of the same size":    {cloud.Server{CPU: 1, Flavor: "tiny"}, small, &pcapi.VMHardwareStatus{CPU: 1, Flavor: "tiny"}},
		"a resize that is not complete":      {cloud.Server{CPU: 1, Flavor: cloud.FlavorPending}, small, small},
		"such a resize of an unknown server": {cloud.Server{CPU: 1, Flavor: cloud.FlavorPending}, nil, &pcapi.VMHardwareStatus{CPU: 1}},
		"no flavor any more":                 {cloud.Server{CPU: 1}, small, &pcapi.VMHardwareStatus{CPU: 1}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "status.hardware", tc.want, hardwareStatus(tc.server, tc.last)) })
	}
}
