package vmgroup

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// TestChangesOfPlacement holds the rows about zone and antiAffinity in docs/vmgroup.md.
func TestChangesOfPlacement(t *testing.T) {
	zone := func(name string) func(*pcapi.VmGroup) { return func(g *pcapi.VmGroup) { g.Spec.Zone = name } }
	apart := func(policy pcapi.AntiAffinityPolicy) func(*pcapi.VmGroup) {
		return func(g *pcapi.VmGroup) { g.Spec.AntiAffinity = &pcapi.VmGroupAntiAffinity{Policy: policy} }
	}
	none := func(*pcapi.VmGroup) {}
	for name, test := range map[string]struct {
		before, after func(*pcapi.VmGroup)
		replaced      bool
		lacking       string
	}{
		"nothing changes":              {none, none, false, ""},
		"a zone is set":                {none, zone("z"), true, "zone"},
		"another zone":                 {zone("y"), zone("z"), true, "zone"},
		"the zone is removed":          {zone("z"), none, true, ""},
		"an anti-affinity is set":      {none, apart(pcapi.AntiAffinityPreferred), true, "antiAffinity"},
		"another policy":               {apart(pcapi.AntiAffinityPreferred), apart(pcapi.AntiAffinityRequired), true, "antiAffinity"},
		"the default policy is named":  {apart(""), apart(pcapi.AntiAffinityRequired), false, "antiAffinity"},
		"the anti-affinity is removed": {apart(pcapi.AntiAffinityRequired), none, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := templateOf(groupOfSize(1, test.before), "default"), templateOf(groupOfSize(1, test.after), "default")
			member := vm("member", func(vm *pcapi.VM) { vm.Spec.Zone, vm.Spec.AntiAffinity = before.Zone, before.AntiAffinity })
			if revised := before.revision() != after.revision(); revised != test.replaced || after.sizeOnly(member) == test.replaced {
				t.Errorf("revised: %t, in place: %t, want a replacement: %t", revised, after.sizeOnly(member), test.replaced)
			}
			obs := &observation{template: after, reachable: true}
			if got := obs.lacking(); got != test.lacking {
				t.Errorf("a cloud without capabilities lacks %q, want %q", got, test.lacking)
			}
			if obs.caps = cloud.NewCapabilities(cloud.Zones, cloud.WithAntiAffinity); obs.lacking() != "" {
				t.Errorf("a cloud with both capabilities lacks %q", obs.lacking())
			}
		})
	}
}
