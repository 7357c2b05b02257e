package field

import (
	"fmt"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
)

// AntiAffinity is spec.antiAffinity.
var AntiAffinity = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		return when(vm.Spec.AntiAffinity != nil && !caps.Has(cloud.WithAntiAffinity), "antiAffinity")
	},
	// The group of a server is one of this cluster and namespace.
	Create: func(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
		if spec := vm.Spec.AntiAffinity; spec != nil {
			req.AntiAffinity = cloud.AntiAffinity{
				Group: strings.Join([]string{in.Cluster, vm.Namespace, spec.Group}, "/"), Required: spec.Policy != pcapi.AntiAffinityPreferred,
			}
		}
	},
	DescribeCreate: func(vm *pcapi.VM, _ cloud.CreateServer) []string {
		if a := vm.Spec.AntiAffinity; a != nil {
			return []string{fmt.Sprintf("anti-affinity %s group %s", a.Policy, approval.Quoted(a.Group))}
		}
		return nil
	},
}
