package gpuinfo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// patience is how long a first listing may take before anybody is told.
	patience = 5 * time.Second
	// recheckRefused is how often a Cloud that cannot be used is looked at unchanged.
	recheckRefused = 10 * time.Minute
	// maxRequest bounds what is remembered of a request, in bytes.
	maxRequest = 256
)

// scope is what one pass knows. Observe fills it; plan and report read it and
// nothing else.
type scope struct {
	now time.Time
	// cloud is the name of the Cloud that the GPUInfo uses.
	cloud string
	// request is what the annotation reconcile-requested-at says.
	request string

	// refused says why this Cloud cannot be used by this GPUInfo at all; nil if it can.
	refused error
	// unknown says why nothing can be learned now; nil if the fields below are complete.
	unknown error
	// cloudless: the Cloud object does not exist.
	cloudless bool
	// interval is the time between two listings of the cloud.
	interval time.Duration

	nodes []node
	// servers are the cloud's by the names of nodes.
	servers map[string][]cloud.Server
	hosts   map[string]cloud.Host
	// claims are the other GPUInfos' on hosts of this cloud.
	claims []claim
}

// named are a cloud's servers by the names of nodes, in its listing begun at listed.
type named struct {
	listed  time.Time
	servers map[string][]cloud.Server
}

// Observe reads nodes, the inventory, the cloud's hosts and the reservations of
// other GPUInfos.
func (k *kind) Observe(ctx context.Context, gpu *v1alpha1.GPUInfo) (*scope, error) {
	obs := &scope{now: k.clock(), request: requestOf(gpu)}
	obs.unknown = k.observe(ctx, gpu, obs)
	if reconciler.Reason(obs.unknown) == "" {
		return obs, obs.unknown
	}
	return obs, nil
}

// observe returns why the pass cannot know all that it needs: as a outcome, or
// as an error that ends the pass.
func (k *kind) observe(ctx context.Context, gpu *v1alpha1.GPUInfo, obs *scope) error {
	var err error
	if obs.cloud, err = tenancy.CloudFor(ctx, k.client, gpu.Namespace, gpu.Spec.CloudRef); err != nil {
		return err
	}
	_, err = tenancy.Open(ctx, k.client, gpu.Namespace, obs.cloud)
	if missing, ok := errors.AsType[*tenancy.MissingError](err); ok {
		obs.cloudless = true
		return blocked(obs, v1alpha1.CloudUnavailableReason, "%v", missing)
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		obs.refused = refusal(v1alpha1.CloudUnavailableReason, denied)
		return nil
	}
	if err != nil {
		return err
	}
	inv := k.directory.Cloud(obs.cloud)
	view := inv.View()
	obs.interval = view.Settings.PollInterval
	switch {
	case view.Snapshot == nil && obs.now.Sub(inv.StartedAt()) < patience:
		return &reconciler.WaitError{After: patience, Reason: v1alpha1.CloudUnavailableReason, Message: "the cloud has not been listed yet", Quiet: true}
	case view.Unavailable != "":
		return blocked(obs, v1alpha1.CloudUnavailableReason, "waiting for Cloud %q: %s", obs.cloud, view.Unavailable)
	case view.Braked:
		return blocked(obs, v1alpha1.BrakedReason,
			"the brake of Cloud %q is on: its listing is not trusted until that is acknowledged; see its Braked condition", obs.cloud)
	case !view.Capabilities.Has(cloud.Hosts):
		obs.refused = refusal(v1alpha1.UnsupportedReason, fmt.Errorf(
			"the cloud of Cloud %q does not list its hosts: name another in spec.cloudRef", obs.cloud))
		return nil
	}
	if err := k.observeHosts(ctx, obs, inv); err != nil {
		return err
	}
	if err := k.observeNodes(ctx, obs, inv, view.Snapshot.Begun); err != nil {
		return err
	}
	return k.observeClaims(ctx, gpu, obs)
}

// observeHosts reads the cloud's hosts from a listing that all GPUInfos share.
// The inventory bounds how long one GPUInfo waits for it and how often a failed
// listing is repeated, because all Clouds share the one worker.
func (k *kind) observeHosts(ctx context.Context, obs *scope, inv *inventory.Inventory) error {
	hosts, err := inv.Hosts(ctx, obs.now.Add(-obs.interval*9/10))
	switch {
	case errors.Is(err, inventory.ErrNotAnswered):
		return reconciler.Wait(inventory.HostsTimeout, v1alpha1.CloudUnavailableReason, "%v", err)
	case cloud.KindOf(err) != "":
		return reconciler.Wait(max(cloud.RetryAfter(err), obs.interval), v1alpha1.CloudUnavailableReason, "%v", err)
	case err != nil:
		return err
	}
	obs.hosts = make(map[string]cloud.Host, len(hosts))
	for _, host := range hosts {
		obs.hosts[host.Name] = host
	}
	return nil
}

// observeNodes looks each node up once a listing, begun at listed, for all passes.
func (k *kind) observeNodes(ctx context.Context, obs *scope, inv *inventory.Inventory, listed time.Time) error {
	var list corev1.NodeList
	if err := k.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	known := k.named[obs.cloud]
	if !known.listed.Equal(listed) {
		known = named{listed: listed, servers: make(map[string][]cloud.Server, len(list.Items))}
		k.named[obs.cloud] = known
	}
	obs.servers = known.servers
	for i := range list.Items {
		n := nodeOf(&list.Items[i])
		obs.nodes = append(obs.nodes, n)
		if _, ok := known.servers[n.name]; !ok {
			known.servers[n.name] = inv.Named(n.name)
		}
	}
	return nil
}

// observeClaims reads what earlier passes wrote, this process's own included.
func (k *kind) observeClaims(ctx context.Context, gpu *v1alpha1.GPUInfo, obs *scope) error {
	var list v1alpha1.GPUInfoList
	if err := k.client.List(ctx, &list, client.MatchingFields{reservedIndex: obs.cloud}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list GPUInfos with a reservation: %w", err)
	}
	for i := range list.Items {
		if other := &list.Items[i]; other.UID != gpu.UID {
			obs.claims = append(obs.claims, claimOf(other))
		}
	}
	return nil
}

// blocked waits for the Cloud: its next listing wakes all GPUInfos that use it.
func blocked(obs *scope, reason, format string, args ...any) error {
	return reconciler.Blocked("Cloud/"+obs.cloud, reason, format, args...)
}

func refusal(reason string, cause error) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: recheckRefused}
}

// requestOf is the value of the annotation as far as it is remembered.
func requestOf(gpu *v1alpha1.GPUInfo) string {
	request := gpu.Annotations[v1alpha1.ReconcileRequestedAtAnnotation]
	return strings.ToValidUTF8(request[:min(len(request), maxRequest)], "")
}
