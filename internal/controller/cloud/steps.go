package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/jitter"
	"github.com/privatecloud/operator/internal/reconciler"
)

// maxOrphans bounds the orphaned servers that one step removes.
const maxOrphans = 10

// inMemory returns a step that changes the state of this process and cannot fail.
func inMemory(name string, run func(c *pcapi.Cloud, obs *observation)) step {
	return step{Name: name, Run: func(_ context.Context, c *pcapi.Cloud, obs *observation) error {
		run(c, obs)
		return nil
	}}
}

// configure gives the inventory the settings of the spec.
func configure() step {
	return inMemory("Configure", func(_ *pcapi.Cloud, obs *observation) { obs.inv.Configure(obs.settings) })
}

// connect gives the inventory the new client, with which a listing is due at
// once. If it replaces another client, the cloud is unavailable until then: the
// snapshot of the other client may be one of another cloud.
func (k *kind) connect() step {
	return inMemory("Connect", func(c *pcapi.Cloud, obs *observation) {
		if obs.inv.View().Client != nil {
			obs.inv.MarkUnavailable("the cloud has not been listed with the new configuration yet")
		}
		obs.inv.Connect(obs.client, obs.caps)
		k.Clients.Commit(c.Name, obs.client)
		k.connected.Store(c.Name, true)
	})
}

// dropClient closes a client that never answered: the next reconcile makes another.
// The one in use is closed as well unless it goes on.
func (k *kind) dropClient() step {
	return step{Name: "DropClient", Run: func(ctx context.Context, c *pcapi.Cloud, obs *observation) error {
		if obs.refused != nil {
			k.Clients.Drop(ctx, c.Name)
		} else {
			k.Clients.DropAll(ctx, c.Name)
		}
		return nil
	}}
}

// markUnavailable makes the failure of the poll known to all users of the cloud.
func (k *kind) markUnavailable() step {
	return inMemory("MarkUnavailable", func(c *pcapi.Cloud, obs *observation) {
		k.connected.Delete(c.Name)
		obs.inv.MarkUnavailable(publicText(obs.cause))
	})
}

// claim adds the finalizer.
func (k *kind) claim() step {
	return step{Name: "Claim", Needs: reconciler.Mutates, Run: func(ctx context.Context, c *pcapi.Cloud, _ *observation) error {
		return reconciler.Claim(ctx, k.client, c, pcapi.CloudFinalizer, nil)
	}}
}

// brake stops creates and deletes on the cloud.
func brake() step {
	return inMemory("Brake", func(_ *pcapi.Cloud, obs *observation) { obs.inv.Brake(true) })
}

// releaseBrake allows creates and deletes again.
func (k *kind) releaseBrake() step {
	return inMemory("ReleaseBrake", func(c *pcapi.Cloud, obs *observation) {
		obs.inv.Brake(false)
		k.memoryOf(c).acknowledge()
		obs.released = true
	})
}

// publish makes the fresh listing the current one.
func (k *kind) publish() step {
	return inMemory("Publish", func(c *pcapi.Cloud, obs *observation) {
		k.connected.Delete(c.Name)
		obs.inv.Publish(obs.fresh)
		obs.again = max(obs.inv.NextPoll(), time.Millisecond)
	})
}

// removeOrphans deletes some of the servers whose object is proved to be gone, others each time: one that cannot be deleted does
// not keep the others. A failure that says nothing about the others is reported after them.
func (k *kind) removeOrphans() step {
	return step{Name: "RemoveOrphans", Run: func(ctx context.Context, c *pcapi.Cloud, obs *observation) error {
		from := int(jitter.Fraction() * float64(len(obs.orphans)))
		orphans := slices.Concat(obs.orphans[from:], obs.orphans[:from])
		var failed error
		for _, server := range orphans[:min(maxOrphans, len(orphans))] {
			gone, err := k.provedGone(ctx, server)
			if err == nil && gone {
				err = removeOrphan(ctx, c.Name, obs.inv, server)
			}
			if err != nil {
				failed = err
			}
			if concernsAll(err) {
				break
			}
		}
		return outcomeOf(c, failed)
	}}
}

// concernsAll reports whether a failure to delete one orphan says something about the others.
func concernsAll(err error) bool {
	return (err != nil && cloud.KindOf(err) == "") ||
		cloud.Is(err, cloud.Unauthorized, cloud.Misconfigured, cloud.Untrusted, cloud.Throttled, cloud.Unavailable)
}

// removeOrphan deletes a server, and logs that. It reads the server first: since the listing, it may be gone and its id used
// again. A server that it could not delete is tried again after the next listing.
func removeOrphan(ctx context.Context, name string, inv *inventory.Inventory, orphan cloud.Server) error {
	from, logger := inv.View().Client, log.FromContext(ctx).WithValues("cloud", name, "server", orphan.ID)
	found, err := from.GetServer(ctx, orphan.ID)
	switch {
	case cloud.Is(err, cloud.NotFoundUnproven):
		return nil
	case err == nil && found.Labels[inventory.UIDLabel] != orphan.Labels[inventory.UIDLabel]:
		logger.Info("kept a server that has the id of an orphan and other labels")
		return nil
	case err == nil:
		if remover, outlive := from.(cloud.PublicAddressRemover); outlive { // nothing would lead to the address once the server is gone
			if err := remover.DeletePublicAddresses(ctx, orphan.ID); err != nil {
				return err
			}
		}
		inv.RecordDeletion(orphan.ID)
		logger = logger.WithValues("keptDisks", found.Disks.KeptNames())
		_, err = from.DeleteServer(ctx, orphan.ID)
	}
	switch {
	case cloud.Is(err, cloud.Busy), cloud.Is(err, cloud.NotFoundUnproven):
		return nil
	case err != nil && !cloud.Is(err, cloud.NotFound): // the next listing shows whether it is gone
		return err
	}
	if err := removeLeftovers(log.IntoContext(ctx, logger), from, orphan); err != nil {
		return err
	}
	logger.Info("removed an orphaned server", "namespace", orphan.Labels[inventory.NamespaceLabel], "name", orphan.Labels[inventory.NameLabel])
	return nil
}

// removeLeftovers deletes the snapshots and disks of an orphan whose deletion was accepted, where they outlive it. Disks that
// are still attached are left to the cloud, which deletes them with the server.
func removeLeftovers(ctx context.Context, from cloud.Client, orphan cloud.Server) error {
	var errs []error
	if remover, outlive := from.(cloud.SnapshotRemover); outlive {
		errs = append(errs, remover.DeleteSnapshots(ctx, orphan.ID, orphan.Labels[inventory.UIDLabel]))
	}
	if remover, outlive := from.(cloud.DiskRemover); outlive {
		err := remover.DeleteDisks(ctx, orphan.ID)
		if cloud.Is(err, cloud.Busy) {
			log.FromContext(ctx).Info("left the disks of an orphaned server to the cloud", "cause", err.Error())
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// provedGone reports whether the object that a server's labels name does not
// exist, according to the API server and not the cache.
func (k *kind) provedGone(ctx context.Context, server cloud.Server) (bool, error) {
	key := client.ObjectKey{Namespace: server.Labels[inventory.NamespaceLabel], Name: server.Labels[inventory.NameLabel]}
	if key.Namespace == "" || key.Name == "" {
		return false, nil
	}
	var vm pcapi.VM
	err := k.live.Get(ctx, key, &vm)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the object of server %s: %w", server.ID, err)
	}
	return anotherUID(&vm, server), nil
}

// release removes the finalizer and forgets all that this process knows of the Cloud.
func (k *kind) release() step {
	return step{Name: "Release", Needs: reconciler.Mutates, Run: func(ctx context.Context, c *pcapi.Cloud, _ *observation) error {
		err := reconciler.Release(ctx, k.client, c, pcapi.CloudFinalizer)
		if err != nil && !errors.Is(err, reconciler.ErrUnknown) {
			return err
		}
		k.forget(ctx, c.Name)
		return err
	}}
}
