package network

import (
	"cmp"
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

// connect makes the router of a network, or corrects what it connects to. The external network is the one that the name in the
// spec was found to be at first. If that is gone, the name is looked up again.
func (k *kind) connect(ctx context.Context, net *pcapi.Network, obs *observation) error {
	id, name := obs.Resource.ID, externalNetwork(net)
	to := cmp.Or(requestedID(net), name)
	n, err := obs.View.Client.UpdateNetwork(ctx, id, cloud.UpdateNetwork{ExternalNetwork: to})
	if to != name && cloud.Is(err, cloud.Rejected) && cloud.CodeOf(err) == cloud.CodeExternalNetworkUnknown {
		to = name
		n, err = obs.View.Client.UpdateNetwork(ctx, id, cloud.UpdateNetwork{ExternalNetwork: to})
	}
	made := n.Router.ConnectedTo(to)
	switch {
	case cloud.Is(err, cloud.Conflict):
		return k.Retried(net, pcapi.RejectedReason, cloud.Public(err))
	case err != nil:
		return k.ChangeFailed(net, &obs.Observation, id, err)
	case made && !obs.Resource.Router.Unknown && k.Repeated(net, &obs.Observation, "router to "+to):
		return k.NotApplied(net, &obs.Observation, id)
	}
	k.Backoff.Forget(net.UID)
	k.Remember(net, obs, n, false)
	if !made {
		return reconciler.Stalled(pcapi.DriftReason, controller.RecheckRefused, fmt.Errorf(
			"the cloud was asked for a router to %q and made none: look there for the cause", name))
	}
	obs.found = to == name
	return nil
}

// routerInStatus returns what the status says of the router of a network. Once there was one, it stays there while it is not
// attached, with what was requested: the router may exist, and is to be attached to the same external network again.
func routerInStatus(net *pcapi.Network, obs *observation, r cloud.Router) *pcapi.NetworkRouterStatus {
	if r.Unknown || r == (cloud.Router{}) && net.Status.Router == nil {
		return net.Status.Router
	}
	status := &pcapi.NetworkRouterStatus{
		ID: names.Bounded(maxText, r.ID), ExternalNetwork: names.Bounded(maxText, cmp.Or(r.ExternalNetwork, r.ExternalID)),
		ExternalNetworkID: names.Bounded(maxText, r.ExternalID),
	}
	id := requestedID(net)
	if (id == "" || obs.found) && r.ConnectedTo(externalNetwork(net)) {
		id = r.ExternalID
	}
	if id != "" {
		status.RequestedNetwork, status.RequestedNetworkID = externalNetwork(net), names.Bounded(maxText, id)
	}
	return status
}

const stepDeleteRouter = "DeleteRouter"

// Leftovers deletes the router of a network that is gone, where it outlives that: somebody else has detached it, and deleted
// the network. An account that may not see routers has made none, unless one was observed.
func (k *kind) Leftovers(net *pcapi.Network, obs *observation) []step {
	remover, outlive := obs.View.Client.(cloud.RouterRemover)
	routed := net.Spec.Router != nil || net.Status.Router != nil
	if !outlive || !routed || imported(net) || net.Status.NetworkID == "" {
		return nil
	}
	return []step{k.Step(stepDeleteRouter, reconciler.NeedsCloud|reconciler.NeedsBrakeOff|reconciler.Mutates, func(ctx context.Context, net *pcapi.Network, obs *observation) error {
		err := remover.DeleteRouters(ctx, net.Status.NetworkID)
		switch {
		case cloud.Is(err, cloud.Conflict):
			return k.Retried(net, pcapi.BlockedReason, cloud.Public(err))
		case cloud.Is(err, cloud.Forbidden, cloud.Unsupported) && net.Status.Router == nil:
			return nil
		case cloud.Is(err, cloud.Forbidden, cloud.Unsupported):
			return k.Retried(net, pcapi.BlockedReason, fmt.Errorf("network %s is gone, and its router may be left: %w; "+
				"grant the operator the right, or delete the router in the cloud and remove the finalizer of this Network", net.Status.NetworkID, cloud.Public(err)))
		case err != nil:
			return k.Failed(net, &obs.Observation, err)
		}
		return nil
	})}
}
