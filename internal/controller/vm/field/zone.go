package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Zone is spec.zone.
var Zone = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return when(vm.Spec.Zone != "" && !caps.Has(cloud.Zones), "zone")
	},
	Create:         func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.Zone = vm.Spec.Zone },
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string { return named("zone", req.Zone) },
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		vm.Status.Host, vm.Status.Zone = server.Host, server.Zone
	},
	Hide:  func(vm *pcapi.VM) { vm.Status.Host, vm.Status.Zone = "", "" },
	Shown: func(vm *pcapi.VM, server *cloud.Server) { server.Zone = vm.Status.Zone },
}
