package reconciler

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// beforeKey is the key of the object whose status is the stored one.
type beforeKey struct{}

// WriteStatus stores a part of the status before the reconcile goes on, such as a
// claim. The write fails with a conflict if the object has changed since it was
// read; an unchanged status is not written.
func WriteStatus[T Object](ctx context.Context, c client.Client, obj T, change func()) error {
	base := obj.DeepCopyObject().(T)
	change()
	if equality.Semantic.DeepEqual(base, obj) {
		return nil
	}
	sent := obj.DeepCopyObject().(T)
	if err := c.Status().Patch(ctx, sent, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write status of %s: %w", client.ObjectKeyFromObject(obj), err)
	}
	obj.SetResourceVersion(sent.GetResourceVersion())
	if before, ok := ctx.Value(beforeKey{}).(T); ok {
		statusOf(before).Set(statusOf(obj.DeepCopyObject()))
	}
	return nil
}

// StatusTime returns a time as a status stores it, in whole seconds. Whatever is written to a
// status or compared with it has this form: else it differs from what is stored.
func StatusTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// EndTime returns a time as StatusTime does, for the end of what began at begin: never before that, which may have
// fractions of a second, or be of another clock.
func EndTime(begin, t time.Time) metav1.Time {
	end := StatusTime(t)
	if end.Time.Before(begin) {
		if end = StatusTime(begin); end.Time.Before(begin) {
			end = metav1.NewTime(end.Add(time.Second))
		}
	}
	return end
}
