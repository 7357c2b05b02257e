package tenancy

import (
	"cmp"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// NetworkImports returns which networks of a Cloud may be imported.
func NetworkImports(spec *pcapi.CloudSpec) pcapi.ImportPolicy {
	return cmp.Or(spec.NetworkImports, spec.Imports)
}

// MayImport returns why a namespace may not import a server; nil if it may.
func MayImport(spec *pcapi.CloudSpec, namespace, id string) error {
	listed := slices.ContainsFunc(spec.Importable, func(entry pcapi.ImportableVM) bool {
		return entry.Namespace == namespace && sameID(spec.Type, entry.VMID, id)
	})
	return mayImport(spec.Imports, listed, "VM", id, "imports", "importable")
}

// MayImportNetwork returns why a namespace may not import the network of a name; nil if it may.
// It does not depend on whether the cloud has such a network.
func MayImportNetwork(spec *pcapi.CloudSpec, namespace, name string) error {
	listed := slices.Contains(spec.ImportableNetworks, pcapi.ImportableNetwork{Name: name, Namespace: namespace})
	return mayImport(NetworkImports(spec), listed, "network", name, "networkImports", "importableNetworks")
}

// mayImport returns why a policy does not allow an import, with the fields of the Cloud that hold the policy and its
// list; nil if it does.
func mayImport(policy pcapi.ImportPolicy, listed bool, kind, of, field, list string) error {
	switch policy {
	case pcapi.ImportPolicyAny:
		return nil
	case pcapi.ImportPolicyListed:
		if listed {
			return nil
		}
		return fmt.Errorf("%s %q is not among those that this namespace may import: ask the administrator of the Cloud to add it to %s", kind, of, list)
	default:
		return fmt.Errorf("the Cloud does not allow imports of %[1]ss: ask its administrator to set %[2]s, or create a %[1]s without spec.import", kind, field)
	}
}

// sameID reports whether two texts are one id on a Cloud of a type. Ids are UUIDs where the type
// says so; ids of others may differ in case alone.
func sameID(of pcapi.CloudType, a, b string) bool {
	switch of {
	case pcapi.CloudTypeVSphere, pcapi.CloudTypeOpenStack:
		return cloud.CanonicalUUID(a) == cloud.CanonicalUUID(b)
	default:
		return a == b
	}
}
