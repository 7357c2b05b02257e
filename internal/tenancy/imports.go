package tenancy

import (
	"errors"
	"fmt"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// MayImport returns why a namespace may not import a server; nil if it may.
func MayImport(spec *pcapi.CloudSpec, namespace, id string) error {
	switch spec.Imports {
	case pcapi.ImportPolicyAny:
		return nil
	case pcapi.ImportPolicyListed:
		if slices.Contains(spec.Importable, pcapi.ImportableVM{VMID: id, Namespace: namespace}) {
			return nil
		}
		return fmt.Errorf("VM %s is not among those that this namespace may import: ask the administrator of the Cloud to add it to importable", id)
	default:
		return errors.New("the Cloud does not allow imports: ask its administrator to set imports, or create a VM without spec.import")
	}
}
