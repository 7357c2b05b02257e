package cloud

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// scope is what one pass knows.
type scope struct {
	inv *inventory.Inventory
	// claimed: the finalizer is on.
	claimed bool
	// users is the number of VMs and Networks that refer to the Cloud.
	users int
	// usable: the cloud answered, now or, where no listing was due, the last time.
	usable bool
	caps   cloud.Capabilities
	// fresh is a listing made in this pass; nil where none was due.
	fresh *inventory.Snapshot
	// vanished are the recorded servers that the fresh listing lacks, and brake
	// whether they are too many to be believed.
	vanished []string
	brake    bool
	// held: the brake holds in this process, whether on record or not, and
	// released: this pass released it.
	held, released bool
	// acknowledged: the brake that is on was acknowledged.
	acknowledged bool
	// orphans carry this cluster's labels and belong to no VM.
	orphans []cloud.Server
	// counts of the fresh listing.
	counts v1alpha1.CloudServers
	// again is when to look next.
	again time.Duration
}

// Observe opens the connection, and lists the servers where that is due.
func (k *kind) Observe(ctx context.Context, c *v1alpha1.Cloud) (*scope, error) {
	obs := &scope{inv: k.Directory.Cloud(c.Name), claimed: controllerutil.ContainsFinalizer(c, Finalizer)}
	obs.held = obs.inv.View().Braked
	obs.acknowledged = c.Status.BrakedSnapshot != "" && c.Annotations[v1alpha1.AcknowledgeAnnotation] == c.Status.BrakedSnapshot
	obs.inv.Configure(settingsOf(c))
	var vms v1alpha1.VMList
	err := k.client.List(ctx, &vms, client.MatchingFields{k.VMIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return obs, fmt.Errorf("list VMs of Cloud %q: %w", c.Name, err)
	}
	var networks v1alpha1.NetworkList
	err = k.client.List(ctx, &networks, client.MatchingFields{k.NetworkIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return obs, fmt.Errorf("list Networks of Cloud %q: %w", c.Name, err)
	}
	obs.users = len(vms.Items) + len(networks.Items)
	if !c.DeletionTimestamp.IsZero() && obs.users == 0 {
		return obs, nil
	}
	if err := k.poll(ctx, c, obs); err != nil {
		obs.inv.MarkUnavailable(err.Error())
		return obs, err
	}
	if obs.fresh != nil {
		k.survey(c, obs, vms.Items)
	}
	return obs, nil
}

// poll brings the connection up to date and makes a listing where one is due.
func (k *kind) poll(ctx context.Context, c *v1alpha1.Cloud, obs *scope) error {
	way, err := k.Clients.Get(ctx, c)
	if err != nil {
		return outcomeOf(c, err)
	}
	view := obs.inv.View()
	obs.caps = view.Capabilities
	renewed := way != view.Client
	if due := obs.inv.NextPoll(); due > 0 && !renewed {
		obs.usable, obs.again = view.Unavailable == "", due
		return nil
	}
	obs.inv.Polling()
	if renewed {
		obs.caps, err = way.Capabilities(ctx)
		if err != nil {
			// It never worked: the next pass begins anew.
			k.Clients.Drop(ctx, c.Name)
			return outcomeOf(c, err)
		}
	}
	obs.inv.Connect(way, obs.caps)
	snap, err := inventory.List(ctx, way, k.Clock)
	if err != nil {
		return outcomeOf(c, err)
	}
	obs.usable, obs.fresh = true, snap
	return nil
}

// survey compares the fresh listing with the VMs of this cluster.
func (k *kind) survey(c *v1alpha1.Cloud, obs *scope, vms []v1alpha1.VM) {
	uids := make(map[string]bool, len(vms))
	var known []string
	for i := range vms {
		vm := &vms[i]
		uids[string(vm.UID)] = true
		switch id := vm.Status.VMID; {
		case id == "":
		case obs.fresh.Has(id):
			obs.counts.Managed++
			known = append(known, id)
		case expected(c, vm, obs):
			known = append(known, id)
		}
	}
	obs.vanished, obs.brake = inventory.Vanished(known, obs.fresh)
	obs.counts.Known = int32(obs.fresh.Len()) //nolint:gosec // fewer than maxPages pages of PageSize
	for server := range obs.fresh.All() {
		if server.Labels[inventory.ClusterLabel] == k.Cluster && !uids[server.Labels[inventory.UIDLabel]] && server.State != cloud.StateDeleting {
			obs.counts.Orphaned++
			obs.orphans = append(obs.orphans, server)
		}
	}
}

// expected tells whether the listing before this one held the VM's server, so
// that its absence is news. After a start there is none before, and one that
// set a brake which never came on record does not count; then every record
// counts that is older than a listing may lag behind.
func expected(c *v1alpha1.Cloud, vm *v1alpha1.VM, obs *scope) bool {
	if vm.Status.State == v1alpha1.VMStateLost || !vm.DeletionTimestamp.IsZero() {
		return false
	}
	view := obs.inv.View()
	if view.Snapshot == nil || (obs.held && c.Status.BrakedSnapshot == "") {
		return obs.fresh.Begun.Sub(vm.CreationTimestamp.Time) > view.Settings.SettleTime
	}
	return view.Snapshot.Has(vm.Status.VMID)
}
