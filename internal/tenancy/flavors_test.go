package tenancy

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestFlavorsThatVMsMayName(t *testing.T) {
	openStack := func(selectable ...string) pcapi.CloudSpec {
		return pcapi.CloudSpec{Type: pcapi.CloudTypeOpenStack, OpenStack: &pcapi.OpenStackCloud{Flavors: pcapi.OpenStackFlavors{Default: "m1.small", Selectable: selectable}}}
	}
	for name, tc := range map[string]struct {
		spec   pcapi.CloudSpec
		flavor string
		may    bool
	}{
		"it is listed":                       {openStack("g1", "m1.small"), "m1.small", true},
		"a pattern matches it":               {openStack("m1.*"), "m1.small", true},
		"others are listed":                  {openStack("m1.*"), "g1.large", false},
		"none is listed":                     {openStack(), "m1.large", false},
		"the default one, and it is not":     {openStack(), "m1.small", false},
		"another type of cloud has no names": {pcapi.CloudSpec{Type: pcapi.CloudTypeREST}, "m1.small", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := MayHaveFlavor(&tc.spec, tc.flavor); (err == nil) != tc.may {
				t.Errorf("MayHaveFlavor(%q) = %v, want it allowed: %t", tc.flavor, err, tc.may)
			}
		})
	}
}
