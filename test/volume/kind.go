package volume

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

type (
	observation = external.Observation[Disk]
	plan        = reconciler.Plan[*Volume, *observation]
	lifecycle   = external.Lifecycle[*Volume, Disk, *observation]
)

// kind is the Volume kind for internal/external.
type kind struct {
	external.Defaults[*Volume, Disk, *observation]
	*lifecycle

	cloud *Cloud
}

// NewReconciler returns the reconciler of Volumes. Their disks are in c.
func NewReconciler(c *Cloud, recorder events.EventRecorder, opts external.Options) reconcile.Reconciler {
	k := &kind{cloud: c}
	opts.Kind, opts.Noun, opts.Finalizer, opts.Ref = "Volume", "volume", "example.com/volume", "Volume"
	opts.OnDemand, opts.Identified, opts.LostAdvice = true, true, "delete this Volume and create another"
	k.lifecycle = external.New(k, func() *Volume { return &Volume{} }, func() *observation { return &observation{} }, opts)
	return k.Reconciler(recorder)
}

// Record gives the volume a name with the object's UID, which proves whose it is.
func (k *kind) Record(v *Volume) external.Record {
	return external.Record{
		Ref: v.Spec.CloudRef, Name: "volume-" + string(v.UID), ID: v.Status.VolumeID, Cloud: v.Status.Cloud, ObservedGeneration: v.Status.ObservedGeneration,
	}
}

func (k *kind) Identify(d Disk) external.Identity {
	return external.Identity{ID: d.ID, State: cloud.StateActive}
}

// Look lists the volumes: this cloud's listing is never older than the call.
func (k *kind) Look(_ context.Context, v *Volume, obs *observation, id string) error {
	obs.Looked, obs.Owned, obs.Proof = true, true, external.OwnerProof
	for _, d := range k.cloud.Disks() {
		switch {
		case d.ID == id:
			obs.Resource = &d
		case d.Name == k.Record(v).Name && id != "":
			obs.Duplicates = append(obs.Duplicates, d)
		case d.Name == k.Record(v).Name:
			obs.Candidates = append(obs.Candidates, d)
		}
	}
	return nil
}

func (k *kind) Get(_ context.Context, _ *observation, id string) (Disk, error) {
	return k.cloud.get(id)
}

func (k *kind) Create(_ context.Context, v *Volume, _ *observation) (Disk, error) {
	return k.cloud.create(k.Record(v).Name, v.Spec.SizeGiB)
}

func (k *kind) Delete(_ context.Context, _ *Volume, _ *observation, d Disk) (bool, error) {
	return true, k.cloud.remove(d.ID)
}

func (k *kind) Remember(_ *Volume, obs *observation, d Disk) { obs.Resource, obs.Owned = &d, true }

// Repeatable: a second create makes a second volume.
func (k *kind) Repeatable(*Volume, *observation) bool { return false }

func (k *kind) PlanCreate(_ *Volume, obs *observation) plan {
	if obs.Claimed == "" {
		return k.Do(k.Steps.FirstClaim, k.Steps.Create)
	}
	return k.Do(k.Steps.Create)
}

func (k *kind) PlanExisting(v *Volume, obs *observation) plan {
	switch {
	case len(obs.Duplicates) > 0:
		return k.Do(k.Steps.DeleteDuplicate)
	case obs.Resource.SizeGiB != v.Spec.SizeGiB:
		return k.Do(k.Step("Grow", reconciler.NeedsCloud|reconciler.Mutates, k.grow))
	}
	return plan{}
}

func (k *kind) grow(_ context.Context, v *Volume, obs *observation) error {
	d, err := k.cloud.grow(obs.Resource.ID, v.Spec.SizeGiB)
	if err != nil {
		return k.Failed(v, obs, err)
	}
	k.Remember(v, obs, d)
	return nil
}

func (k *kind) Report(v *Volume, obs *observation, _ error) reconciler.Summary {
	if obs.Resource != nil && v.Status.VolumeID == "" {
		v.Status.VolumeID, v.Status.Cloud = obs.Resource.ID, obs.Cloud
	}
	return reconciler.Summary{Reason: v1alpha1.InSyncReason, Message: fmt.Sprintf("volume %s is as the spec says", v.Status.VolumeID)}
}
