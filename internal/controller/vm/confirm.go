package vm

import (
	"context"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// confirmImport reads a server that is to be imported. It fails if the server differs from the listing.
func (k *kind) confirmImport(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	listed := *obs.Resource
	server, err := k.Get(ctx, obs, listed.ID)
	absent := cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven, cloud.Displaced)
	switch {
	case err != nil && !absent:
		return k.Failed(vm, &obs.Observation, err)
	case !absent && !k.servers.otherServer(vm, listed, server) && (vm.Status.VMID == "" || !replaced(vm, obs, server)):
		obs.confirmed = true
		return nil
	}
	obs.Inventory.EnqueueAfterListing(inventory.Ref{Namespace: vm.Namespace, Name: vm.Name}, obs.Now)
	return reconciler.Wait(external.Safety, pcapi.NotFoundReason,
		"VM %s differs from the last listing or does not exist: waiting for the next listing", listed.ID)
}

// otherServer reports whether what a read shows under the id of a listed server is another one, or got another owner
// than the VM that imports it.
func (s *servers) otherServer(vm *pcapi.VM, listed, read cloud.Server) bool {
	dated := !listed.CreatedAt.IsZero() && !read.CreatedAt.IsZero()
	uid, cluster := read.Labels[inventory.UIDLabel], read.Labels[inventory.ClusterLabel]
	owned := uid != listed.Labels[inventory.UIDLabel] || cluster != listed.Labels[inventory.ClusterLabel]
	return read.Name != listed.Name || dated && read.CreatedAt.Sub(listed.CreatedAt).Abs() > time.Second ||
		owned && (uid != string(vm.UID) || cluster != s.cluster)
}
