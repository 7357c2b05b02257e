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
	hosts, err := inv.Hosts.List(ctx, obs.now.Add(-obs.interval*9/10))
	switch {
	case errors.Is(err, inventory.ErrNotAnswered):
		return reconciler.Wait(inventory.HostsTimeout, pcapi.CloudUnavailableReason, "%v", err)
	case cloud.KindOf(err) != "":
		return reconciler.Wait(max(cloud.RetryAfter(err), obs.interval), pcapi.CloudUnavailableReason, "%s", cloud.PublicMessage(err))
	case err != nil:
		return err
	}
	obs.hosts = k.hostsByName(obs.cloud, hosts)
	return nil
}

// listed holds the hosts of one listing by name. They must not be changed.
type listed struct {
	hosts  []cloud.Host
	byName map[string]cloud.Host
}

// hostsByName returns the hosts of a Cloud by name, with one map for each listing.
func (k *kind) hostsByName(cloudName string, hosts []cloud.Host) map[string]cloud.Host {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.listed[cloudName]; ok && len(hosts) > 0 && len(known.hosts) == len(hosts) && &known.hosts[0] == &hosts[0] {
		return known.byName
	}
	is := listed{hosts: hosts, byName: make(map[string]cloud.Host, len(hosts))}
	for _, host := range hosts {
		is.byName[host.Name] = host
	}
	k.listed[cloudName] = is
	return is.byName
}

// hoursOf returns for how many hours a host was available when it was listed last.
func (k *kind) hoursOf(at hostKey) (hours int64, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	host, known := k.listed[at.cloud].byName[at.name]
	return int64(host.AvailableHours), known
}
