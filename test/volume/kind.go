package volume

import (
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Observation is what one reconcile knows, and Plan what it is to do.
type (
	Observation = external.Observation[Disk]
	Plan        = reconciler.Plan[*Volume, *Observation]

	lifecycle = external.Lifecycle[*Volume, Disk, *Observation]
)

// Kind is the Volume kind for internal/external.
type Kind struct {
	external.Defaults[*Volume, Disk, *Observation]
	*lifecycle

	cloud *Cloud
}

// NewKind returns the kind. The volumes are in c.
func NewKind(c *Cloud, opts external.Options) *Kind {
	k := &Kind{cloud: c}
	opts.Kind, opts.Noun, opts.Finalizer, opts.Ref = "Volume", "volume", "example.com/volume", "Volume"
	opts.OnDemand, opts.Identified, opts.LostAdvice = true, true, "delete this Volume and create another"
	k.lifecycle = external.New(k, func() *Volume { return &Volume{} }, func() *Observation { return &Observation{} }, opts)
	return k
}

// Record gives the volume a name with the object's UID, which proves whose it is.
func (k *Kind) Record(v *Volume) external.Record {
	return external.Record{
		Ref: v.Spec.CloudRef, Name: "volume-" + string(v.UID), ID: v.Status.VolumeID, Cloud: v.Status.Cloud, ObservedGeneration: v.Status.ObservedGeneration,
	}
}

// Identify returns the id: disks have no states.
func (k *Kind) Identify(d Disk) external.Identity {
	return external.Identity{ID: d.ID, State: cloud.StateActive}
}

// Owns reports whether a disk has the name of the object.
func (k *Kind) Owns(v *Volume, _ *Observation, d Disk) bool { return d.Name == k.Record(v).Name }

// Look lists the volumes: this cloud's listing is never older than the call.
func (k *Kind) Look(_ context.Context, v *Volume, obs *Observation, id string) error {
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

// Get reads one disk.
func (k *Kind) Get(_ context.Context, _ *Observation, id string) (Disk, error) {
	return k.cloud.get(id)
}

// Create creates a disk.
func (k *Kind) Create(_ context.Context, v *Volume, _ *Observation) (external.Result[Disk], error) {
	d, err := k.cloud.create(k.Record(v).Name, v.Spec.SizeGiB)
	return external.Result[Disk]{Resource: d}, err
}

// Delete deletes a disk, which is gone at once.
func (k *Kind) Delete(_ context.Context, _ *Volume, _ *Observation, d Disk) (external.Removal, error) {
	return external.Removal{Gone: true}, k.cloud.remove(d.ID)
}

// Remember keeps nothing: the listing is never older than the call.
func (k *Kind) Remember(_ *Volume, obs *Observation, d Disk, _ bool) {
	obs.Resource, obs.Owned = &d, true
}

// Repeatable: a second create makes a second volume.
func (k *Kind) Repeatable(*Volume, *Observation) bool { return false }

// PlanCreate needs nothing before the create.
func (k *Kind) PlanCreate(_ *Volume, obs *Observation) Plan {
	if obs.Claimed == "" {
		return k.Do(k.Steps.FirstClaim, k.Steps.Create)
	}
	return k.Do(k.Steps.Create)
}

// PlanExisting makes the disk as large as the spec says.
func (k *Kind) PlanExisting(v *Volume, obs *Observation) Plan {
	switch {
	case len(obs.Duplicates) > 0:
		return k.Do(k.Steps.DeleteDuplicate)
	case obs.Resource.SizeGiB != v.Spec.SizeGiB:
		return k.Do(k.Step("Grow", reconciler.NeedsCloud|reconciler.Mutates, k.grow))
	}
	return Plan{}
}

func (k *Kind) grow(_ context.Context, v *Volume, obs *Observation) error {
	d, err := k.cloud.grow(obs.Resource.ID, v.Spec.SizeGiB)
	if err != nil {
		return k.Failed(v, obs, err)
	}
	k.Remember(v, obs, d, false)
	return nil
}

// Report records the disk.
func (k *Kind) Report(v *Volume, obs *Observation, _ error) reconciler.Summary {
	if obs.Resource != nil && v.Status.VolumeID == "" {
		v.Status.VolumeID, v.Status.Cloud = obs.Resource.ID, obs.Cloud
	}
	return reconciler.Summary{Reason: pcapi.InSyncReason, Message: fmt.Sprintf("volume %s is as the spec says", v.Status.VolumeID)}
}
