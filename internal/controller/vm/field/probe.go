package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
)

var probe = field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		name := controller.ProbeLacking(vm.Spec.ReadinessProbe, caps)
		return when(name != "", name)
	},
}
