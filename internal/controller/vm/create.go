package vm

import (
	"context"
	"fmt"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// create sends the create. Whatever is not a clear answer counts as sent.
func (k *kind) create(ctx context.Context, vm *v1alpha1.VM, obs *scope) error {
	server, err := obs.view.Client.CreateServer(ctx, k.request(vm, obs))
	if err == nil {
		k.creates.Answered(vm.UID, server.ID, k.clock())
		k.backoff.Forget(vm.UID)
		obs.inv.RecordServer(string(vm.UID), server)
		if server.State.Transitional() || !obs.caps().Has(cloud.Labels) {
			k.follow(vm, obs)
		}
		k.attribute(vm, obs, server)
		return progress(server)
	}
	if outcome := k.mayHaveCreated(vm, obs, err); outcome != nil {
		return outcome
	}
	if obs.caps().Has(cloud.Labels) && obs.fresh {
		k.creates.Refused(vm.UID)
	}
	if !obs.caps().Has(cloud.Labels) && (obs.fresh || obs.settles == 0) {
		if err := k.unclaim(ctx, vm, obs); err != nil {
			return err
		}
	}
	switch {
	case cloud.Is(err, cloud.Prohibited, cloud.Taken):
		return k.refused(vm, obs, err)
	case cloud.Is(err, cloud.Quota):
		return reconciler.Wait(recheckTaken, v1alpha1.QuotaExceededReason, "%v", err)
	}
	return k.outcomeOf(vm, obs, err)
}

// mayHaveCreated is the outcome on an answer that leaves open whether a server
// came of this create or of an earlier one; nil if it says that none did.
func (k *kind) mayHaveCreated(vm *v1alpha1.VM, obs *scope, err error) error {
	caps, reused := obs.caps(), cloud.Is(err, cloud.KeyReused)
	claimedName := cloud.Is(err, cloud.Taken) && ((!obs.fresh && namesProve(caps)) || unseen(vm, obs))
	if !cloud.Uncertain(err) && !reused && !claimedName {
		return nil
	}
	k.creates.Mark(vm.UID, k.clock())
	switch {
	case reused && !caps.Has(cloud.Labels) && !caps.Has(cloud.UniqueNames):
		return stall(v1alpha1.AmbiguousReason, fmt.Errorf("%w: the spec was edited after a create whose answer was lost, and the key alone leads to its server: "+
			"set the spec back to what it was, or spec.import.vmId to the VM that came of it", err), recheckTaken)
	case claimedName:
		err = fmt.Errorf("%w; it was free when this VM claimed it, so an earlier create has taken effect: its server is looked for", err)
	default:
		err = fmt.Errorf("%w; the server may have been created all the same: it is looked for before another create", err)
	}
	return reconciler.Wait(k.backoff.When(vm.UID), v1alpha1.OutcomeUnknownReason, "%v", err)
}

// namesProve: nothing but a claimed name tells whose a server is. Another manager
// at work, or one that is dead, may have made it since the last listing.
func namesProve(caps cloud.Capabilities) bool {
	return caps.Has(cloud.UniqueNames) && !caps.Has(cloud.Labels) && !caps.Has(cloud.Idempotency)
}

// unseen: labels tell whose a server is, and no listing shows one of this name
// yet. Another manager at work may have made it for this VM a moment ago.
func unseen(vm *v1alpha1.VM, obs *scope) bool {
	return obs.caps().Has(cloud.Labels) && len(obs.inv.Named(vm.Spec.VMName)) == 0
}

// request is the create, with nothing in it that the cloud has no word for.
func (k *kind) request(vm *v1alpha1.VM, obs *scope) cloud.CreateServer {
	req := cloud.CreateServer{
		Name: vm.Spec.VMName, Template: vm.Spec.Template, Folder: vm.Spec.Folder, NetworkID: obs.networkID, IdempotencyKey: string(vm.UID),
	}
	if vm.Spec.CPU != nil {
		req.CPU = int(*vm.Spec.CPU)
	}
	if vm.Spec.Memory != nil {
		req.MemoryGiB = int(*vm.Spec.Memory)
	}
	if vm.Spec.PowerState == v1alpha1.PowerOff {
		req.PowerState = cloud.PowerOff
	}
	if obs.caps().Has(cloud.Labels) {
		req.Labels = k.ownerLabels(vm)
	}
	return req
}

func (k *kind) ownerLabels(vm *v1alpha1.VM) map[string]string {
	return map[string]string{
		inventory.UIDLabel:       string(vm.UID),
		inventory.ClusterLabel:   k.cluster,
		inventory.NamespaceLabel: vm.Namespace,
		inventory.NameLabel:      vm.Name,
	}
}
