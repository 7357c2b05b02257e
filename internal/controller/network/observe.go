package network

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// maxName bounds a network's name in the cloud, in bytes.
	maxName = 63
	// proof is the number of hex digits by which a network is known to be ours.
	proof = 12
)

// nameInCloud is what an object's network is called in the cloud. The end is a
// function of the object's UID and the cluster: networks have no labels, so the
// name is what proves whose one is.
func nameInCloud(cluster string, net *v1alpha1.Network) string {
	sum := sha256.Sum256([]byte(cluster + "/" + string(net.UID)))
	return names.Cut(maxName-proof-1, net.Namespace+"-"+net.Name) + "-" + hex.EncodeToString(sum[:])[:proof]
}

// Observe reads what the plan needs: VM objects, and the cloud's networks from
// the listing that all Networks of a Cloud share.
func (k *kind) Observe(ctx context.Context, net *v1alpha1.Network) (*scope, error) {
	obs := &scope{now: k.Clock(), name: nameInCloud(k.Cluster, net), claimed: controllerutil.ContainsFinalizer(net, Finalizer), how: v1alpha1.CreatedReason}
	if err := k.count(ctx, net, obs); err != nil {
		return obs, err
	}
	wanted, err := tenancy.CloudFor(ctx, k.client, net.Namespace, net.Spec.CloudRef)
	if err != nil {
		return obs, err
	}
	obs.cloud = cmp.Or(recordedCloud(net), wanted)
	obs.moved = net.Status.NetworkID == "" && obs.cloud != wanted
	obs.inv = k.Directory.Cloud(obs.cloud)
	obs.view = obs.inv.View()
	if err := k.admit(ctx, net, obs); err != nil {
		return obs, err
	}
	switch {
	case obs.denied != nil && net.DeletionTimestamp.IsZero():
		return obs, nil
	case !obs.usable():
		obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
		return obs, nil
	case !obs.caps().Has(cloud.Networks), net.Status.NetworkID == "" && !obs.claimed:
		return obs, nil
	}
	return obs, k.look(ctx, net, obs)
}

// count finds the VMs that are attached to the network, or may be.
func (k *kind) count(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	vms, err := k.attachedTo(ctx, k.client, client.ObjectKeyFromObject(net))
	if err != nil {
		return err
	}
	obs.attached, obs.counted = vms, true
	return nil
}

// attachedTo returns the names of the VMs that are attached to a Network, sorted.
func (o Options) attachedTo(ctx context.Context, reader client.Reader, net client.ObjectKey) ([]string, error) {
	var vms v1alpha1.VMList
	err := reader.List(ctx, &vms, client.InNamespace(net.Namespace), client.MatchingFields{o.VMIndex: net.Name},
		client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list VMs of Network %q: %w", net.Name, err)
	}
	var found []string
	for i := range vms.Items {
		if attached(&vms.Items[i], o.VMFinalizer) {
			found = append(found, vms.Items[i].Name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// admit finds out whether the Network may use its Cloud.
func (k *kind) admit(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	_, err := tenancy.Open(ctx, k.client, net.Namespace, obs.cloud)
	if missing, ok := errors.AsType[*tenancy.MissingError](err); ok {
		obs.denied = k.blocked(net, obs, "%v", missing)
		return nil
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		obs.denied = stall(v1alpha1.CloudUnavailableReason, denied, recheck)
		return nil
	}
	return err
}

// look finds the recorded network, or what an earlier create may have left,
// among the cloud's networks.
func (k *kind) look(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	id := net.Status.NetworkID
	age := obs.view.Settings.PollInterval * 9 / 10
	if meta.IsStatusConditionTrue(net.Status.Conditions, v1alpha1.StalledCondition) {
		age = min(age, recheck/10) // somebody mends it, and waits
	}
	notBefore := obs.now.Add(-age)
	if id == "" {
		since := k.creates.UncertainSince(net.UID, obs.inv.StartedAt())
		settled := since.Add(obs.view.Settings.SettleTime)
		obs.settles = max(0, settled.Sub(obs.now))
		if obs.settles == 0 {
			since = settled
		}
		notBefore = latest(notBefore, since)
		if !net.DeletionTimestamp.IsZero() {
			// What another manager made before the deletion was known is in a listing begun after it.
			notBefore = latest(notBefore, k.creates.DoomedSince(net.UID, obs.now))
		}
	} else {
		k.creates.Forget(net.UID)
	}
	all, err := k.list(ctx, obs, notBefore)
	if err != nil {
		return k.notHeard(net, obs, err)
	}
	obs.looked = true
	for _, n := range all {
		switch {
		case n.ID == id:
			obs.network = &n
		case n.Name == obs.name:
			obs.namesakes = append(obs.namesakes, n)
		}
	}
	if id != "" && obs.network == nil {
		if err := k.ask(ctx, net, obs, id); err != nil {
			return err
		}
	}
	k.unheard.Forget(net.UID)
	return nil
}

// list returns the cloud's networks, unless the cloud failed to list them a moment ago.
func (k *kind) list(ctx context.Context, obs *scope, notBefore time.Time) ([]cloud.Network, error) {
	if err := k.silent.of(obs.cloud, obs.now); err != nil {
		return nil, err
	}
	all, err := obs.inv.Networks(ctx, notBefore)
	k.silent.heard(obs.cloud, k.Clock(), err)
	return all, err
}

// ask asks for a recorded network that the listing lacks.
func (k *kind) ask(ctx context.Context, net *v1alpha1.Network, obs *scope, id string) error {
	if obs.view.Braked {
		obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
		return nil
	}
	n, err := obs.view.Client.GetNetwork(ctx, id)
	switch {
	case cloud.Is(err, cloud.NotFound):
		obs.gone = true
		return nil
	case err != nil:
		return k.notHeard(net, obs, err)
	}
	obs.inv.RecordNetwork(n)
	obs.network = &n
	return nil
}

// told is how many looks at a network that was well may fail in a row before
// its status tells: half a minute, in which an outage is the Cloud's to tell.
const told = 5

// notHeard is the outcome on a look that failed.
func (k *kind) notHeard(net *v1alpha1.Network, obs *scope, err error) error {
	outcome := k.outcomeOf(net, obs, k.unheard, err)
	wait, _ := errors.AsType[*reconciler.WaitError](outcome)
	well := net.DeletionTimestamp.IsZero() && net.Status.NetworkID != "" && net.Status.ObservedGeneration == net.Generation &&
		meta.IsStatusConditionTrue(net.Status.Conditions, v1alpha1.ReadyCondition)
	if wait != nil && well && k.unheard.NumRequeues(net.UID) <= told {
		wait.Quiet = true
	}
	return outcome
}

// recordedCloud is the name of the Cloud that the Network is on already: that of
// its network or, as long as a create may have been sent there, of its claim.
// Empty if it is on none yet.
func recordedCloud(net *v1alpha1.Network) string {
	switch {
	case net.Status.NetworkID != "":
		return net.Status.Cloud
	case controllerutil.ContainsFinalizer(net, Finalizer):
		return net.Annotations[ClaimedCloudAnnotation]
	}
	return ""
}

func refOf(net *v1alpha1.Network) inventory.Ref {
	return inventory.Ref{Kind: refKind, Namespace: net.Namespace, Name: net.Name}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
