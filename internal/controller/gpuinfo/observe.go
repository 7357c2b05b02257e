package gpuinfo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// maxRequest bounds the stored part of a request, in bytes.
	maxRequest = 256
)

// observation is what one reconcile reads. Only decision changes afterwards.
type observation struct {
	now time.Time
	// cloud is the name of the Cloud that the GPUInfo uses.
	cloud string
	// request is the value of the annotation reconcile-requested-at.
	request string
	// extension is how long after its recorded end the GPUInfo's own reservation is
	// over; see ends.
	extension time.Duration

	// refused is the outcome if the GPUInfo cannot use its Cloud at all; nil if it can.
	refused error
	// unknown is the outcome if the reads below failed; nil if the fields are complete.
	unknown error
	// interval is the time between two listings of the cloud.
	interval time.Duration

	// nodes are shared with other reconciles and must not be changed.
	nodes []node
	// servers of the cloud by the key of a node. They are shared with other reconciles and
	// must not be changed.
	servers map[string][]cloud.Server
	hosts   map[string]cloud.Host
	// taken is the seconds that other GPUInfos have reserved, by host of a node.
	taken map[string]int64
	// claims are those of other GPUInfos on the host of the GPUInfo's own reservation,
	// if all of them together do not fit; nil otherwise.
	claims []claim

	// decision is set by the step Decide; nil if it did not run.
	decision *decision
}

// named holds a cloud's servers by the key of a node, of a revision of its snapshot.
type named struct {
	revision uint64
	servers  map[string][]cloud.Server
}

// Observe reads nodes, the inventory, the cloud's hosts and the reservations of
// other GPUInfos. Hosts are listed on demand. Only this controller's own caches
// change.
func (k *kind) Observe(ctx context.Context, gpu *pcapi.GPUInfo) (*observation, error) {
	obs := &observation{now: k.clock(), request: requestOf(gpu)}
	obs.extension = k.ends.extension(gpu, obs.now)
	obs.unknown = k.observe(ctx, gpu, obs)
	if reconciler.Reason(obs.unknown) == "" {
		return obs, obs.unknown
	}
	return obs, nil
}

// observe returns why the observation is incomplete: a WaitError or a
// BlockedError, or an error that ends the reconcile.
func (k *kind) observe(ctx context.Context, gpu *pcapi.GPUInfo, obs *observation) error {
	var err error
	if obs.cloud, err = k.cloudOf(ctx, gpu); err != nil {
		return controller.AwaitNamespace(err)
	}
	c, err := tenancy.Open(ctx, k.client, gpu.Namespace, obs.cloud)
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		if denied.Missing {
			k.forgetCloud(obs.cloud)
		}
		obs.refused = controller.Inaccessible(gpu, obs.now, denied, tenancy.Elsewhere)
		controller.LogAccess(ctx, gpu, denied, obs.refused.Error())
		return nil
	}
	if err != nil {
		return controller.AwaitNamespace(err)
	}
	inv := k.directory.Cloud(obs.cloud)
	view := inv.View()
	obs.interval = view.Settings.PollInterval
	if err := controller.AwaitListing(view, inv.StartedAt(), obs.now); err != nil {
		return err
	}
	switch {
	case view.Unavailable != "":
		return blocked(obs, pcapi.CloudUnavailableReason, "waiting for Cloud %q: %s", obs.cloud, view.Unavailable)
	case view.Braked:
		return blocked(obs, pcapi.BrakedReason,
			"the brake of Cloud %q is on: its listing is not trusted until that is acknowledged; see its Braked condition", obs.cloud)
	case !view.Capabilities.Has(cloud.Hosts):
		obs.refused = refusal(pcapi.UnsupportedReason, fmt.Errorf(
			"the cloud of Cloud %q does not list its hosts: name another in spec.cloudRef", obs.cloud))
		return nil
	}
	if err := k.observeHosts(ctx, obs, inv); err != nil {
		return err
	}
	if err := k.observeNodes(ctx, obs, inv, view.Snapshot.Revision(), c.Spec.Type); err != nil {
		return err
	}
	return k.observeClaims(ctx, gpu, obs)
}

// cloudOf returns the name of the Cloud that a GPUInfo uses.
func (k *kind) cloudOf(ctx context.Context, gpu *pcapi.GPUInfo) (string, error) {
	return tenancy.CloudFor(ctx, k.client, gpu.Namespace, gpu.Spec.CloudRef)
}

// observeNodes looks up the servers of each node, once per revision of the cloud's
// snapshot.
func (k *kind) observeNodes(ctx context.Context, obs *observation, inv *inventory.Inventory, revision uint64, api pcapi.CloudType) error {
	var err error
	if obs.nodes, err = k.nodes.read(ctx, k.client); err != nil {
		return err
	}
	known := k.namedAt(obs.cloud, revision)
	obs.servers = known.servers
	var owned map[string]bool // ids of servers, read if a node is looked up by name
	for _, n := range obs.nodes {
		if _, ok := known.servers[n.key()]; ok {
			continue
		}
		found, byName := serversOf(n, inv, api)
		if byName && len(found) > 0 {
			if owned == nil {
				if owned, err = k.ownedOn(ctx, obs.cloud); err != nil {
					return err
				}
			}
			found = slices.DeleteFunc(found, func(s cloud.Server) bool { return owned[s.ID] || k.labelled(s) })
		}
		known.servers[n.key()] = found
	}
	return nil
}

// serversOf returns the servers that may be that of a node: the one that its providerID or its system UUID names, else, with
// byName, those with its name in any case, since Nodes have names in lower case. The providerID
// of a Node in a vCenter has the BIOS UUID, which is the id of its server only if somebody has
// made both the same.
func serversOf(n node, inv *inventory.Inventory, api pcapi.CloudType) (found []cloud.Server, byName bool) {
	scheme, id := n.server()
	for _, known := range []string{id, strings.ToLower(id), n.uuid} {
		if server, ok := inv.Server(known); ok && known != "" {
			return []cloud.Server{server}, false
		}
	}
	if id != "" && (scheme != "vsphere" || api != pcapi.CloudTypeVSphere) {
		return nil, false
	}
	return slices.Concat(inv.Named(n.name), inv.NamedAlike(n.name)), true
}

// ownedOn returns the ids of the servers on a Cloud that VM objects have on record. A tenant chooses the names of these.
func (k *kind) ownedOn(ctx context.Context, cloudName string) (map[string]bool, error) {
	same, err := tenancy.SameCloud(ctx, k.client, cloudName)
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	for _, on := range same {
		var vms pcapi.VMList
		if err := k.client.List(ctx, &vms, client.MatchingFields{tenancy.CloudIndex: on}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the VMs on Cloud %q: %w", on, err)
		}
		for i := range vms.Items {
			owned[vms.Items[i].Status.VMID] = true
		}
	}
	return owned, nil
}

// labelled reports whether a VM object of this cluster has made a server, also before the id is on record.
func (k *kind) labelled(s cloud.Server) bool {
	return s.Labels[inventory.UIDLabel] != "" && s.Labels[inventory.ClusterLabel] == k.cluster
}

// namedAt returns the cache of a Cloud for a revision of its snapshot. The cache of an
// earlier one is dropped.
func (k *kind) namedAt(cloudName string, revision uint64) named {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.named[cloudName]
	if known.revision != revision || known.servers == nil {
		known = named{revision: revision, servers: map[string][]cloud.Server{}}
		k.named[cloudName] = known
	}
	return known
}

// forgetCloud drops what is cached of a Cloud.
func (k *kind) forgetCloud(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.named, name)
	delete(k.listed, name)
}

// observeClaims reads the reservations that earlier reconciles wrote, including
// those of this process.
func (k *kind) observeClaims(ctx context.Context, gpu *pcapi.GPUInfo, obs *observation) error {
	key := client.ObjectKeyFromObject(gpu)
	if err := k.claims.catchUp(ctx, key); err != nil {
		return err
	}
	obs.taken = make(map[string]int64, len(obs.nodes))
	for _, n := range obs.nodes {
		for _, server := range obs.servers[n.key()] {
			if _, ok := obs.taken[server.Host]; !ok {
				obs.taken[server.Host] = k.claims.taken(hostKey{obs.cloud, server.Host}, key, obs.now)
			}
		}
	}
	if held := gpu.Status.Reservation; held != nil && held.Cloud == obs.cloud && !obs.fits(gpu) {
		obs.claims = k.claims.others(hostKey{held.Cloud, held.Host}, key, obs.now)
	}
	return nil
}

// fits reports whether all reservations on the host of a GPUInfo fit, with its own.
func (o *observation) fits(gpu *pcapi.GPUInfo) bool {
	held, mine := gpu.Status.Reservation, claimOf(gpu)
	mine.until = o.end(held)
	return (o.taken[held.Host]+mine.left(o.now))/hour <= int64(o.hosts[held.Host].AvailableHours)
}

// blocked waits for the Cloud, whose next listing enqueues all GPUInfos that use it.
func blocked(obs *observation, reason, format string, args ...any) error {
	return reconciler.Blocked("Cloud/"+obs.cloud, reason, format, args...)
}

func refusal(reason string, cause error) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: controller.RecheckRefused}
}

// end returns when the GPUInfo's own reservation is over.
func (o *observation) end(held *pcapi.GPUReservation) time.Time {
	return held.Until.Add(o.extension)
}

// requestOf returns the value of the annotation as far as it is stored.
func requestOf(gpu *pcapi.GPUInfo) string {
	request := gpu.Annotations[pcapi.ReconcileRequestedAtAnnotation]
	return strings.ToValidUTF8(request[:min(len(request), maxRequest)], "")
}
