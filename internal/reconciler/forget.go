package reconciler

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Forget returns a handler of deletions, which calls forget with each object that
// is gone, by its name and UID. If the name is being reconciled, it calls forget once more
// after that reconcile, which may have stored something of the object meanwhile. It
// enqueues an abandoned object instead.
func (r *Reconciler[T, S]) Forget(forget func(client.Object)) handler.EventHandler {
	gone := func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		key := client.ObjectKeyFromObject(e.Object)
		obj, ok := e.Object.(T)
		// An event after a gap in the watch may hold an old version of the object.
		if !ok || e.DeleteStateUnknown || !r.isClaimed(obj) {
			r.forget(e.Object, forget)
			if len(r.abandoned.named(key)) > 0 { // what was kept of the name does not wait for an event
				q.Add(reconcile.Request{NamespacedName: key})
			}
			return
		}
		if !r.abandoned.has(obj) {
			r.abandon(ctx, obj)
		}
		q.Add(reconcile.Request{NamespacedName: key})
	}
	return handler.Funcs{
		DeleteFunc: gone,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			// The watch did not show the deletion. Other handlers may see no change of the spec.
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				gone(ctx, event.DeleteEvent{Object: e.ObjectOld, DeleteStateUnknown: true}, q)
				q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
			}
		},
	}
}

// forget drops what is remembered of an object that is gone. It keeps nothing but its name and UID, since a reconcile may
// take minutes.
func (r *Reconciler[T, S]) forget(o client.Object, forget func(client.Object)) {
	named := r.Kind.New()
	named.SetNamespace(o.GetNamespace())
	named.SetName(o.GetName())
	named.SetUID(o.GetUID())
	key := client.ObjectKeyFromObject(named)
	r.underway.drop(key, func() {
		if r.abandoned.has(named) {
			return // its release needs what is remembered
		}
		forget(named)
		r.rejections.forget(named.GetUID())
		r.warnings.forget(named.GetUID())
		r.History.forget(kindName[T](), key)
	})
}

// underway holds the names that are being reconciled, each with what was dropped of
// objects of the name that were deleted meanwhile. The zero value is ready for use.
type underway struct {
	mu sync.Mutex
	of map[types.NamespacedName][]func()
}

func (u *underway) begin(name types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[types.NamespacedName][]func(){}
	}
	u.of[name] = nil
}

// drop calls a function that drops what is remembered of an object, and has end call it again
// if the name is being reconciled.
func (u *underway) drop(name types.NamespacedName, forget func()) {
	u.mu.Lock()
	if again, ok := u.of[name]; ok {
		u.of[name] = append(again, forget)
	}
	u.mu.Unlock()
	forget()
}

// end ends the reconcile of a name, and reports whether it dropped anything.
func (u *underway) end(name types.NamespacedName) bool {
	u.mu.Lock()
	again := u.of[name]
	delete(u.of, name)
	u.mu.Unlock()
	for _, forget := range again {
		forget()
	}
	return len(again) > 0
}
