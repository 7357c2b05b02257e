package reconciler_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// TestForget delivers the event of an object's deletion after a reconcile whose
// status write came before the deletion.
func TestForget(t *testing.T) {
	tests := map[string]struct {
		change    func(*event.DeleteEvent)
		claim     reconciler.ClaimOf
		reconcile bool
		forgotten bool
	}{
		"finalizer removed, claim required: abandoned": {reconcile: true, claim: claimOfToy, change: func(e *event.DeleteEvent) {
			e.Object.SetFinalizers(nil)
			e.Object.SetAnnotations(nil)
		}},
		"finalizer removed, claim required, deletion timestamp: forgotten": {reconcile: true, forgotten: true, claim: claimOfToy, change: func(e *event.DeleteEvent) {
			now := metav1.Now()
			e.Object.SetFinalizers(nil)
			e.Object.SetDeletionTimestamp(&now)
		}},
		"finalizer and no deletion timestamp: abandoned": {reconcile: true},
		"claimed by an earlier process: forgotten":       {forgotten: true},
		"finalizer removed: forgotten": {reconcile: true, forgotten: true, change: func(e *event.DeleteEvent) {
			e.Object.SetFinalizers(nil)
		}},
		"deletion timestamp: forgotten": {reconcile: true, forgotten: true, change: func(e *event.DeleteEvent) {
			now := metav1.Now()
			e.Object.SetDeletionTimestamp(&now)
		}},
		"after a gap in the watch: forgotten": {reconcile: true, forgotten: true, change: func(e *event.DeleteEvent) {
			e.DeleteStateUnknown = true
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			vm := example(unclaimed)
			if !tc.reconcile {
				vm = example(annotated("web"))
			}
			w := newAbandonedWorld(t, vm)
			w.mustReconcile()
			last := w.stored()
			w.reconciler.ClaimOf = tc.claim
			if err := w.forget(t.Context(), last); err != nil {
				t.Fatalf("forget: %v", err)
			}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			var forgotten []types.UID
			handler := w.reconciler.Forget(func(o client.Object) { forgotten = append(forgotten, o.GetUID()) })
			e := event.DeleteEvent{Object: last}
			if tc.change != nil {
				tc.change(&e)
			}
			handler.Delete(t.Context(), e, queue)
			if tc.forgotten {
				equal(t, "forgotten", []types.UID{"uid-a"}, forgotten)
				equal(t, "enqueued", 0, queue.Len())
				return
			}
			equal(t, "forgotten", []types.UID(nil), forgotten)
			equal(t, "enqueued", 1, queue.Len())
			w.mustReconcile()
			equal(t, "deleted", []string{"server-of-uid-a"}, w.deletes)
			handler.Delete(t.Context(), e, queue)
			w.mustReconcile()
			equal(t, "deleted after the event came again", []string{"server-of-uid-a"}, w.deletes)
			equal(t, "forgotten once it was released", []types.UID{"uid-a"}, forgotten)
		})
	}
}

// TestObjectThatReplacesAnotherIsEnqueued: the watch was interrupted while the object was deleted and created again.
func TestObjectThatReplacesAnotherIsEnqueued(t *testing.T) {
	w := newHarness(t, example())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	var forgotten []types.UID
	handler := w.reconciler.Forget(func(o client.Object) { forgotten = append(forgotten, o.GetUID()) })
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: example(), ObjectNew: example()}, queue)
	equal(t, "enqueued by an update", 0, queue.Len())
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: example(), ObjectNew: example(func(vm *pcapi.VM) { vm.UID = "uid-new" })}, queue)
	equal(t, "forgotten", []types.UID{"uid-a"}, forgotten)
	equal(t, "enqueued by another object of the name", 1, queue.Len())
}

// TestForgetDuringReconcile deletes an object while it is reconciled: what the reconcile stores of it
// after the event is dropped, too.
func TestForgetDuringReconcile(t *testing.T) {
	w := newHarness(t, example())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	memory := map[types.UID]bool{}
	forget := w.reconciler.Forget(func(o client.Object) { delete(memory, o.GetUID()) })
	w.kind.observe = func(ctx context.Context, vm *pcapi.VM) error {
		memory["uid-of-another-name"] = true
		forget.Delete(ctx, event.DeleteEvent{Object: vm}, queue)
		forget.Delete(ctx, event.DeleteEvent{Object: example(func(o *pcapi.VM) { o.Name, o.UID = "b", "uid-of-another-name" })}, queue)
		memory[vm.UID], memory["uid-of-another-name"] = true, true
		return nil
	}
	result := w.mustReconcile()
	equal(t, "remembered", map[types.UID]bool{"uid-of-another-name": true}, memory)
	equal(t, "time until another object of the name is reconciled", time.Second, result.RequeueAfter)

	w.kind.observe = nil
	equal(t, "time after a reconcile without a deletion", time.Duration(0), w.mustReconcile().RequeueAfter)
	memory["uid-a"] = true
	forget.Delete(t.Context(), event.DeleteEvent{Object: example()}, queue)
	equal(t, "remembered after a deletion between two reconciles", map[types.UID]bool{"uid-of-another-name": true}, memory)
}
