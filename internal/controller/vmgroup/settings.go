package vmgroup

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// settings are fields of members beside those that they are created from. They are not part of
// the revision: a change of them replaces and restarts no server.
type settings struct {
	Probe           *pcapi.VMReadinessProbe
	PowerOffMode    pcapi.PowerOffMode
	PowerOffTimeout *metav1.Duration
	Tags            pcapi.VMTags
}

func settingsOf(g *pcapi.VmGroup) settings {
	return settings{Probe: g.Spec.ReadinessProbe, PowerOffMode: g.Spec.PowerOffMode, PowerOffTimeout: g.Spec.PowerOffTimeout, Tags: g.Spec.Tags}
}

// match reports whether a member has the settings.
func (s settings) match(vm *pcapi.VM) bool {
	return equality.Semantic.DeepEqual(vm.Spec.ReadinessProbe, s.Probe) &&
		vm.Spec.PowerOffMode == s.PowerOffMode && ptr.Equal(vm.Spec.PowerOffTimeout, s.PowerOffTimeout) && maps.Equal(vm.Spec.Tags, s.Tags)
}

// apply gives a member the settings.
func (s settings) apply(vm *pcapi.VM) {
	vm.Spec.ReadinessProbe, vm.Spec.PowerOffMode, vm.Spec.PowerOffTimeout = s.Probe.DeepCopy(), s.PowerOffMode, clone(s.PowerOffTimeout)
	vm.Spec.Tags = maps.Clone(s.Tags)
}
