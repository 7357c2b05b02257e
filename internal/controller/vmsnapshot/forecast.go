package vmsnapshot

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// newID stands for the id of a snapshot that does not exist yet.
const newID = "new"

// Forecaster says what the operator is going to do about VMSnapshots, from what the API
// server has.
type Forecaster struct{ kind *kind }

// NewForecaster returns a Forecaster that reads objects with c. Cluster is the UID of the
// namespace kube-system, empty if it is not known.
func NewForecaster(c client.Client, cluster string, clock func() time.Time) *Forecaster {
	return &Forecaster{kind: newKind(c, controller.ForecastOptions(c, cluster, clock))}
}

// Forecast returns what snap leads to, as it is after a create, an edit or a deletion.
func (f *Forecaster) Forecast(ctx context.Context, snap *pcapi.VMSnapshot) (forecast external.Forecasted, err error) {
	k, obs := f.kind, &observation{name: f.kind.Record(snap).Name, server: snap.Status.VMID}
	if forecast.Unreadable, err = k.ObserveCloud(ctx, snap, obs, cloud.NewCapabilities(cloud.Snapshots)); err != nil {
		return forecast, err
	}
	vm, err := k.vm(ctx, snap)
	if err != nil {
		return forecast, err
	}
	var server cloud.Server
	if vm != nil {
		server = cloud.Server{ID: vm.Status.VMID, Name: vm.Status.NameInCloud, Labels: map[string]string{inventory.UIDLabel: string(vm.UID)}}
		obs.vmID, obs.vmCloud, obs.reverting = vm.Status.VMID, vm.Status.Cloud, reverting(vm) == snap.UID
	}
	obs.Looked = true
	if snap.Status.SnapshotID != "" {
		obs.Resource = &cloud.Snapshot{ID: snap.Status.SnapshotID, Name: obs.name}
		obs.Owned, obs.Claimed = true, obs.name
	}
	obs.notReady = notReady(snap, vm, server, vm != nil && vm.Status.State != pcapi.VMStateLost, obs)
	if vm == nil && snap.Status.VMID == "" {
		obs.Denied = obs.notReady
	}
	forecast.Cloud = obs.Cloud
	forecast.Changes, forecast.Outcome = external.Forecast(k.lifecycle, k, snap, obs)
	return forecast, nil
}

// Copy returns a copy that Foresee may change.
func (k *kind) Copy(obs *observation) *observation {
	c := *obs
	return &c
}

// Foresee says what the steps of a VMSnapshot do.
func (k *kind) Foresee(step string, snap *pcapi.VMSnapshot, obs *observation) ([]pcapi.PlannedChange, bool) {
	switch step {
	case stepRecordVM:
		snap.Status.VMID, snap.Status.Cloud = obs.vmID, obs.vmCloud
		return nil, true
	case stepExpire:
		snap.DeletionTimestamp = new(metav1.NewTime(obs.Now))
		return nil, true
	case external.StepAdopt:
		return nil, true
	case external.StepCreate:
		obs.Resource, obs.Owned = &cloud.Snapshot{ID: newID, Name: obs.name, CreatedAt: obs.Now}, true
		snap.Status.SnapshotID = newID
		return []pcapi.PlannedChange{{Action: pcapi.PlannedCreate, Name: snap.Name, Details: []string{"snapshot of VM " + snap.Spec.VMName}}}, true
	}
	return nil, false
}
