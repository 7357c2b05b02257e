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
