package reconciler

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Claim records on the object that something of it may exist in the cloud: the
// finalizer, and annotations that identify it. It must be stored before the
// first effect. The write fails with a conflict if the object has changed since
// it was read; an unchanged claim is not written.
func Claim[T Object](ctx context.Context, c client.Client, obj T, finalizer string, annotations map[string]string) error {
	return writeMeta(ctx, c, obj, "claim", func() bool { return setClaim(obj, finalizer, annotations) })
}

// ClaimOfAnother reports whether the claim that an object has was written for another object, from which it was
// copied: by hand, or from a backup. Nothing was sent for the object with that claim.
func ClaimOfAnother(obj client.Object) bool {
	uid, has := obj.GetAnnotations()[pcapi.ClaimedUIDAnnotation]
	return has && uid != string(obj.GetUID())
}

// setClaim sets the finalizer and the annotations of a claim, and reports whether that changed the object.
func setClaim(obj client.Object, finalizer string, annotations map[string]string) (changed bool) {
	changed = controllerutil.AddFinalizer(obj, finalizer) || len(annotations) > 0 && ClaimOfAnother(obj)
	set := maps.Clone(obj.GetAnnotations())
	if set == nil {
		set = map[string]string{}
	}
	if len(annotations) > 0 && ClaimOfAnother(obj) {
		for _, key := range []string{pcapi.ClaimedNameAnnotation, pcapi.ClaimedCloudAnnotation, pcapi.ClaimRenewedAtAnnotation} {
			delete(set, key)
		}
	}
	for key, value := range annotations {
		changed = changed || set[key] != value
		set[key] = value
	}
	if len(annotations) > 0 {
		if changed {
			set[pcapi.ClaimedUIDAnnotation] = string(obj.GetUID())
		}
		obj.SetAnnotations(set)
	}
	return changed
}

// restoreClaim puts back what somebody removed or changed of the claim that an object must
// have, as kubectl replace does. If an object without its finalizer is deleted, its resource
// may stay in the cloud.
func (r *Reconciler[T, S]) restoreClaim(w *work, obj T) error {
	if r.ClaimOf == nil || deleting(obj) {
		return nil
	}
	annotations := r.ClaimOf(obj)
	if annotations == nil || hasClaim(obj, r.Kind.Finalizer(), annotations) || w.stopping() || !r.mayAct(w) {
		return nil
	}
	var none S
	return r.runStep(w, obj, none, Step[T, S]{Name: "RestoreClaim", Needs: Mutates, Run: func(ctx context.Context, obj T, _ S) error {
		if err := Claim(ctx, r.Client, obj, r.Kind.Finalizer(), annotations); err != nil {
			return err
		}
		r.claims.add(obj.GetUID())
		return nil
	}})
}

// Release removes a claim: nothing of the object exists in the cloud any more.
// It returns ErrUnknown if the object itself is gone.
func Release[T Object](ctx context.Context, c client.Client, obj T, finalizer string, annotations ...string) error {
	return writeMeta(ctx, c, obj, "release", func() bool {
		changed := controllerutil.RemoveFinalizer(obj, finalizer)
		set := maps.Clone(obj.GetAnnotations())
		for _, key := range annotations {
			_, had := set[key]
			changed = changed || had
			delete(set, key)
		}
		obj.SetAnnotations(set)
		return changed
	})
}

// writeMeta patches the object's metadata alone and leaves the status in
// memory, which the reconcile has not finished yet, as it is. The metadata of an
// abandoned object is changed in memory alone.
func writeMeta[T Object](ctx context.Context, c client.Client, obj T, what string, change func() bool) error {
	base := obj.DeepCopyObject().(T)
	if !change() || isAbandoned(ctx) {
		return nil
	}
	sent := obj.DeepCopyObject().(T)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	err := c.Patch(ctx, sent, patch)
	if apierrors.IsNotFound(err) && !obj.GetDeletionTimestamp().IsZero() {
		// The object was deleted meanwhile: nothing is left to write to or to report.
		return fmt.Errorf("%s %s: %w", what, client.ObjectKeyFromObject(obj), ErrUnknown)
	}
	if err != nil {
		obj.SetFinalizers(base.GetFinalizers())
		obj.SetAnnotations(base.GetAnnotations())
		if objectNotFound(err) {
			err = &goneError{cause: err}
		}
		return fmt.Errorf("%s %s: %w", what, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetResourceVersion(sent.GetResourceVersion())
	return nil
}
