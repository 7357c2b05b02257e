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
	seen := &scope{inv: k.Directory.Cloud(c.Name), claimed: controllerutil.ContainsFinalizer(c, Finalizer)}
	seen.held = seen.inv.View().Braked
	seen.acknowledged = c.Status.BrakedSnapshot != "" && c.Annotations[v1alpha1.AcknowledgeAnnotation] == c.Status.BrakedSnapshot
	seen.inv.Configure(settingsOf(c))
	var vms v1alpha1.VMList
	err := k.client.List(ctx, &vms, client.MatchingFields{k.VMIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return seen, fmt.Errorf("list VMs of Cloud %q: %w", c.Name, err)
	}
	var networks v1alpha1.NetworkList
	err = k.client.List(ctx, &networks, client.MatchingFields{k.NetworkIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return seen, fmt.Errorf("list Networks of Cloud %q: %w", c.Name, err)
	}
	seen.users = len(vms.Items) + len(networks.Items)
	if !c.DeletionTimestamp.IsZero() && seen.users == 0 {
		return seen, nil
	}
	if err := k.poll(ctx, c, seen); err != nil {
		seen.inv.Away(err.Error())
		return seen, err
	}
	if seen.fresh != nil {
		k.survey(c, seen, vms.Items)
	}
	return seen, nil
}

// poll brings the connection up to date and makes a listing where one is due.
func (k *kind) poll(ctx context.Context, c *v1alpha1.Cloud, seen *scope) error {
	way, err := k.Clients.Get(ctx, c)
	if err != nil {
		return verdictOn(c, err)
	}
	view := seen.inv.View()
	seen.caps = view.Capabilities
	renewed := way != view.Client
	if due := seen.inv.NextPoll(); due > 0 && !renewed {
		seen.usable, seen.again = view.Away == "", due
		return nil
	}
	seen.inv.Polling()
	if renewed {
		seen.caps, err = way.Capabilities(ctx)
		if err != nil {
			// It never worked: the next pass begins anew.
			k.Clients.Drop(ctx, c.Name)
			return verdictOn(c, err)
		}
	}
	seen.inv.Connect(way, seen.caps)
	snap, err := inventory.List(ctx, way, k.Clock)
	if err != nil {
		return verdictOn(c, err)
	}
	seen.usable, seen.fresh = true, snap
	return nil
}

// survey compares the fresh listing with the VMs of this cluster.
func (k *kind) survey(c *v1alpha1.Cloud, seen *scope, vms []v1alpha1.VM) {
	uids := make(map[string]bool, len(vms))
	var known []string
	for i := range vms {
		vm := &vms[i]
		uids[string(vm.UID)] = true
		switch id := vm.Status.VMID; {
		case id == "":
		case seen.fresh.Has(id):
			seen.counts.Managed++
			known = append(known, id)
		case expected(c, vm, seen):
			known = append(known, id)
		}
	}
	seen.vanished, seen.brake = inventory.Vanished(known, seen.fresh)
	seen.counts.Known = int32(seen.fresh.Len()) //nolint:gosec // fewer than maxPages pages of PageSize
	for server := range seen.fresh.All() {
		if server.Labels[inventory.ClusterLabel] == k.Cluster && !uids[server.Labels[inventory.UIDLabel]] && server.State != cloud.StateDeleting {
			seen.counts.Orphaned++
			seen.orphans = append(seen.orphans, server)
		}
	}
}

// expected tells whether the listing before this one held the VM's server, so
// that its absence is news. After a start there is none before, and one that
// set a brake which never came on record does not count; then every record
// counts that is older than a listing may lag behind.
func expected(c *v1alpha1.Cloud, vm *v1alpha1.VM, seen *scope) bool {
	if vm.Status.State == v1alpha1.VMStateLost || !vm.DeletionTimestamp.IsZero() {
		return false
	}
	view := seen.inv.View()
	if view.Snapshot == nil || (seen.held && c.Status.BrakedSnapshot == "") {
		return seen.fresh.Begun.Sub(vm.CreationTimestamp.Time) > view.Settings.SettleTime
	}
	return view.Snapshot.Has(vm.Status.VMID)
}
