package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

// maxName bounds a network's name in the cloud, in bytes.
const maxName = 63

func (k *kind) Record(net *pcapi.Network) external.Record {
	record := external.Record{
		Ref: net.Spec.CloudRef, Name: k.nameInCloud(net), ID: net.Status.NetworkID, Cloud: net.Status.Cloud, ObservedGeneration: net.Status.ObservedGeneration,
	}
	if imported(net) {
		record.Name, record.Import, record.Shared = net.Spec.Import.Name, net.Spec.Import.Name, true
	}
	if net.Status.CreatedTime != nil {
		record.Since = net.Status.CreatedTime.Time
	}
	return record
}

// nameInCloud returns a name that ends in a hash of the object's UID and the
// cluster: networks have no labels, so the name proves which object owns a network.
func (k *kind) nameInCloud(net *pcapi.Network) string {
	return names.Owned(maxName, k.cluster, net.Namespace, net.Name, string(net.UID))
}

// recordedName returns the name that the network of the object has.
func (k *kind) recordedName(net *pcapi.Network) string {
	if imported(net) {
		return net.Spec.Import.Name
	}
	return external.RecordedName(k.nameInCloud(net), net.Status.NetworkID, net.Status.NameInCloud)
}

func (k *kind) Identify(n cloud.Network) external.Identity {
	return external.Identity{ID: n.ID, Name: n.Name, State: cloud.StateActive, CreatedAt: n.CreatedAt}
}

// isNamed reports whether the network with the recorded id has the name of the object.
func (k *kind) isNamed(net *pcapi.Network, obs *observation, n cloud.Network) bool {
	return obs.IsNamed(k.nameInCloud(net), k.recordedName(net), names.Bounded(maxText, n.Name), net.Status.CreatedTime, n.CreatedAt)
}

// Owns reports whether a network has the name of the object, and is not a later one that has got its id. Before the id is
// on record, the answer to the create says which network it made, unless that was deleted since.
func (k *kind) Owns(net *pcapi.Network, obs *observation, n cloud.Network) bool {
	removed, _ := k.Tracker.RemovedAt(net.UID)
	switch asked := k.nameInCloud(net); {
	case imported(net):
		return cloud.AlikeNames(n.Name, k.recordedName(net))
	case k.Tracker.CreatedLater(net.UID, n.ID, n.CreatedAt):
		return false
	case net.Status.NetworkID != "":
		return k.isNamed(net, obs, n)
	case removed.IsZero():
		return cloud.MadeFrom(n.Name, asked)
	default:
		return cloud.ProvesOwner(n.Name, asked)
	}
}

// Relate counts the VMs on the network.
func (k *kind) Relate(ctx context.Context, net *pcapi.Network, obs *observation) error {
	var opts []client.ListOption
	if net.DeletionTimestamp.IsZero() { // else no VM may be missed that this process has just created
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	vms, err := attachedTo(ctx, k.Client, client.ObjectKeyFromObject(net), opts...)
	if err != nil {
		return err
	}
	obs.name, obs.attached, obs.counted = k.recordedName(net), vms, true
	return nil
}

// attachedTo returns the names of the VMs that are attached to a Network, sorted.
func attachedTo(ctx context.Context, reader client.Reader, net client.ObjectKey, opts ...client.ListOption) ([]string, error) {
	var vms pcapi.VMList
	opts = append(opts, client.InNamespace(net.Namespace), client.MatchingFields{controller.VMNetworkIndex: net.Name}, client.UnsafeDisableDeepCopy)
	err := reader.List(ctx, &vms, opts...)
	if err != nil {
		return nil, fmt.Errorf("list VMs of Network %q: %w", net.Name, err)
	}
	var found []string
	for i := range vms.Items {
		if attached(&vms.Items[i]) {
			found = append(found, vms.Items[i].Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// Look searches the listing that all Networks of a Cloud share.
func (k *kind) Look(ctx context.Context, net *pcapi.Network, obs *observation, id string) error {
	if refused(net, obs) {
		return nil
	}
	age := obs.View.Settings.PollInterval * 9 / 10
	if meta.IsStatusConditionTrue(net.Status.Conditions, pcapi.StalledCondition) {
		age = min(age, external.RecheckSoon/10) // a person corrects it and waits
	}
	alive := net.DeletionTimestamp.IsZero()
	name := k.recordedName(net)
	if imported(net) {
		id = net.Status.NetworkID
	}
	owned := ""
	if !imported(net) {
		owned = k.nameInCloud(net)
	}
	found, begun, err := obs.Inventory.Networks.Find(ctx, external.Latest(obs.Now.Add(-age), obs.Horizon), id, name, owned)
	if err != nil {
		return err
	}
	obs.Looked, obs.Owned = true, true
	if obs.Inventory.Networks.Listed(id) {
		obs.ListedAt = begun
	}
	if imported(net) {
		lookImported(net, obs, found)
		return k.refuseOwned(ctx, obs)
	}
	if id != "" {
		for _, n := range found {
			switch {
			case n.ID == id:
				obs.Resource = &n
			case !n.Shared && cloud.ProvesOwner(n.Name, owned): // no create of this account made one that is shared
				obs.Duplicates = append(obs.Duplicates, n)
			}
		}
		return nil
	}
	obs.Proof = external.OwnerProof
	for _, n := range cloud.OfOwner(found, owned, func(n cloud.Network) string { return n.Name }) {
		switch {
		case n.Shared:
		case alive && n.HalfMade:
			obs.half = true // a create completes it
		default:
			obs.Candidates = append(obs.Candidates, n)
		}
	}
	return nil
}

// Get answers itself that there is no network of a name to import: the listing said so.
func (k *kind) Get(ctx context.Context, obs *observation, id string) (cloud.Network, error) {
	if obs.byName {
		return cloud.Network{}, &cloud.Error{Kind: cloud.NotFound, Op: fmt.Sprintf("look for network %q", id)}
	}
	return obs.View.Client.GetNetwork(ctx, id)
}

// Create fails if the answer is about a network of a name that the cloud cannot have made of that in the create, or that proves
// no owner if the network existed before the first create: it may belong to another request.
func (k *kind) Create(ctx context.Context, net *pcapi.Network, obs *observation) (external.Result[cloud.Network], error) {
	name := k.nameInCloud(net)
	n, err := obs.View.Client.CreateNetwork(ctx, cloud.CreateNetwork{
		Name: name, CIDR: net.Spec.CIDR, IPv6CIDR: net.Spec.IPv6CIDR, Gateway: net.Spec.Gateway, DNSNameservers: nameservers(net), ExternalNetwork: externalNetwork(net),
		IdempotencyKey: string(net.UID),
	})
	if err != nil || cloud.ProvesOwner(n.Name, name) {
		return external.Result[cloud.Network]{Resource: n}, err
	}
	existed, cause := k.existed(ctx, net, obs, n)
	if cause != nil || existed || !cloud.MadeFrom(n.Name, name) {
		return external.Result[cloud.Network]{}, &cloud.Error{
			Kind: cloud.Unreadable, Op: fmt.Sprintf("create network %q", name), Detail: "the answer is about a network of another name", Uncertain: true, Err: cause,
		}
	}
	return external.Result[cloud.Network]{Resource: n}, nil
}

// existed reports whether the network in the answer to a create, whose name proves no owner, is another one: it existed before
// the first create or the object, or another Network has it on record.
func (k *kind) existed(ctx context.Context, net *pcapi.Network, obs *observation, n cloud.Network) (bool, error) {
	if obs.Fresh && obs.Inventory.Networks.Existed(n.ID, obs.Now) {
		k.Tracker.Existed(net.UID, n.ID)
	}
	older := !n.CreatedAt.IsZero() && n.CreatedAt.Before(net.CreationTimestamp.Add(-obs.View.Settings.SettleTime))
	if older || k.Tracker.HasExisted(net.UID, n.ID) {
		return true, nil
	}
	return k.madeByANetwork(ctx, obs.Cloud, n.ID)
}

func (k *kind) Remember(_ *pcapi.Network, obs *observation, n cloud.Network, created bool) {
	if created {
		obs.Inventory.Networks.RecordCreated(n)
	} else {
		obs.Inventory.Networks.Record(n)
	}
	obs.Resource, obs.Owned = &n, true
}

func (k *kind) ForgetResource(obs *observation, id string) { obs.Inventory.Networks.Forget(id) }

// update changes what differs from the spec.
func (k *kind) update(ctx context.Context, net *pcapi.Network, obs *observation) error {
	change := difference(net, *obs.Resource)
	n, err := obs.View.Client.UpdateNetwork(ctx, obs.Resource.ID, change)
	if err != nil {
		return k.ChangeFailed(net, &obs.Observation, obs.Resource.ID, err)
	}
	left := asked(difference(net, n), n)
	if len(left) == 0 && k.Repeated(net, &obs.Observation, fmt.Sprint(change)) {
		return k.NotApplied(net, &obs.Observation, n.ID)
	}
	k.Backoff.Forget(net.UID)
	k.Remember(net, obs, n, false)
	if len(left) > 0 {
		return reconciler.Stalled(pcapi.DriftReason, controller.RecheckRefused, fmt.Errorf(
			"the cloud was asked for %s %s and set %s: look there for the cause", left[0].field, left[0].to, cmp.Or(left[0].from, "none")))
	}
	return nil
}

// complete makes the rest of a recorded network that is half-made.
func (k *kind) complete(ctx context.Context, net *pcapi.Network, obs *observation) error {
	result, err := k.Create(ctx, net, obs)
	switch n := result.Resource; {
	case err != nil:
		return k.Failed(net, &obs.Observation, err)
	case n.ID != obs.Resource.ID || n.HalfMade:
		return reconciler.Wait(k.Backoff.When(net.UID), pcapi.ProgressingReason, "network %s is half-made, and the cloud did not complete it: it is tried again", obs.Resource.ID)
	}
	k.Backoff.Forget(net.UID)
	k.Remember(net, obs, result.Resource, false)
	return k.Adopted(net, result.Resource)
}

// Delete fails with an outcome while something is attached. A network beside that of the object
// is read first: it may be gone and its id used again.
func (k *kind) Delete(ctx context.Context, net *pcapi.Network, obs *observation, n cloud.Network) (external.Removal, error) {
	duplicate := obs.Resource == nil || obs.Resource.ID != n.ID
	var err error
	if duplicate {
		var found cloud.Network
		if found, err = obs.View.Client.GetNetwork(ctx, n.ID); err == nil && (!cloud.ProvesOwner(found.Name, k.nameInCloud(net)) || !cloud.AlikeNames(found.Name, n.Name)) {
			obs.Inventory.Networks.Record(found)
			return external.Removal{}, nil
		}
	}
	if err == nil {
		err = obs.View.Client.DeleteNetwork(ctx, n.ID)
	}
	routed := cloud.CodeOf(err) == cloud.CodeRouterInUse // says what to do
	switch {
	case cloud.Is(err, cloud.Conflict) && duplicate && routed:
		return external.Removal{}, k.Retried(net, pcapi.AmbiguousReason, fmt.Errorf(
			"one create made several networks, and network %s is in use: %w", n.ID, cloud.Public(err)))
	case cloud.Is(err, cloud.Conflict) && duplicate:
		return external.Removal{}, k.Retried(net, pcapi.AmbiguousReason, fmt.Errorf(
			"one create made several networks, and network %s is in use: %w; move its servers to another network in the cloud", n.ID, cloud.Public(err)))
	case cloud.Is(err, cloud.Conflict) && routed:
		return external.Removal{}, k.Retried(net, pcapi.BlockedReason, cloud.Public(err))
	case cloud.Is(err, cloud.Conflict):
		return external.Removal{}, k.Retried(net, pcapi.BlockedReason, fmt.Errorf(
			"%w; no VM object of this namespace is on it: detach in the cloud what is attached", cloud.Public(err)))
	case duplicate && (err == nil || cloud.Is(err, cloud.NotFound, cloud.NotFoundUnproven)):
		obs.Inventory.Networks.Forget(n.ID)
	}
	return external.Removal{Gone: true}, err
}
