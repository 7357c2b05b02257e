package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// patience is how long after a start a Network waits for the first listing of
// its cloud before its status tells of the wait.
const patience = 5 * time.Second

// unattended are the steps that need no cloud.
var unattended = []string{stepUnclaim, stepAdopt, stepRelease}

// braking are the steps that the brake forbids.
var braking = []string{stepCreate, stepDelete, stepDeleteDuplicate, stepConfirmGone}

// Act takes one step.
func (k *kind) Act(ctx context.Context, net *v1alpha1.Network, obs *scope, step string) error {
	if err := k.usable(net, obs, step); err != nil {
		return err
	}
	switch step {
	case stepClaim:
		return k.claim(ctx, net, obs)
	case stepUnclaim:
		return k.unclaim(ctx, net)
	case stepLook:
		return errNotAsked
	case stepCreate:
		return k.create(ctx, net, obs)
	case stepAdopt:
		return k.adopt(net, obs)
	case stepUpdate:
		return k.update(ctx, net, obs)
	case stepDeleteDuplicate:
		return k.deleteDuplicate(ctx, net, obs)
	case stepDelete:
		return k.remove(ctx, net, obs)
	case stepConfirmGone:
		return k.confirmGone(ctx, net, obs)
	case stepRelease:
		return k.release(ctx, net)
	default:
		return fmt.Errorf("no such step: %s", step)
	}
}

// usable holds a step back while the cloud is away or its brake is on. A first
// claim is held back like its create, so that what waits can be deleted.
func (k *kind) usable(net *v1alpha1.Network, obs *scope, step string) error {
	brakes := slices.Contains(braking, step) || (step == stepClaim && net.Status.NetworkID == "")
	switch {
	case slices.Contains(unattended, step):
		return nil
	case obs.view.Snapshot == nil && obs.now.Sub(obs.inv.StartedAt()) < patience:
		obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
		return &reconciler.WaitError{After: patience, Reason: v1alpha1.CloudUnavailableReason, Message: "the cloud has not been listed yet", Quiet: true}
	case !obs.usable():
		return k.blocked(net, obs, "waiting for Cloud %q: %s", obs.cloud, obs.view.Unavailable)
	case obs.view.Braked && brakes:
		obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
		return reconciler.Blocked("Cloud/"+obs.cloud, v1alpha1.BrakedReason,
			"the brake of Cloud %q is on: nothing is created or deleted there until it is acknowledged; see its Braked condition", obs.cloud)
	}
	return nil
}

// claim stores the intent, and the Cloud that it is about.
func (k *kind) claim(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	annotations := map[string]string{ClaimedCloudAnnotation: obs.cloud}
	if err := reconciler.Claim(ctx, k.client, net, Finalizer, annotations); err != nil {
		return err
	}
	obs.fresh, obs.claimed = true, true
	return nil
}

func (k *kind) unclaim(ctx context.Context, net *v1alpha1.Network) error {
	return reconciler.Release(ctx, k.client, net, Finalizer, ClaimedCloudAnnotation)
}

// create sends the create. Whatever is not a clear answer counts as sent.
func (k *kind) create(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	n, err := obs.view.Client.CreateNetwork(ctx, cloud.CreateNetwork{
		Name: obs.name, CIDR: net.Spec.CIDR, Gateway: net.Spec.Gateway, IdempotencyKey: string(net.UID),
	})
	if err == nil {
		k.backoff.Forget(net.UID)
		obs.inv.RecordNetwork(n)
		obs.network = &n
		return nil
	}
	// The name is this object's alone: if it is taken, or its key used, an
	// earlier create has taken effect.
	if cloud.Uncertain(err) || cloud.Is(err, cloud.Taken, cloud.KeyReused) {
		k.creates.Mark(net.UID, k.Clock())
		obs.inv.RequestPoll()
		return reconciler.Wait(k.backoff.When(net.UID), v1alpha1.OutcomeUnknownReason,
			"%v; the network may have been created all the same: it is looked for before another create", err)
	}
	if nothing := obs.fresh || obs.settles == 0; nothing && cloud.Is(err, cloud.Quota, cloud.Throttled) {
		// Tried again soon, and unchanged: the claim stays for that.
		k.creates.Refused(net.UID)
	} else if nothing {
		if err := k.unclaim(ctx, net); err != nil {
			return err
		}
	}
	if cloud.Is(err, cloud.Quota) {
		return reconciler.Wait(recheck, v1alpha1.QuotaExceededReason, "%v", err)
	}
	return k.refused(net, obs, err)
}

// adopt takes the network that was found as this object's: the oldest, where
// there are several.
func (k *kind) adopt(net *v1alpha1.Network, obs *scope) error {
	k.backoff.Forget(net.UID)
	obs.network, obs.how = &obs.namesakes[0], v1alpha1.AdoptedReason
	obs.namesakes = obs.namesakes[1:]
	return nil
}

// update sets the gateway.
func (k *kind) update(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	n, err := obs.view.Client.UpdateNetwork(ctx, obs.network.ID, net.Spec.Gateway)
	if err != nil {
		return k.refused(net, obs, err)
	}
	k.backoff.Forget(net.UID)
	obs.inv.RecordNetwork(n)
	obs.network = &n
	if !sameGateway(net, n) {
		return stall(v1alpha1.DriftReason, fmt.Errorf(
			"the cloud was asked for gateway %s and set %s: look there for the cause", net.Spec.Gateway, n.Gateway), recheckRefused)
	}
	return nil
}

// deleteDuplicate removes the youngest of several networks of this object's name.
func (k *kind) deleteDuplicate(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	extra := obs.namesakes[len(obs.namesakes)-1]
	err := obs.view.Client.DeleteNetwork(ctx, extra.ID)
	switch {
	case cloud.Is(err, cloud.Conflict):
		return stall(v1alpha1.AmbiguousReason, fmt.Errorf(
			"one create made several networks, and network %s is in use: %w; move its servers to another network in the cloud", extra.ID, err), recheck)
	case err != nil && !cloud.Is(err, cloud.NotFound):
		return k.refused(net, obs, err)
	}
	obs.inv.ForgetNetwork(extra.ID)
	return reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "one create made several networks; the oldest is kept, network %s was deleted", extra.ID)
}

// remove asks for the network's deletion, at longer and longer intervals until it is gone.
func (k *kind) remove(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	err := obs.view.Client.DeleteNetwork(ctx, obs.network.ID)
	switch {
	case cloud.Is(err, cloud.Conflict):
		return stall(v1alpha1.BlockedReason, fmt.Errorf(
			"%w; no VM object of this namespace is on it: take what is attached off in the cloud", err), recheck)
	case err != nil && !cloud.Is(err, cloud.NotFound):
		return k.refused(net, obs, err)
	}
	return nil
}

// confirmGone has the cloud itself say that the network does not exist.
func (k *kind) confirmGone(ctx context.Context, net *v1alpha1.Network, obs *scope) error {
	if obs.gone {
		return nil
	}
	id := net.Status.NetworkID
	if obs.network != nil {
		id = obs.network.ID
	}
	n, err := obs.view.Client.GetNetwork(ctx, id)
	if cloud.Is(err, cloud.NotFound) {
		obs.gone = true
		obs.inv.ForgetNetwork(id)
		return nil
	}
	if err != nil {
		return k.outcomeOf(net, obs, k.backoff, err)
	}
	obs.inv.RecordNetwork(n)
	return reconciler.Wait(k.backoff.When(net.UID), v1alpha1.RequestedReason, "the cloud is deleting network %s", id)
}

// release lets the object go.
func (k *kind) release(ctx context.Context, net *v1alpha1.Network) error {
	err := k.unclaim(ctx, net)
	if err != nil && !errors.Is(err, reconciler.ErrUnknown) {
		return err
	}
	k.forget(net.UID)
	return err
}

// forget drops what is remembered of a Network that is gone.
func (k *kind) forget(uid types.UID) {
	k.creates.Forget(uid)
	k.backoff.Forget(uid)
	k.unheard.Forget(uid)
}

// blocked waits for the Cloud, and has the Network woken when it can be used.
func (k *kind) blocked(net *v1alpha1.Network, obs *scope, format string, args ...any) error {
	obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
	return reconciler.Blocked("Cloud/"+obs.cloud, v1alpha1.CloudUnavailableReason, format, args...)
}

// refused is the outcome on a call that was to change something and did not. A
// look that fails is no cause to list the servers: its failure says little of
// the cloud as a whole, and each Network would ask for it.
func (k *kind) refused(net *v1alpha1.Network, obs *scope, err error) error {
	if cloud.Is(err, cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable) {
		obs.inv.RequestPoll()
	}
	return k.outcomeOf(net, obs, k.backoff, err)
}

// outcomeOf turns the failure of a call into a outcome. Failures of the cloud as
// a whole are the Cloud's to tell; the Network waits, a little longer each time,
// or until the Cloud is back.
func (k *kind) outcomeOf(net *v1alpha1.Network, obs *scope, backoff workqueue.TypedRateLimiter[types.UID], err error) error {
	switch {
	case cloud.Is(err, cloud.Throttled):
		return reconciler.Wait(max(cloud.RetryAfter(err), backoff.When(net.UID)), v1alpha1.PendingReason, "%v", err)
	case cloud.Is(err, cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Conflict):
		obs.inv.EnqueueWhenAvailable(refOf(net), obs.view)
		return reconciler.Wait(backoff.When(net.UID), v1alpha1.CloudUnavailableReason, "%v", err)
	case cloud.Is(err, cloud.Unsupported):
		return stall(v1alpha1.UnsupportedReason, err, recheckRefused)
	case cloud.KindOf(err) != "":
		return stall(v1alpha1.RejectedReason, err, recheckRefused)
	default:
		return err
	}
}
