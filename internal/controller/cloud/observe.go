package cloud

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observation is what one reconcile reads. Steps change released and again.
type observation struct {
	inv *inventory.Inventory
	// claimed is whether the finalizer is on.
	claimed bool
	// users is the number of VMs and Networks that refer to the Cloud.
	users int
	// settings are those of the spec; configured is whether the inventory has them.
	settings   inventory.Settings
	configured bool
	// client answered for the first time in this reconcile, and is to be connected;
	// nil if the inventory has the current client.
	client cloud.Client
	// failed is the outcome if the cloud cannot be used; nil if it can or was not
	// asked. unproven is whether the client that failed never answered.
	failed   error
	unproven bool
	// refused is the outcome if a new client failed and the one in use goes on; nil
	// if there is no new client or it answered.
	refused error
	// usable is whether the cloud answered, now or, if no listing was due, the last time.
	usable bool
	caps   cloud.Capabilities
	// fresh is the listing of this reconcile; nil if none was due.
	fresh *inventory.Snapshot
	// vanished are the recorded servers that the fresh listing lacks, and brake is
	// whether they are too many to be plausible.
	vanished []string
	brake    bool
	// held is whether the brake is on in this process, recorded or not, and
	// released is whether this reconcile released it.
	held, released bool
	// acknowledged is whether the brake that is on was acknowledged.
	acknowledged bool
	// orphans carry this cluster's labels and belong to no VM.
	orphans []cloud.Server
	// counts of the fresh listing.
	counts pcapi.CloudServers
	// again is the time until the next reconcile.
	again time.Duration
}

// Observe reads the users of the Cloud, the inventory and, if that is due, the
// cloud: the capabilities of a new client, or a listing. Clients makes a new
// client if spec or Secret have changed, and the inventory records when a listing
// begins, which sets the time of the next one. All else that others see of the
// cloud, such as client, availability, brake and snapshot, is changed by steps.
func (k *kind) Observe(ctx context.Context, c *pcapi.Cloud) (*observation, error) {
	inv, settings := k.Directory.Cloud(c.Name), settingsOf(c)
	view := inv.View()
	obs := &observation{
		inv: inv, claimed: controllerutil.ContainsFinalizer(c, pcapi.CloudFinalizer), settings: settings, configured: view.Settings == settings, held: view.Braked,
		acknowledged: c.Status.BrakedSnapshot != "" && c.Annotations[pcapi.AcknowledgeAnnotation] == c.Status.BrakedSnapshot,
	}
	var vms pcapi.VMList
	users := []client.ListOption{client.MatchingFields{tenancy.CloudIndex: c.Name}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
	if err := k.client.List(ctx, &vms, users...); err != nil {
		return obs, fmt.Errorf("list VMs of Cloud %q: %w", c.Name, err)
	}
	var networks pcapi.NetworkList
	if err := k.client.List(ctx, &networks, users...); err != nil {
		return obs, fmt.Errorf("list Networks of Cloud %q: %w", c.Name, err)
	}
	obs.users = len(vms.Items) + len(networks.Items)
	if !c.DeletionTimestamp.IsZero() && obs.users == 0 {
		return obs, nil
	}
	if err := k.poll(ctx, c, obs, view); err != nil {
		obs.failed = outcomeOf(c, err)
	}
	if obs.fresh != nil {
		k.survey(c, obs, view, vms.Items)
	}
	return obs, nil
}

// poll reads the capabilities of a new client, or lists the servers if that is
// due and the inventory is set up for it.
func (k *kind) poll(ctx context.Context, c *pcapi.Cloud, obs *observation, view inventory.View) error {
	current, err := k.Clients.Get(ctx, c)
	if err != nil {
		return err
	}
	if current != view.Client {
		if obs.caps, err = current.Capabilities(ctx); err == nil {
			obs.client = current
			return nil
		}
		obs.unproven = true
		// The certificate of a cloud that changed its CA may be a stranger's.
		if !k.Clients.InUse(c.Name, view.Client) || cloud.Is(err, cloud.Untrusted) {
			return err
		}
		obs.refused, current = outcomeOf(c, err), view.Client
	}
	obs.caps, obs.usable = view.Capabilities, view.Unavailable == ""
	if !obs.configured {
		return nil
	}
	if _, unlisted := k.connected.Load(c.Name); !unlisted {
		if obs.again = obs.inv.NextPoll(); obs.again > 0 {
			return nil
		}
	}
	obs.inv.Polling()
	obs.usable = false
	obs.fresh, err = inventory.List(ctx, current, k.Clock)
	obs.usable = err == nil
	return err
}

// survey compares the fresh listing with the VMs of this cluster.
func (k *kind) survey(c *pcapi.Cloud, obs *observation, view inventory.View, vms []pcapi.VM) {
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
		case expected(c, vm, obs, view):
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

// expected reports whether the listing before this one had the VM's server, so
// that its absence is a change. After a start there was none, and one that set a
// brake which was never recorded does not count; then every record counts that is
// older than the time by which a listing may lag behind.
func expected(c *pcapi.Cloud, vm *pcapi.VM, obs *observation, view inventory.View) bool {
	if vm.Status.State == pcapi.VMStateLost || !vm.DeletionTimestamp.IsZero() {
		return false
	}
	if view.Snapshot == nil || (obs.held && c.Status.BrakedSnapshot == "") {
		return obs.fresh.Begun.Sub(vm.CreationTimestamp.Time) > obs.settings.SettleTime
	}
	return view.Snapshot.Has(vm.Status.VMID)
}
