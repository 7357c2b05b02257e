package gpuinfo

import (
	"context"
	"errors"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// observeHosts reads the cloud's hosts from a listing that all GPUInfos share.
// The inventory bounds how long one GPUInfo waits for it and how often a failed
// listing is repeated, because all Clouds share the one worker.
func (k *kind) observeHosts(ctx context.Context, obs *observation, inv *inventory.Inventory) error {
	hosts, err := inv.Hosts(ctx, obs.now.Add(-obs.interval*9/10))
	switch {
	case errors.Is(err, inventory.ErrNotAnswered):
		return reconciler.Wait(inventory.HostsTimeout, pcapi.CloudUnavailableReason, "%v", err)
	case cloud.KindOf(err) != "":
		return reconciler.Wait(max(cloud.RetryAfter(err), obs.interval), pcapi.CloudUnavailableReason, "%s", cloud.PublicMessage(err))
	case err != nil:
		return err
	}
	obs.hosts = make(map[string]cloud.Host, len(hosts))
	for _, host := range hosts {
		obs.hosts[host.Name] = host
	}
	return nil
}
