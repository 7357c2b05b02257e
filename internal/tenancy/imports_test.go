package tenancy

import (
	"strings"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestIdsOfImportableVMsAreComparedAsTheCloudDoes(t *testing.T) {
	const id = "5021d5b7-0a1b-4c2d-8e3f-0123456789ab"
	for name, tc := range map[string]struct {
		of             pcapi.CloudType
		listed, wanted string
		may            bool
	}{
		"vSphere: the same text":                  {pcapi.CloudTypeVSphere, id, id, true},
		"vSphere: upper case in the VM":           {pcapi.CloudTypeVSphere, id, strings.ToUpper(id), true},
		"vSphere: braces in the list":             {pcapi.CloudTypeVSphere, "{" + strings.ToUpper(id) + "}", id, true},
		"vSphere: another id":                     {pcapi.CloudTypeVSphere, id, strings.Replace(id, "5", "6", 1), false},
		"OpenStack: without dashes":               {pcapi.CloudTypeOpenStack, id, strings.ReplaceAll(id, "-", ""), true},
		"REST: the same text":                     {pcapi.CloudTypeREST, "vm-A", "vm-A", true},
		"REST: another case is another id":        {pcapi.CloudTypeREST, "vm-A", "vm-a", false},
		"REST: a UUID in another case is another": {pcapi.CloudTypeREST, id, strings.ToUpper(id), false},
		"no type, which is REST":                  {"", id, strings.ToUpper(id), false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &pcapi.CloudSpec{Type: tc.of, Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: tc.listed, Namespace: "ns"}}}
			if err := MayImport(spec, "ns", tc.wanted); (err == nil) != tc.may {
				t.Errorf("MayImport(%q) with %q listed: %v, want it allowed: %t", tc.wanted, tc.listed, err, tc.may)
			}
			if err := MayImport(spec, "other", tc.wanted); err == nil {
				t.Error("another namespace may import it")
			}
		})
	}
}

func TestImportPolicies(t *testing.T) {
	const none, listed, anyOf, absent = pcapi.ImportPolicyNone, pcapi.ImportPolicyListed, pcapi.ImportPolicyAny, pcapi.ImportPolicy("")
	const yes, no = "", "does not allow imports of "
	const vmList, networkList = "to importable", "to importableNetworks"
	for _, tc := range []struct {
		imports, networkImports pcapi.ImportPolicy
		// Why a namespace may not import what is listed for it, and what is not; empty if it may.
		vm, otherVM, network, otherNetwork string
	}{
		{absent, absent, no, no, no, no},
		{absent, none, no, no, no, no},
		{absent, listed, no, no, yes, networkList},
		{absent, anyOf, no, no, yes, yes},
		{none, absent, no, no, no, no},
		{none, none, no, no, no, no},
		{none, listed, no, no, yes, networkList},
		{none, anyOf, no, no, yes, yes},
		{listed, absent, yes, vmList, yes, networkList},
		{listed, none, yes, vmList, no, no},
		{listed, listed, yes, vmList, yes, networkList},
		{listed, anyOf, yes, vmList, yes, yes},
		{anyOf, absent, yes, yes, yes, yes},
		{anyOf, none, yes, yes, no, no},
		{anyOf, listed, yes, yes, yes, networkList},
		{anyOf, anyOf, yes, yes, yes, yes},
	} {
		t.Run("imports "+string(tc.imports)+", networkImports "+string(tc.networkImports), func(t *testing.T) {
			spec := &pcapi.CloudSpec{
				Imports: tc.imports, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "ns"}},
				NetworkImports: tc.networkImports, ImportableNetworks: []pcapi.ImportableNetwork{{Name: "shared", Namespace: "ns"}},
			}
			for what, check := range map[string]struct {
				err         error
				want, field string
			}{
				"the listed VM":           {MayImport(spec, "ns", "s1"), tc.vm, "VMs: ask its administrator to set imports"},
				"another VM":              {MayImport(spec, "ns", "s2"), tc.otherVM, "VMs: ask its administrator to set imports"},
				"the listed network":      {MayImportNetwork(spec, "ns", "shared"), tc.network, "networks: ask its administrator to set networkImports"},
				"another network":         {MayImportNetwork(spec, "ns", "storage"), tc.otherNetwork, "networks: ask its administrator to set networkImports"},
				"from another, a VM":      {MayImport(spec, "other", "s1"), tc.otherVM, "VMs: ask its administrator to set imports"},
				"from another, a network": {MayImportNetwork(spec, "other", "shared"), tc.otherNetwork, "networks: ask its administrator to set networkImports"},
			} {
				want := check.want
				if want == no {
					want += check.field
				}
				if (check.err == nil) != (want == yes) || check.err != nil && !strings.Contains(check.err.Error()+" ", want) {
					t.Errorf("%s: %v, want %q", what, check.err, want)
				}
			}
		})
	}
}
