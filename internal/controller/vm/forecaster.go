package vm

import (
	"cmp"
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Forecaster says what the operator is going to do about VMs, from what the API server has.
type Forecaster struct{ kind *kind }

// NewForecaster returns a Forecaster that reads objects with c. Cluster is the UID of the
// namespace kube-system, empty if it is not known.
func NewForecaster(c client.Client, cluster string, clock func() time.Time) *Forecaster {
	return &Forecaster{kind: newKind(c, controller.ForecastOptions(c, cluster, clock), nil)}
}

// Assumed is what a cloud is taken to be able to do if the user may not read its Cloud.
var Assumed = cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.Power, cloud.Resize, cloud.Folders, cloud.Networks,
	cloud.PowerAtCreate, cloud.WithUserData, cloud.Addresses, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.Suspend, cloud.WithDisks, cloud.Zones,
	cloud.WithAntiAffinity, cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.WithInterfaces, cloud.StaticAddresses, cloud.GuestHeartbeat, cloud.Sizing, cloud.Flavors, cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks)

// Forecast returns what vm leads to, as it is after a create, an edit or a deletion. Live is
// the object before that; nil if it does not exist. What the status does not show, such as
// tags, is taken to be as live says.
func (f *Forecaster) Forecast(ctx context.Context, live, vm *pcapi.VM) (forecast external.Forecasted, err error) {
	k, obs := f.kind, &observation{}
	if forecast.Unreadable, err = k.ObserveCloud(ctx, vm, obs, Assumed); err != nil {
		return forecast, err
	}
	switch {
	case vm.Status.VMID != "" && vm.Status.State == pcapi.VMStateLost:
		obs.Absent, obs.Gone = true, true
	case vm.Status.VMID != "":
		server := f.shown(cmp.Or(live, vm))
		obs.Resource, obs.Owned, obs.Claimed = &server, true, server.Name
	case vm.Spec.Import != nil && vm.DeletionTimestamp.IsZero():
		server := cloud.Server{ID: vm.Spec.Import.VMID, Name: vm.Spec.VMName, State: importedState(vm)}
		if obs.Spec != nil {
			obs.importErr = tenancy.MayImport(obs.Spec, vm.Namespace, server.ID)
		}
		obs.Resource, obs.How, obs.Owned = &server, pcapi.ImportedReason, !obs.Capabilities().Has(cloud.Labels)
	}
	if vm.Status.VMID == "" && vm.Spec.Import == nil { // a create may have been sent
		obs.Claimed, obs.New = k.ClaimedName(vm), live == nil
	}
	if obs.Denied == nil {
		err = k.observer.observeReferences(ctx, vm, obs)
	}
	switch {
	case apierrors.IsForbidden(err):
		forecast.Unreadable = cmp.Or(forecast.Unreadable, err)
	case err != nil:
		return forecast, err
	}
	forecast.Cloud = obs.Cloud
	forecast.Changes, forecast.Outcome = external.Forecast(k.lifecycle, k, vm, obs)
	return forecast, nil
}

// importedState is the state that a server to be imported is taken to have: that of the spec.
func importedState(vm *pcapi.VM) cloud.State {
	switch vm.Spec.PowerState {
	case pcapi.PowerOff:
		return cloud.StateStopped
	case pcapi.PowerSuspended:
		return cloud.StateSuspended
	default:
		return cloud.StateActive
	}
}

// shown returns the server that the status of a VM shows.
func (f *Forecaster) shown(vm *pcapi.VM) cloud.Server {
	server := cloud.Server{ID: vm.Status.VMID, Name: cmp.Or(vm.Status.NameInCloud, vm.Spec.VMName), Labels: f.kind.servers.ownerLabels(vm), State: cloud.StateUnknown}
	for _, state := range []cloud.State{cloud.StateActive, cloud.StateStopped, cloud.StateSuspended, cloud.StateBuilding, cloud.StateDeleting} {
		if stateOf(cloud.Server{State: state}) == vm.Status.State {
			server.State = state
		}
	}
	if vm.Status.State == pcapi.VMStateDeleting { // requested, perhaps not yet in the cloud
		server.State = cloud.StateActive
	}
	field.Shown(vm, &server)
	return server
}
