package network

import (
	"fmt"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the steps that only Networks have.
const (
	stepUpdate   = "Update"
	stepComplete = "Complete"
	stepConnect  = "Connect"
)

// Repeatable: a second create makes no second network. It completes a half-made one.
func (k *kind) Repeatable(_ *pcapi.Network, obs *observation) bool {
	return obs.half || obs.Capabilities().Has(cloud.Idempotency) || obs.Capabilities().Has(cloud.UniqueNames)
}

// PlanCreate creates the network, if the cloud can.
func (k *kind) PlanCreate(net *pcapi.Network, obs *observation) plan {
	refused, lacks := refusedGateway(net), lacking(net, obs)
	switch {
	case obs.Available() && !obs.Capabilities().Has(cloud.Networks):
		return k.End(reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf(
			"Cloud %q cannot create networks: delete this Network and create one with spec.import, which names a network that exists there, or name another Cloud in spec.cloudRef", obs.Cloud)))
	case lacks != nil:
		return k.End(lacks)
	case refused != nil:
		return k.End(refused)
	case obs.Claimed == "":
		return k.Do(k.Steps.FirstClaim, k.Steps.Create)
	}
	return k.Do(k.Steps.Create)
}

// PlanExisting keeps a recorded network as the spec says.
func (k *kind) PlanExisting(net *pcapi.Network, obs *observation) plan {
	var p plan
	lacks := lacking(net, obs)
	differing, has, want := anotherRange(net, *obs.Resource)
	connect := k.Step(stepConnect, reconciler.NeedsCloud|reconciler.NeedsBrakeOff|reconciler.Mutates, k.connect)
	switch n := *obs.Resource; {
	case imported(net):
	case !k.isNamed(net, obs, n):
		p.Outcome = reconciler.Stalled(pcapi.DriftReason, external.RecheckSoon, fmt.Errorf(
			"network %s is named %s in the cloud, not %q, so it is not changed: rename it in the cloud, or find out who created it", n.ID, named(n), obs.name))
	case len(obs.Duplicates) > 0:
		p.Steps = append(p.Steps, k.Steps.DeleteDuplicate)
	case lacks != nil:
		p.Outcome = lacks
	case (n.HalfMade || !sameGateway(net, n)) && refusedGateway(net) != nil:
		p.Outcome = refusedGateway(net)
	case n.HalfMade:
		p.Steps = append(p.Steps, k.Step(stepComplete, reconciler.NeedsCloud|reconciler.NeedsBrakeOff|reconciler.Mutates, k.complete))
	case differing != "":
		p.Outcome = reconciler.Stalled(pcapi.DriftReason, external.RecheckSoon, fmt.Errorf(
			"%s of network %s is %s in the cloud, %s in the spec, and cannot be changed: delete this Network and create another", differing, n.ID, has, want))
	// A gateway that is refused while the router is attached must not keep the router on another network. A router that is not
	// attached comes after the gateway, which is refused afterwards.
	case n.Router != (cloud.Router{}) && !n.Router.Unknown && !connected(net, n):
		p.Steps = append(p.Steps, connect)
	case len(asked(difference(net, n), n)) > 0:
		needs := reconciler.NeedsCloud | reconciler.Mutates
		if difference(net, n).IPv6CIDR != "" { // creates something
			needs |= reconciler.NeedsBrakeOff
		}
		p.Steps = append(p.Steps, k.Step(stepUpdate, needs, k.update))
	case !connected(net, n):
		p.Steps = append(p.Steps, connect)
	}
	return p
}

// PlanDeletion waits for the VMs on the network. It keeps a network that was imported,
// and does not delete a network of another name.
func (k *kind) PlanDeletion(net *pcapi.Network, obs *observation) (plan, bool) {
	switch n := obs.Resource; {
	case len(obs.attached) > 0:
		return k.End(inUse(net, obs.attached)), true
	case imported(net):
		return k.Do(k.Steps.Release), true
	case n != nil && !k.isNamed(net, obs, *n) && len(obs.Duplicates) == 0:
		return k.End(reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf(
			"network %s is named %s in the cloud, not %q, so it is not deleted: rename it in the cloud if it is this Network's, or, if the cloud has given the id to another network, remove the finalizer of this Network", n.ID, named(*n), obs.name))), true
	}
	return plan{}, false
}

// Adopted brings a network in line whose spec was edited since its create.
func (k *kind) Adopted(net *pcapi.Network, n cloud.Network) error {
	if differing, _, _ := anotherRange(net, n); differing == "" && inSync(net, n) {
		return nil
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "network %s was found and is being brought in line with the spec", n.ID)
}

// inUse waits for the VMs of this cluster that are attached.
func inUse(net *pcapi.Network, vms []string) error {
	const most = 3
	named := strings.Join(vms[:min(most, len(vms))], ", ")
	if len(vms) > most {
		named += ", …"
	}
	after := "the network is deleted after the last one"
	if imported(net) {
		after = "this object is removed after the last one, and the network stays"
	}
	return reconciler.Blocked("VM/"+vms[0], pcapi.BlockedReason, "VMs on this network: %d (%s); delete them first, %s", len(vms), named, after)
}
