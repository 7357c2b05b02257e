package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

// observation is what one reconcile reads. Steps change released and again.
type observation struct {
	inv *inventory.Inventory
	// claimed is whether the finalizer is on.
	claimed bool
	// users is the number of VMs, Networks and VMSnapshots that keep the Cloud; counted only if
	// it is being deleted.
	users int
	// shown is what the status says of them, which may be older.
	shown usage
	// invalid is why spec.allowedNamespaces selects no namespace; nil if it is valid.
	invalid error
	// settings are those of the spec; configured is whether the inventory has them.
	settings   inventory.Settings
	configured bool
	// client answered for the first time in this reconcile, and is to be connected;
	// nil if the inventory has the current client.
	client cloud.Client
	// failed is the outcome if the cloud cannot be used; nil if it can or was not
	// asked. unproven is whether the client that failed never answered.
	// cause is the error that led to it.
	failed, cause error
	unproven      bool
	// secretGone is whether the Secret does not exist any more, and its data is used on until
	// the deletion of the Cloud is done.
	secretGone bool
	// defect is what the spec names, does not exist, and only some VMs need; nil if nothing.
	defect error
	// refused is the outcome if a new client cannot be made or failed, and the one in
	// use goes on; nil otherwise.
	refused error
	// usable is whether the cloud answered, now or, if no listing was due, the last time.
	usable bool
	caps   cloud.Capabilities
	// fresh is the listing of this reconcile; nil if none was due. lister is the
	// client that made it.
	fresh  *inventory.Snapshot
	lister cloud.Client
	// reportedAt is when what a watch reported was taken as fresh, or was the reason for a
	// listing; zero if a listing was due by itself.
	reportedAt time.Time
	// vanished are the recorded servers that the fresh listing lacks: first those
	// that the cloud was asked for, then the rest. gone is how many of them are gone,
	// as far as the cloud was asked, and brake is whether they are too many to be
	// plausible.
	vanished []string
	gone     int
	brake    bool
	// incomplete are servers that exist and that the fresh listing lacks, sorted.
	incomplete []string
	// unlabelled is a listed server without the owner labels of the VM that created it, the first
	// by id; empty if there is none.
	unlabelled string
	// ignored are the parts of the cloud's answers that were ignored lately, sorted.
	// early is whether this process has not run long enough to know all of them.
	ignored []string
	early   bool
	// held is whether the brake is on in this process, recorded or not, and
	// released is whether this reconcile released it.
	held, released bool
	// acknowledged is whether the brake that is on was acknowledged.
	acknowledged bool
	// orphans carry this cluster's labels, and belonged to no VM for the settle time.
	orphans []cloud.Server
	// counts of the fresh listing.
	counts pcapi.CloudServers
	// again is the time until the next reconcile.
	again time.Duration
}

// Observe reads the users of a deleted Cloud, the inventory and, if that is due, the
// cloud: the capabilities of a new client, or a listing and, where it lacks many
// servers, some of them. Clients makes a new
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
	if !c.DeletionTimestamp.IsZero() {
		var err error
		if err = k.observeUsers(ctx, c, obs); err != nil || obs.users == 0 {
			return obs, err
		}
	}
	_, obs.invalid = metav1.LabelSelectorAsSelector(c.Spec.AllowedNamespaces)
	current, due, err := k.connection(ctx, c, obs, view)
	obs.secretGone = err == nil && c.Spec.CredentialsSecretRef != nil && k.Clients.SecretGone(c.Name)
	if due {
		// The VMs are read before the servers: one that is deleted meanwhile leaves no orphan.
		vms, readErr := k.vmsOf(ctx, c)
		if readErr != nil {
			return obs, readErr
		}
		err = k.poll(ctx, c, obs, view, current, vms)
	}
	if err != nil {
		obs.failed, obs.cause = outcomeOf(c, err), err
	}
	if reporter, ok := current.(cloud.DefectReporter); ok {
		obs.defect = reporter.Defect()
	}
	return obs, nil
}

// vmsOf returns the VMs that name a Cloud or are on it. They are shared with the cache.
// There may be many: they are read only where all are needed.
func (k *kind) vmsOf(ctx context.Context, c *pcapi.Cloud) ([]pcapi.VM, error) {
	var vms pcapi.VMList
	if err := k.client.List(ctx, &vms, usersOf(c)...); err != nil {
		return nil, fmt.Errorf("list VMs of Cloud %q: %w", c.Name, err)
	}
	return vms.Items, nil
}

// connection returns the client to list the servers with, and whether that is due. It
// reads the capabilities of a new client.
func (k *kind) connection(ctx context.Context, c *pcapi.Cloud, obs *observation, view inventory.View) (current cloud.Client, due bool, err error) {
	current, err = k.Clients.Get(ctx, c)
	if err == nil && current != view.Client {
		if obs.caps, err = current.Capabilities(ctx); err == nil {
			obs.client = current
			return current, false, nil
		}
		obs.unproven = true
	}
	if err != nil {
		if !k.Clients.InUse(c.Name, view.Client) || !mayGoOn(err) {
			return nil, false, err
		}
		obs.refused, current = outcomeOf(c, err), view.Client
	}
	obs.caps, obs.usable = view.Capabilities, view.Unavailable == ""
	if !obs.configured {
		return current, false, nil
	}
	if !k.unlisted(c) {
		obs.again = obs.inv.NextPoll()
	}
	return current, obs.again == 0, nil
}

// unlisted reports whether the servers were not listed yet with the client in use.
func (k *kind) unlisted(c *pcapi.Cloud) bool {
	_, unlisted := k.connected.Load(c.Name)
	return unlisted
}

// poll takes what a watch reported, or lists the servers, and surveys them.
func (k *kind) poll(ctx context.Context, c *pcapi.Cloud, obs *observation, view inventory.View, current cloud.Client, vms []pcapi.VM) error {
	if !k.unlisted(c) {
		if obs.fresh = obs.inv.Reported(); obs.fresh != nil {
			obs.lister, obs.reportedAt = current, k.Clock()
		}
	}
	if obs.fresh == nil || k.unproved(c, obs, view, vms) {
		if err := k.list(ctx, obs, current); err != nil {
			return err
		}
	}
	k.survey(ctx, c, obs, view, vms)
	k.observeIgnored(c, obs)
	return nil
}

// list lists the servers.
func (k *kind) list(ctx context.Context, obs *observation, from cloud.Client) (err error) {
	obs.inv.Polling()
	obs.usable = false
	obs.lister = from
	obs.fresh, err = k.Directory.List(ctx, from, obs.inv.View().Snapshot, k.Clock)
	obs.usable = err == nil
	return err
}

// mayGoOn reports whether the client in use may go on although no new one can be
// made or the new one failed. It may not if the Secret was withdrawn, or if the
// certificate does not fit a new CA, since it may be a stranger's. A Secret that the
// API server does not return is not withdrawn.
func mayGoOn(err error) bool {
	if unusable, ok := errors.AsType[*clouds.UnusableError](err); ok {
		return unusable.Malformed
	}
	return !cloud.Is(err, cloud.Untrusted)
}

// observeIgnored collects which parts of the cloud's answers were ignored.
func (k *kind) observeIgnored(c *pcapi.Cloud, obs *observation) {
	hold := 2 * obs.settings.PollInterval
	obs.ignored = k.memoryOf(c).ignoredLately(obs.lister, obs.freshAt(), hold)
	if err := obs.inv.Utilization.Unreadable(); err != nil {
		obs.ignored = append(obs.ignored, "utilization: "+err.Error())
		slices.Sort(obs.ignored)
	}
	obs.early = obs.freshAt().Sub(obs.inv.StartedAt()) < hold
}

// freshAt returns when the fresh listing began, or when what a watch reported was taken
// as one, which may be long after Begun of it.
func (obs *observation) freshAt() time.Time {
	if obs.reportedAt.After(obs.fresh.Begun) {
		return obs.reportedAt
	}
	return obs.fresh.Begun
}
