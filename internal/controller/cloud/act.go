package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// mostOrphans is how many orphaned servers are removed in one pass.
const mostOrphans = 10

// Act takes one step.
func (k *kind) Act(ctx context.Context, c *v1alpha1.Cloud, obs *scope, step string) error {
	switch step {
	case stepClaim:
		return reconciler.Claim(ctx, k.client, c, Finalizer, nil)
	case stepBrake:
		obs.inv.Brake(true)
		return nil
	case stepReleaseBrake:
		obs.inv.Brake(false)
		obs.released = true
		return nil
	case stepPublish:
		obs.inv.Publish(obs.fresh)
		obs.again = max(obs.inv.NextPoll(), time.Millisecond)
		return nil
	case stepRemoveOrphans:
		return k.removeOrphans(ctx, c, obs)
	case stepRelease:
		return k.release(ctx, c, obs)
	default:
		return fmt.Errorf("no such step: %s", step)
	}
}

// removeOrphans deletes servers whose object the API server itself says is gone.
func (k *kind) removeOrphans(ctx context.Context, c *v1alpha1.Cloud, obs *scope) error {
	for _, server := range obs.orphans[:min(mostOrphans, len(obs.orphans))] {
		gone, err := k.provedGone(ctx, server)
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		_, err = obs.inv.View().Client.DeleteServer(ctx, server.ID)
		if err != nil && !cloud.Is(err, cloud.NotFound) {
			return outcomeOf(c, err)
		}
		log.FromContext(ctx).Info("removed an orphaned server", "cloud", c.Name, "server", server.ID,
			"namespace", server.Labels[inventory.NamespaceLabel], "name", server.Labels[inventory.NameLabel])
	}
	return nil
}

// provedGone asks the API server, past the cache, for the object that a
// server's labels name.
func (k *kind) provedGone(ctx context.Context, server cloud.Server) (bool, error) {
	key := client.ObjectKey{Namespace: server.Labels[inventory.NamespaceLabel], Name: server.Labels[inventory.NameLabel]}
	if key.Namespace == "" || key.Name == "" {
		return false, nil
	}
	var vm v1alpha1.VM
	err := k.live.Get(ctx, key, &vm)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the object of server %s: %w", server.ID, err)
	}
	return string(vm.UID) != server.Labels[inventory.UIDLabel], nil
}

func (k *kind) release(ctx context.Context, c *v1alpha1.Cloud, obs *scope) error {
	err := reconciler.Release(ctx, k.client, c, Finalizer)
	if err != nil && !errors.Is(err, reconciler.ErrUnknown) {
		return err
	}
	obs.inv.Disconnect()
	k.Clients.Forget(ctx, c.Name)
	k.gauge.forget(c.Name)
	return err
}
