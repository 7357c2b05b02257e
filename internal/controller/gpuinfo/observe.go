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
	// hostsTime is how long a pass waits for a cloud's hosts: the others wait meanwhile.
	hostsTime = 5 * time.Second
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

// silence is the failure of a cloud to list its hosts.
type silence struct {
	until   time.Time
	outcome error
	// notBefore is how new a listing the cloud was asked for that it is still
	// making; zero where it gave an answer.
	notBefore time.Time
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

// observeHosts asks a cloud that failed to list its hosts again after an
// interval, however many GPUInfos use it: clouds share the one worker. Of one
// that takes longer than a pass waits, the next passes take what it was asked
// for then, however old that is by the time of its answer.
func (k *kind) observeHosts(ctx context.Context, obs *scope, inv *inventory.Inventory) error {
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
