package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
)

var probe = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		field := controller.ProbeLacking(vm.Spec.ReadinessProbe, caps)
		return when(field != "", field)
	},
}
