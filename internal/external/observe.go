package external

import (
	"cmp"
	"context"
	"errors"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Observe reads the inventory, other objects, and the cloud only where the
// inventory does not say enough. It changes neither the cloud nor Kubernetes
// objects: it stores what it read, and subscribes the object to events.
func (l *Lifecycle[T, R, S]) Observe(ctx context.Context, obj T) (S, error) {
	obs, record := l.observation(), l.kind.Record(obj)
	o := obs.External()
	o.Now, o.How = l.Clock(), pcapi.CreatedReason
	wanted, err := tenancy.CloudFor(ctx, l.Client, obj.GetNamespace(), record.Ref)
	if err != nil {
		return obs, err
	}
	o.Cloud = cmp.Or(RecordedCloud(obj, record.ID, record.Cloud, l.Options.Finalizer), wanted)
	o.Moved = record.ID == "" && o.Cloud != wanted
	o.Inventory = l.Directory.Cloud(o.Cloud)
	o.View = o.Inventory.View()
	o.Claimed = l.claimed(obj, record)
	if err := l.admit(ctx, obj, o); err != nil {
		return obs, err
	}
	if o.Denied == nil || deleted(obj) {
		err = l.observeResource(ctx, obj, obs, record)
	}
	if related := l.kind.Relate(ctx, obj, obs); err == nil {
		err = related
	}
	return obs, err
}

// admit observes whether the object may use its Cloud.
func (l *Lifecycle[T, R, S]) admit(ctx context.Context, obj T, o *Observation[R]) error {
	_, err := tenancy.Open(ctx, l.Client, obj.GetNamespace(), o.Cloud)
	if missing, ok := errors.AsType[*tenancy.MissingError](err); ok {
		o.CloudMissing = true
		o.Denied = l.blocked(obj, o, "%v", missing)
		return nil
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		o.Denied = reconciler.Stalled(pcapi.CloudUnavailableReason, RecheckSoon, denied)
		return nil
	}
	return err
}

func (l *Lifecycle[T, R, S]) observeResource(ctx context.Context, obj T, obs S, record Record) error {
	o, id := obs.External(), record.id()
	supported := l.unsupported(o) == nil
	switch {
	case id == "" && o.Claimed == "":
		return nil // no create was sent
	case l.OnDemand && !o.Available():
		o.Inventory.EnqueueWhenAvailable(l.ref(obj), o.View)
		return nil
	case !supported:
		return nil
	}
	if id == "" {
		l.setHorizon(obj, o)
	}
	if err := l.kind.Look(ctx, obj, obs, id); err != nil {
		return l.lookFailed(obj, o, err)
	}
	created, known := l.Tracker.CreatedID(obj.GetUID())
	switch {
	case id == "" && l.OnDemand && known && len(o.Candidates) == 0:
		return l.askCreated(ctx, obj, obs, created)
	case id == "" || o.Resource != nil:
		l.Looks.Forget(obj.GetUID())
		return nil
	}
	return l.ask(ctx, obj, obs, id, record)
}

// askCreated asks the cloud for what this process created, if the listing lags
// behind the create.
func (l *Lifecycle[T, R, S]) askCreated(ctx context.Context, obj T, obs S, id string) error {
	o := obs.External()
	r, err := l.kind.Get(ctx, obs, id)
	switch {
	case cloud.Is(err, cloud.NotFound):
	case err != nil:
		return l.lookFailed(obj, o, err)
	default:
		o.Candidates, o.Proof = []R{r}, OwnerProof
	}
	l.Looks.Forget(obj.GetUID())
	return nil
}

// ask asks the cloud for a resource that no listing shows.
func (l *Lifecycle[T, R, S]) ask(ctx context.Context, obj T, obs S, id string, record Record) error {
	o := obs.External()
	if !o.Available() || (o.View.Braked && record.ID != "") {
		o.Inventory.EnqueueWhenAvailable(l.ref(obj), o.View)
		return nil
	}
	r, err := l.kind.Get(ctx, obs, id)
	switch {
	case cloud.Is(err, cloud.NotFound):
		o.Gone = true
	case err != nil:
		return l.lookFailed(obj, o, err)
	default:
		l.kind.Remember(obj, obs, r)
	}
	l.Looks.Forget(obj.GetUID())
	return nil
}

// setHorizon sets from when on a listing shows what the object's creates made.
func (l *Lifecycle[T, R, S]) setHorizon(obj T, o *Observation[R]) {
	since := l.Tracker.UnknownSince(obj.GetUID(), o.Inventory.StartedAt())
	end := since.Add(o.View.Settings.SettleTime)
	o.SettleTimeLeft = max(0, end.Sub(o.Now))
	o.Horizon = since
	if o.SettleTimeLeft == 0 {
		o.Horizon = end
	}
	if deleted(obj) {
		// A listing begun later shows what another manager created before it knew of the deletion.
		o.Horizon = Latest(o.Horizon, l.Tracker.DeletedSince(obj.GetUID(), o.Now))
	}
}

// Latest returns the later of two times.
func Latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
