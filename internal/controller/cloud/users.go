package cloud

import (
	"context"
	"errors"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// usersOf counts the VMs and Networks that keep a deleted Cloud: those of
// namespaces that may use it, and those whose status records something on it.
// Users cannot write the status, so that a namespace that may not use the Cloud
// cannot keep it.
func (k *kind) usersOf(ctx context.Context, c *pcapi.Cloud, vms []pcapi.VM, networks []pcapi.Network) int {
	access := map[string]bool{}
	mayUse := func(namespace string) bool {
		may, known := access[namespace]
		if !known {
			_, err := tenancy.Open(ctx, k.client, namespace, c.Name)
			_, denied := errors.AsType[*tenancy.DeniedError](err)
			may = !denied
			access[namespace] = may
		}
		return may
	}
	users := 0
	for i := range vms {
		status := &vms[i].Status
		recorded := status.Cloud == c.Name && (status.VMID != "" || status.NameInCloud != "")
		if recorded || mayUse(vms[i].Namespace) {
			users++
		}
	}
	for i := range networks {
		status := &networks[i].Status
		recorded := status.Cloud == c.Name && status.NetworkID != ""
		if recorded || mayUse(networks[i].Namespace) {
			users++
		}
	}
	return users
}
