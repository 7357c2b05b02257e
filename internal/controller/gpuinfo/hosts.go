package gpuinfo

import (
	"context"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// hostsTime is how long a reconcile waits for a cloud's hosts: all others wait meanwhile.
const hostsTime = 5 * time.Second

// silence is the failure of a cloud to list its hosts.
type silence struct {
	until   time.Time
	outcome error
	// notBefore is the bound of a listing that was requested and that the cloud
	// has not answered yet; zero if it has.
	notBefore time.Time
}

// observeHosts lists the hosts of the cloud. After a failure, the cloud is asked
// again after an interval, however many GPUInfos use it, because all clouds share
// one worker. If the cloud takes longer than a reconcile waits, later reconciles
// use the listing that was requested then, whatever its age once it is there.
func (k *kind) observeHosts(ctx context.Context, obs *observation, inv *inventory.Inventory) error {
	failed := k.silent[obs.cloud]
	if obs.now.Before(failed.until) {
		return failed.outcome
	}
	notBefore := obs.now.Add(-obs.interval * 9 / 10)
	if !failed.notBefore.IsZero() && obs.now.Sub(failed.until) < obs.interval+hostsTime {
		notBefore = failed.notBefore
	}
	ctx, cancel := context.WithTimeout(ctx, hostsTime)
	defer cancel()
	hosts, err := inv.Hosts(ctx, notBefore)
	switch {
	case err == nil:
	case cloud.KindOf(err) == "":
		outcome := reconciler.Wait(hostsTime, v1alpha1.CloudUnavailableReason, "list hosts: the cloud has not answered yet")
		k.silent[obs.cloud] = silence{until: k.clock().Add(hostsTime), outcome: outcome, notBefore: notBefore}
		return outcome
	default:
		after := max(cloud.RetryAfter(err), obs.interval)
		outcome := reconciler.Wait(after, v1alpha1.CloudUnavailableReason, "%v", err)
		k.silent[obs.cloud] = silence{until: k.clock().Add(after), outcome: outcome}
		return outcome
	}
	delete(k.silent, obs.cloud)
	obs.hosts = make(map[string]cloud.Host, len(hosts))
	for _, host := range hosts {
		obs.hosts[host.Name] = host
	}
	return nil
}
