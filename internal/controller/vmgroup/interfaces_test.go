package vmgroup

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// attachedTo gives the members of a group an interface on each of these Networks.
func attachedTo(networks ...string) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) {
		g.Spec.Network = &pcapi.VmGroupNetwork{}
		for _, name := range networks {
			g.Spec.Network.Interfaces = append(g.Spec.Network.Interfaces, pcapi.VmGroupInterface{Name: "on-" + name, NetworkRef: pcapi.NetworkReference{Name: name}})
		}
	}
}

// TestChangesOfInterfaces holds the row about network in docs/vmgroup.md.
func TestChangesOfInterfaces(t *testing.T) {
	none := func(*pcapi.VmGroup) {}
	byRef := func(g *pcapi.VmGroup) { g.Spec.NetworkRef = &pcapi.NetworkReference{Name: "a"} }
	for name, test := range map[string]struct {
		before, after func(*pcapi.VmGroup)
		replaced      bool
		lacking       string
	}{
		"nothing changes":            {attachedTo("a", "b"), attachedTo("a", "b"), false, "a second interface in network.interfaces"},
		"interfaces are set":         {none, attachedTo("a"), true, ""},
		"another Network":            {attachedTo("a"), attachedTo("b"), true, ""},
		"another order":              {attachedTo("a", "b"), attachedTo("b", "a"), true, "a second interface in network.interfaces"},
		"an interface is added":      {attachedTo("a"), attachedTo("a", "b"), true, "a second interface in network.interfaces"},
		"the interfaces are removed": {attachedTo("a"), none, true, ""},
		"networkRef instead":         {attachedTo("a"), byRef, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := templateOf(groupOfSize(1, test.before), "default"), templateOf(groupOfSize(1, test.after), "default")
			member := vm("member", func(vm *pcapi.VM) { vm.Spec.Network = before.Network })
			if revised := before.revision() != after.revision(); revised != test.replaced || after.sizeOnly(member) == test.replaced {
				t.Errorf("revised: %t, in place: %t, want a replacement: %t", revised, after.sizeOnly(member), test.replaced)
			}
			obs := &observation{template: after, reachable: true, caps: cloud.NewCapabilities(cloud.Networks)}
			if got := obs.lacking(); got != test.lacking {
				t.Errorf("a cloud with one interface lacks %q, want %q", got, test.lacking)
			}
			obs.caps = cloud.NewCapabilities(cloud.Networks, cloud.WithInterfaces)
			if obs.lacking() != "" {
				t.Errorf("a cloud with several interfaces lacks %q", obs.lacking())
			}
		})
	}
}

func TestMembersThatWaitForNetworksAreNotCreatedWithTheirClaim(t *testing.T) {
	for name, test := range map[string]struct {
		group  func(*pcapi.VmGroup)
		claims bool
	}{
		"no Network":     {func(*pcapi.VmGroup) {}, true},
		"networkRef":     {func(g *pcapi.VmGroup) { g.Spec.NetworkRef = &pcapi.NetworkReference{Name: "a"} }, false},
		"two interfaces": {attachedTo("a", "b"), false},
	} {
		obs := &observation{template: templateOf(groupOfSize(1, test.group), "default"), reachable: true, caps: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels)}
		if got := obs.claimsMembers(); got != test.claims {
			t.Errorf("%s: created with the claim: %t, want %t", name, got, test.claims)
		}
	}
}
