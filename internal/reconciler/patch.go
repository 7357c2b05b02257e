package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// maxSends bounds how often a status is sent while its object keeps changing.
const maxSends = 4

// goneError is met by a write whose object does not exist any more. Another
// object may have its name.
type goneError struct{ cause error }

func (e *goneError) Error() string { return e.cause.Error() }
func (e *goneError) Unwrap() error { return e.cause }

// patchStatus writes the status if it differs from before, and only onto the
// object that it was computed for. The patch holds the resourceVersion, which the
// API server compares. It does not compare the UID in a patch of the status of a
// custom resource: such a patch changes another object of the same name.
//
// If resend is set and only spec or metadata changed meanwhile, the status is
// sent again, so that what was created is on record. It is not if the finalizer was
// added: the status may hold the claim. patchStatus returns a goneError if the object
// does not exist any more.
func (r *Reconciler[T, S]) patchStatus(ctx context.Context, before, obj T, resend bool) error {
	for sends := 1; ; sends++ {
		err := r.sendStatus(ctx, before, obj)
		switch {
		case err == nil:
			return nil
		case objectNotFound(err):
			return fmt.Errorf("write status: %w", &goneError{cause: err})
		case !apierrors.IsConflict(err), r.Live == nil:
			return fmt.Errorf("write status: %w", err)
		}
		live, readErr := r.readLive(ctx, obj)
		if gone, ok := errors.AsType[*goneError](readErr); ok {
			return fmt.Errorf("write status: %w", gone)
		}
		if readErr != nil || !resend || sends == maxSends || !sameStatus(before, live) || r.claimedMeanwhile(obj, live) {
			return fmt.Errorf("write status: %w", err)
		}
		obj.SetResourceVersion(live.GetResourceVersion())
	}
}

// sendStatus sends the status of obj if it differs from that of before. Metadata
// that steps wrote is no difference. Of obj nothing changes if it fails.
func (r *Reconciler[T, S]) sendStatus(ctx context.Context, before, obj T) error {
	before.SetResourceVersion(obj.GetResourceVersion())
	before.SetFinalizers(obj.GetFinalizers())
	before.SetAnnotations(obj.GetAnnotations())
	if sameStatus(before, obj) {
		return nil
	}
	base := before.DeepCopyObject().(T)
	if unwritten(base) {
		// A first status is sent whole: its counts of 0 are in no difference.
		status := statusOf(base)
		status.Set(reflect.Zero(status.Type()))
	}
	return r.Client.Status().Patch(ctx, obj, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// unwritten reports whether a status holds at most the observedGeneration that
// the CRD sets.
func unwritten[T Object](obj T) bool {
	bare := obj.DeepCopyObject().(T)
	bare.SetObservedGeneration(0)
	return statusOf(bare).IsZero()
}

// readLive returns the object as the API server has it, or a goneError.
func (r *Reconciler[T, S]) readLive(ctx context.Context, obj T) (T, error) {
	live := r.Kind.New()
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), live)
	switch {
	case objectNotFound(err):
		return live, &goneError{cause: err}
	case err != nil:
		return live, fmt.Errorf("read the object: %w", err)
	case live.GetUID() != obj.GetUID():
		return live, &goneError{cause: errors.New("another object has this name now")}
	}
	return live, nil
}

// objectNotFound reports whether err is the API server's own answer that an
// object does not exist. A 404 for a kind that is not served now, or from
// something in between, is not.
func objectNotFound(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) || status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "" {
		return false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return false
		}
	}
	return true
}

// claimedMeanwhile reports whether the kind's finalizer was added after obj was read.
func (r *Reconciler[T, S]) claimedMeanwhile(obj, live T) bool {
	f := r.Kind.Finalizer()
	return controllerutil.ContainsFinalizer(live, f) && !controllerutil.ContainsFinalizer(obj, f)
}

// sameStatus reports whether two objects have the same status. Most are equal in memory,
// which is known without the allocations of a comparison of what the fields mean.
func sameStatus(a, b any) bool {
	x, y := statusOf(a).Addr().Interface(), statusOf(b).Addr().Interface()
	return reflect.DeepEqual(x, y) || equality.Semantic.DeepEqual(x, y)
}

func statusOf(obj any) reflect.Value { return reflect.ValueOf(obj).Elem().FieldByName("Status") }
