package cloud

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

const (
	// maxSample bounds the servers that the cloud is asked for before the brake is set.
	maxSample = 20
	// sampleTimeout bounds the time that this takes.
	sampleTimeout = 30 * time.Second
)

// survey compares the fresh listing with the VMs of this cluster.
func (k *kind) survey(ctx context.Context, c *pcapi.Cloud, obs *observation, view inventory.View, vms []pcapi.VM) {
	uids := make(map[string]bool, len(vms))
	for i := range vms {
		uids[string(vms[i].UID)] = true
		id := recordedID(c, &vms[i])
		if id != "" && obs.fresh.Has(id) {
			obs.counts.Managed++
		}
		if (obs.unlabelled == "" || id < obs.unlabelled) && lacksLabels(&vms[i], id, obs) {
			obs.unlabelled = id
		}
	}
	obs.counts.Known = int32(obs.fresh.Len()) //nolint:gosec // at most maxServers of package inventory
	var orphans []cloud.Server
	for server := range obs.fresh.Orphans(k.Cluster, uids) {
		if k.orphaned(ctx, server) {
			obs.counts.Orphaned++
			if c.Spec.OrphanPolicy == pcapi.OrphanPolicyDelete {
				orphans = append(orphans, server)
			}
		}
	}
	obs.orphans = k.memoryOf(c).removableOrphans(orphans, obs.freshAt(), obs.fresh.Begun, obs.settings.SettleTime)
	k.findVanished(ctx, c, obs, view, vms)
}

// orphaned reports whether a server with this cluster's labels, and of no VM of this
// Cloud, belongs to no VM of another Cloud object for the same cloud either.
func (k *kind) orphaned(ctx context.Context, server cloud.Server) bool {
	key := client.ObjectKey{Namespace: server.Labels[inventory.NamespaceLabel], Name: server.Labels[inventory.NameLabel]}
	if key.Namespace == "" || key.Name == "" {
		return true
	}
	var vm pcapi.VM
	err := k.client.Get(ctx, key, &vm, client.UnsafeDisableDeepCopy, &client.GetOptions{DisableReadYourWritesConsistency: true})
	return err != nil || anotherUID(&vm, server)
}

// anotherUID reports whether a server has the owner label of another object than a VM of the same name.
func anotherUID(vm *pcapi.VM, server cloud.Server) bool {
	uid := server.Labels[inventory.UIDLabel]
	return uid != string(vm.UID) && !inventory.AlteredUID(uid, string(vm.UID))
}

// lacksLabels reports whether the server that a VM created is listed without the owner labels of the VM, or with
// others that the cloud made of them.
func lacksLabels(vm *pcapi.VM, id string, obs *observation) bool {
	created := vm.Spec.Import == nil && vm.Spec.ManagementPolicy != pcapi.ManagementPolicyObserveOnly && vm.DeletionTimestamp.IsZero()
	uid, listed := obs.fresh.OwnerUID(id)
	if !created || !listed || !obs.caps.Has(cloud.Labels) || uid != "" && !inventory.AlteredUID(uid, string(vm.UID)) {
		return false
	}
	server, _ := obs.fresh.Server(id)
	return server.Name != "" && server.State != cloud.StateBuilding
}

// recordedID returns the id of the VM's server on this Cloud, empty if there is none.
func recordedID(c *pcapi.Cloud, vm *pcapi.VM) string {
	if vm.Status.Cloud != "" && vm.Status.Cloud != c.Name {
		return "" // spec.cloudRef was edited: the server is on another Cloud
	}
	return vm.Status.VMID
}

// findVanished counts the recorded servers that vanished since the listing before
// this one. If they are too many to be plausible, the cloud is asked for some of
// them, because a listing may lack servers that exist.
func (k *kind) findVanished(ctx context.Context, c *pcapi.Cloud, obs *observation, view inventory.View, vms []pcapi.VM) {
	recorded, missing := make(map[string]bool, len(vms)), map[string]bool{}
	var known []string
	for i := range vms {
		id := recordedID(c, &vms[i])
		if id != "" && !obs.fresh.Has(id) && expected(&vms[i]) {
			missing[id] = true
		}
		if id == "" || recorded[id] || !counts(&vms[i], obs.fresh.Begun, obs.settings) {
			continue
		}
		recorded[id] = true
		if obs.fresh.Has(id) || !countedBefore(c, &vms[i], obs, view) {
			known = append(known, id)
		}
	}
	if obs.acknowledged {
		k.memoryOf(c).acknowledge()
	}
	newly := obs.fresh.Missing(known)
	since, open := k.memoryOf(c).windowAt(obs.freshAt(), obs.settings.PollInterval, missing, !obs.reportedAt.IsZero())
	if !open {
		since = obs.fresh.Begun
	}
	earlier := k.memoryOf(c).together(newly, missing, obs.fresh.Has, since)
	obs.vanished = slices.Concat(newly, earlier)
	obs.gone = len(obs.vanished)
	obs.brake = inventory.Implausible(obs.gone, len(known)+len(earlier))
	var existing []string
	if obs.brake && (c.Status.BrakedSnapshot == "" || obs.acknowledged) {
		existing = verify(ctx, obs.lister, obs, len(known)+len(earlier))
	}
	k.dropGone(ctx, c, obs)
	unlisted, deleting := unlistedServers(c, obs.fresh, vms)
	existing = append(existing, k.readUnlisted(ctx, c, obs, unlisted)...)
	if view.Snapshot == nil && reportsIncomplete(c) { // the cloud may answer nothing that says whether they exist
		existing = append(existing, deleting...)
	}
	obs.incomplete = k.memoryOf(c).stillMissing(existing, func(id string) bool { return unlisted[id] })
	obs.fresh.Incomplete = len(obs.incomplete) > 0
}

// unlistedServers returns the managed servers of VMs that are not Lost which the listing lacks, and those of them
// whose VMs are being deleted.
func unlistedServers(c *pcapi.Cloud, listing *inventory.Snapshot, vms []pcapi.VM) (unlisted map[string]bool, deleting []string) {
	unlisted = map[string]bool{}
	for i := range vms {
		id := recordedID(c, &vms[i])
		if id == "" || listing.Has(id) || vms[i].Status.State == pcapi.VMStateLost || vms[i].Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly {
			continue // a server that is only observed may be where the listing shows none
		}
		unlisted[id] = true
		if !vms[i].DeletionTimestamp.IsZero() {
			deleting = append(deleting, id)
		}
	}
	return unlisted, deleting
}

// reportsIncomplete reports whether the status says that the last listing was incomplete.
func reportsIncomplete(c *pcapi.Cloud) bool {
	last := meta.FindStatusCondition(c.Status.Conditions, pcapi.ConformantCondition)
	return last != nil && last.Reason == pcapi.ListingIncompleteReason
}

// counts reports whether a listing begun at this time has to show the VM's server:
// one that was created less than the settle time before may be shown late, one
// that is lost or being deleted is expected to be missing, and one that is only
// observed is not this operator's.
func counts(vm *pcapi.VM, begun time.Time, settings inventory.Settings) bool {
	if vm.Status.State == pcapi.VMStateLost || !expected(vm) {
		return false
	}
	since := vm.CreationTimestamp.Time
	if vm.Status.CreatedTime != nil {
		since = vm.Status.CreatedTime.Time
	}
	return !begun.Before(settings.ShownFrom(since))
}

// unproved reports whether a watch reported the absence of a server that is to exist,
// and that a listing begun now would have to show, as of a time at which it did not
// exist or might have been shown late. A listing decides then.
func (k *kind) unproved(c *pcapi.Cloud, obs *observation, view inventory.View, vms []pcapi.VM) bool {
	if obs.fresh == nil || obs.reportedAt.IsZero() || view.Snapshot == nil {
		return false
	}
	for i := range vms {
		id := recordedID(c, &vms[i])
		if id != "" && view.Snapshot.Has(id) && !obs.fresh.Has(id) &&
			counts(&vms[i], obs.reportedAt, obs.settings) && !counts(&vms[i], obs.fresh.Begun, obs.settings) {
			return true
		}
	}
	return false
}

// expected reports whether the VM's server is this operator's and is to stay.
func expected(vm *pcapi.VM) bool {
	return vm.Spec.ManagementPolicy != pcapi.ManagementPolicyObserveOnly && vm.DeletionTimestamp.IsZero()
}

// countedBefore reports whether the absence of the VM's server was counted at the
// listing before this one. After a start there was none, and one that set a brake
// which was never recorded does not count.
func countedBefore(c *pcapi.Cloud, vm *pcapi.VM, obs *observation, view inventory.View) bool {
	last := view.Snapshot
	if last == nil || (obs.held && c.Status.BrakedSnapshot == "") {
		return false
	}
	return !last.Has(vm.Status.VMID) && counts(vm, last.Begun, obs.settings)
}

// dropGone reads the servers that listings lacked although they existed, and drops those that were
// moved and those that have not existed at any read for the settle time. Such answers count only
// while the cloud returns a listed server: something in front of it may answer 404 to all reads.
// What a watch reports causes no reads, nor does a listing while the brake is on.
func (k *kind) dropGone(ctx context.Context, c *pcapi.Cloud, obs *observation) {
	missing, braked := k.memoryOf(c).missing, obs.brake || obs.held || c.Status.BrakedSnapshot != ""
	if len(missing) == 0 || braked || !obs.reportedAt.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	credible := returnsListed(ctx, obs)
	for id, since := range missing {
		if !credible {
			missing[id] = time.Time{}
			continue
		}
		switch _, err := obs.lister.GetServer(ctx, id); {
		case cloud.Is(err, cloud.Displaced):
			delete(missing, id)
		case !cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven):
			missing[id] = time.Time{}
		case since.IsZero():
			missing[id] = k.Clock()
		case obs.fresh.Begun.Sub(since) >= obs.settings.SettleTime:
			delete(missing, id)
		}
	}
}

// returnsListed reports whether the cloud returns a server by id that it lists with its name.
func returnsListed(ctx context.Context, obs *observation) bool {
	for server := range obs.fresh.All() {
		if server.Name == "" {
			continue
		}
		_, err := obs.lister.GetServer(ctx, server.ID)
		return err == nil
	}
	return false
}

// readUnlisted reads servers that the cloud returned to a VM although the listing before lacked them,
// and returns those that this listing lacks as well, unless the cloud itself says now that they do not
// exist: the read before may have lagged behind their deletion. While the brake is on, and of what a watch
// reports, nothing is read.
func (k *kind) readUnlisted(ctx context.Context, c *pcapi.Cloud, obs *observation, unlisted map[string]bool) (existing []string) {
	if obs.brake || obs.held || c.Status.BrakedSnapshot != "" || !obs.reportedAt.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	missing := k.memoryOf(c).missing
	for _, id := range obs.inv.TakeUnlisted() {
		if _, known := missing[id]; known || !unlisted[id] || len(missing)+len(existing) >= maxSample || ctx.Err() != nil {
			continue
		}
		if _, err := obs.lister.GetServer(ctx, id); !cloud.Is(err, cloud.NotFound, cloud.Displaced) {
			existing = append(existing, id)
		}
	}
	return existing
}

// verify asks the cloud for a sample of the vanished servers, and returns those
// that the listing should have shown. It corrects the observation by them. A server that
// exists elsewhere is neither gone nor missing in the listing. An answer that says nothing
// about a server counts as if the server is gone.
func verify(ctx context.Context, from cloud.ServerReader, obs *observation, known int) (existing []string) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	sample := inventory.Sample(obs.vanished, maxSample)
	var gone []string
	for _, id := range sample {
		_, err := from.GetServer(ctx, id)
		switch {
		case err == nil:
			existing = append(existing, id)
		case !cloud.Is(err, cloud.Displaced):
			gone = append(gone, id)
		}
	}
	unasked := slices.DeleteFunc(slices.Clone(obs.vanished), func(id string) bool { return slices.Contains(sample, id) })
	if len(gone) == 0 {
		unasked = nil // they exist as well, as far as anybody can say
	}
	obs.gone = (len(obs.vanished)*len(gone) + len(sample) - 1) / len(sample)
	obs.vanished = slices.Concat(gone, unasked)
	obs.brake = inventory.Implausible(obs.gone, known)
	return existing
}
