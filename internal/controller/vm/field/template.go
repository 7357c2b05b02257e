package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var template = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return when(vm.Spec.Template != "" && !caps.Has(cloud.Sizing), "template")
	},
	Create:         func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.Template = vm.Spec.Template },
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string { return named("template", req.Template) },
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		vm.Status.Image = imageStatus(server.Image, vm.Status.Image)
	},
	Hide: func(vm *pcapi.VM) { vm.Status.Image = nil },
}

// imageStatus returns what the status shows of the image of a server, nil if the cloud shows
// none. An image that has an id keeps its last name while the cloud does not show it: it was
// deleted, or the cloud cannot look it up at the moment.
func imageStatus(image cloud.Image, last *pcapi.VMImageStatus) *pcapi.VMImageStatus {
	if image == (cloud.Image{}) {
		return nil
	}
	if last != nil && last.ID == image.ID && (last.Name == image.Name || image.Name == "") {
		return last
	}
	return &pcapi.VMImageStatus{Name: image.Name, ID: image.ID}
}
