package tenancy

import (
	"errors"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// MayImport returns why a namespace may not import a server; nil if it may.
func MayImport(spec *pcapi.CloudSpec, namespace, id string) error {
	switch spec.Imports {
	case pcapi.ImportPolicyAny:
		return nil
	case pcapi.ImportPolicyListed:
		if slices.ContainsFunc(spec.Importable, func(entry pcapi.ImportableVM) bool {
			return entry.Namespace == namespace && sameID(spec.Type, entry.VMID, id)
		}) {
			return nil
		}
		return fmt.Errorf("VM %s is not among those that this namespace may import: ask the administrator of the Cloud to add it to importable", id)
	default:
		return errors.New("the Cloud does not allow imports: ask its administrator to set imports, or create a VM without spec.import")
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
