package vm

import (
	"context"
	"errors"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/pending"
	"github.com/privatecloud/operator/internal/probe"
)

// observer reads what a plan needs in addition to the server: its utilization, the objects that the VM refers to, and other
// VMs. It remembers refusals of a size.
type observer struct {
	*lifecycle
	servers  *servers
	refusals refusals
	probes   *probe.Prober
}

// relate observes the utilization where the listing does not include it, the class or the
// flavor that the VM takes, the Networks of a new VM, and other VMs that have the name or the server.
func (o *observer) relate(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if !obs.Capabilities().Has(cloud.BulkStatus) && !obs.Capabilities().Has(cloud.NoStatus) {
		obs.refresh = obs.View.Settings.PollInterval
	}
	if err := o.observeGroup(ctx, vm, obs); err != nil {
		return err
	}
	observeSocket(o.probes, vm, obs)
	o.observeRefusal(vm, obs)
	o.observeQuotes(ctx, vm, obs)
	observeNoHost(ctx, o.Client, vm, obs)
	if err := o.observeImport(ctx, vm, obs); err != nil {
		return err
	}
	observeFlavor(vm, obs)
	if obs.Denied == nil {
		if err := errors.Join(o.observeClass(ctx, vm, obs), o.observeRevert(ctx, vm, obs)); err != nil {
			return err
		}
	}
	switch {
	case obs.Denied != nil && vm.DeletionTimestamp.IsZero():
		return nil
	case vm.Status.VMID == "" && vm.Spec.Import == nil:
		obs.nameErr = o.refusals.recall(vm, obs.Cloud)
		if err := errors.Join(o.observeHolders(ctx, vm, obs), o.observeNetworks(ctx, vm, obs)); err != nil {
			return err
		}
		return o.observeRivals(ctx, vm, obs)
	case obs.Gone:
		return o.observeRivals(ctx, vm, obs)
	case obs.Resource == nil:
		return nil
	}
	observeUtilization(ctx, vm, obs)
	switch {
	case vm.Status.VMID == "":
		return o.observeRivals(ctx, vm, obs)
	case !obs.Capabilities().Has(cloud.Labels):
		return o.observeSharers(ctx, vm, obs)
	case !vm.DeletionTimestamp.IsZero() && !obs.Owned:
		return o.observeNextOwner(ctx, vm, obs)
	}
	return nil
}

// observeReferences observes the objects that a VM refers to, and whether it may have its flavor.
func (o *observer) observeReferences(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	observeFlavor(vm, obs)
	err := errors.Join(o.observeClass(ctx, vm, obs), o.observeRevert(ctx, vm, obs))
	if vm.Status.VMID == "" && vm.Spec.Import == nil {
		err = errors.Join(err, o.observeNetworks(ctx, vm, obs))
	}
	return err
}

// observeUtilization reads the utilization of the server where the listing does not include it.
func observeUtilization(ctx context.Context, vm *pcapi.VM, obs *observation) {
	switch {
	case obs.refresh == 0:
		obs.utilizationUnknown = obs.Resource.CPUUtilization == nil
	case obs.Available() && vm.DeletionTimestamp.IsZero():
		use, _ := obs.Inventory.Utilization.Read(ctx, obs.Resource.ID)
		obs.refresh = use.Again
		if use.Known && use.CPUUtilization != nil {
			obs.Resource.CPUUtilization = use.CPUUtilization
		} else {
			obs.utilizationUnknown = !use.Pending // else the status may have what an earlier process read
		}
	}
}

// observeRefusal finds out whether the cloud refused the size that the spec asks for
// while the server was to be started or suspended, or its tags.
func (o *observer) observeRefusal(vm *pcapi.VM, obs *observation) {
	if obs.Fault != nil && obs.FaultOf == external.OperationUpdate {
		o.Tracker.AcceptShutdown(vm.UID, time.Time{})
	}
	if obs.Fault != nil && obs.FaultOf == external.OperationUpdate && !obs.NeedsStop() && obs.Resource != nil && sizeFirst(obs.allowed(field.Difference(vm, *obs.Resource))) {
		o.Tracker.Refuse(vm.UID, pending.Refusal{Generation: vm.Generation, Reason: cloud.PublicMessage(obs.Fault)})
	}
	obs.refusal, _ = o.Tracker.RefusalOf(vm.UID, vm.Generation)
	obs.aside = o.refusals.recallParts(vm)
}
