package network

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The steps of a plan. Create, Update, DeleteDuplicate and Delete change the
// cloud; a plan holds at most one of them.
const (
	stepClaim           = "Claim"
	stepUnclaim         = "Unclaim"
	stepLook            = "Look"
	stepCreate          = "Create"
	stepAdopt           = "Adopt"
	stepUpdate          = "Update"
	stepDeleteDuplicate = "DeleteDuplicate"
	stepDelete          = "Delete"
	stepConfirmGone     = "ConfirmGone"
	stepRelease         = "Release"
)

const (
	// recheckRefused is how often a refused spec is tried again unchanged.
	recheckRefused = 10 * time.Minute
	// recheck is how often what somebody must mend in the cloud is looked at again.
	recheck = time.Minute
)

// plan decides what to do, from what was seen and nothing else.
func plan(net *v1alpha1.Network, obs *scope) ([]string, error) {
	switch {
	case !net.DeletionTimestamp.IsZero():
		return planDeletion(net, obs)
	case obs.denied != nil:
		return nil, obs.denied
	case unsupported(obs) != nil:
		return nil, unsupported(obs)
	case net.Status.NetworkID != "":
		return planExisting(net, obs)
	default:
		return planCreate(net, obs)
	}
}

// planCreate leads to a network that does not exist yet, or whose create was
// sent and never recorded.
func planCreate(net *v1alpha1.Network, obs *scope) ([]string, error) {
	switch {
	case !obs.claimed:
		return []string{stepClaim, stepCreate}, nil
	case !obs.looked:
		return []string{stepLook}, nil
	case obs.moved && len(obs.namesakes) > 0:
		return nil, moved(obs)
	case len(obs.namesakes) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil
	case len(obs.namesakes) == 1:
		return []string{stepAdopt}, adopted(net, obs.namesakes[0])
	case obs.settles > 0 && (obs.moved || !obs.safe()):
		return nil, reconciler.Wait(obs.settles, v1alpha1.OutcomeUnknownReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime before a second one, looking for the first one's network meanwhile")
	case obs.moved:
		return []string{stepUnclaim}, reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "nothing of the network is on the Cloud that spec.cloudRef named before")
	}
	return []string{stepCreate}, nil
}

// planExisting keeps a recorded network as the spec says.
func planExisting(net *v1alpha1.Network, obs *scope) ([]string, error) {
	switch {
	case obs.gone:
		return nil, stall(v1alpha1.LostReason, fmt.Errorf(
			"network %s is gone from the cloud and not by this operator; it is not made again: delete the VMs that refer to it and this object, and make others", net.Status.NetworkID), recheck)
	case obs.network == nil && net.Generation != net.Status.ObservedGeneration:
		return []string{stepLook}, nil
	case obs.network == nil:
		return nil, reconciler.ErrUnknown
	}
	var steps []string
	if !obs.claimed {
		steps = append(steps, stepClaim)
	}
	switch n := *obs.network; {
	case n.Name != obs.name:
		return steps, stall(v1alpha1.DriftReason, fmt.Errorf(
			"network %s is named %q in the cloud, not %q, so it is not touched: rename it in the cloud, or look who made it", n.ID, n.Name, obs.name), recheck)
	case len(obs.namesakes) > 0:
		return append(steps, stepDeleteDuplicate), nil
	case !sameRange(net, n):
		return steps, stall(v1alpha1.DriftReason, fmt.Errorf(
			"cidr of network %s is %s in the cloud, %s in the spec, and cannot be changed: delete this Network and make another", n.ID, n.CIDR, net.Spec.CIDR), recheck)
	case !sameGateway(net, n):
		return append(steps, stepUpdate), nil
	}
	return steps, nil
}

// planDeletion gets the network out of the cloud and proves it, then lets the
// object go.
func planDeletion(net *v1alpha1.Network, obs *scope) ([]string, error) {
	switch {
	case len(obs.attached) > 0:
		return nil, inUse(obs.attached)
	case unsupported(obs) != nil:
		return nil, unsupported(obs)
	case !obs.looked:
		return []string{stepLook}, nil
	case net.Status.NetworkID == "":
		return planDeletionUnrecorded(obs)
	case len(obs.namesakes) > 0:
		return []string{stepDeleteDuplicate}, nil
	case obs.network == nil:
		return []string{stepConfirmGone, stepRelease}, nil
	case obs.network.Name != obs.name:
		return nil, stall(v1alpha1.BlockedReason, fmt.Errorf(
			"network %s is named %q in the cloud, not %q, so it is not deleted: rename it in the cloud, or delete it there", obs.network.ID, obs.network.Name, obs.name), recheck)
	}
	return []string{stepDelete, stepConfirmGone, stepRelease}, nil
}

// planDeletionUnrecorded deletes what a create without a recorded answer may have left.
func planDeletionUnrecorded(obs *scope) ([]string, error) {
	switch {
	case len(obs.namesakes) > 1:
		return []string{stepAdopt, stepDeleteDuplicate}, nil
	case len(obs.namesakes) == 1:
		return []string{stepAdopt, stepDelete, stepConfirmGone, stepRelease}, nil
	case obs.settles > 0:
		return nil, reconciler.Wait(obs.settles, v1alpha1.RequestedReason,
			"the answer to the create was lost; waiting out the Cloud's settleTime to be sure that no network comes of it")
	}
	return []string{stepRelease}, nil
}

// unsupported refuses what a cloud without networks cannot do.
func unsupported(obs *scope) error {
	if !obs.usable() || obs.caps().Has(cloud.Networks) {
		return nil
	}
	return stall(v1alpha1.UnsupportedReason, fmt.Errorf(
		"Cloud %q has no networks: name another in spec.cloudRef", obs.cloud), recheckRefused)
}

// adopted is the outcome on a network that was just found: a spec that was
// edited since its create is followed in the next pass.
func adopted(net *v1alpha1.Network, n cloud.Network) error {
	if sameRange(net, n) && sameGateway(net, n) {
		return nil
	}
	return reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "network %s was found and is being brought in line with the spec", n.ID)
}

func moved(obs *scope) error {
	return stall(v1alpha1.DriftReason, fmt.Errorf(
		"network %s is on Cloud %q already, which spec.cloudRef named before: set it back to that, or delete this Network and make another",
		obs.namesakes[0].ID, obs.cloud), recheckRefused)
}

// inUse waits for the VMs of this cluster that are attached.
func inUse(vms []string) error {
	const most = 3
	named := strings.Join(vms[:min(most, len(vms))], ", ")
	if len(vms) > most {
		named += ", …"
	}
	return reconciler.Blocked("VM/"+vms[0], v1alpha1.BlockedReason,
		"VMs on this network: %d (%s); delete them first, the network goes when the last is gone", len(vms), named)
}

func stall(reason string, cause error, again time.Duration) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: again}
}

var errNotAsked = errors.New("the cloud was not asked for its networks")
