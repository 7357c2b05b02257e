package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var folder = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return when(vm.Spec.Folder != "" && !caps.Has(cloud.Folders), "folder")
	},
	Create:         func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.Folder = vm.Spec.Folder },
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string { return named("folder", req.Folder) },
}
