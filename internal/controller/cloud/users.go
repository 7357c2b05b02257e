package cloud

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// usersOf selects the objects that name a Cloud or are on it. They are shared with the cache.
func usersOf(c *pcapi.Cloud) []client.ListOption {
	return []client.ListOption{client.MatchingFields{tenancy.CloudIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
}

// observeUsers returns how many VMs and Networks keep a deleted Cloud.
func (k *kind) observeUsers(ctx context.Context, c *pcapi.Cloud) (int, error) {
	vms, err := k.vmsOf(ctx, c)
	if err != nil {
		return 0, err
	}
	var networks pcapi.NetworkList
	if err := k.client.List(ctx, &networks, usersOf(c)...); err != nil {
		return 0, fmt.Errorf("list Networks of Cloud %q: %w", c.Name, err)
	}
	return k.countUsers(ctx, c, vms, networks.Items), nil
}

// countUsers counts the VMs and Networks that keep a deleted Cloud: those of
// namespaces that may use it, and those whose status records something on it.
// Users cannot write the status, so that a namespace that may not use the Cloud
// cannot keep it.
func (k *kind) countUsers(ctx context.Context, c *pcapi.Cloud, vms []pcapi.VM, networks []pcapi.Network) int {
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
