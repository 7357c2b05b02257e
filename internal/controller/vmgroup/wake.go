package vmgroup

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// gather is how long news of members are gathered before a pass looks at them:
// a thousand members that come to be are not a thousand passes over a thousand.
const gather = 200 * time.Millisecond

// memberIndex finds the members of a group by its UID.
const memberIndex = "group"

func groupOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindName {
		return []string{string(owner.UID)}
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ownerOf wakes the group of a VM, a little later.
type ownerOf struct{}

var _ handler.EventHandler = ownerOf{}

func (ownerOf) wake(o client.Object, q queue) {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindName {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}, gather)
	}
}

func (w ownerOf) Create(_ context.Context, e event.CreateEvent, q queue) {
	if !e.IsInInitialList { // the group is in its own
		w.wake(e.Object, q)
	}
}
func (w ownerOf) Update(_ context.Context, e event.UpdateEvent, q queue) {
	w.wake(e.ObjectOld, q)
	w.wake(e.ObjectNew, q)
}
func (w ownerOf) Delete(_ context.Context, e event.DeleteEvent, q queue) { w.wake(e.Object, q) }
func (ownerOf) Generic(context.Context, event.GenericEvent, queue)       {}

// memberChanged lets everything through but writes of no consequence: a claim.
var memberChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*v1alpha1.VM), e.ObjectNew.(*v1alpha1.VM)
	return was.Generation != is.Generation || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!slices.Equal(groupOf(was), groupOf(is)) || !equality.Semantic.DeepEqual(was.Status, is.Status) || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		was.Annotations[v1alpha1.DeleteFirstAnnotation] != is.Annotations[v1alpha1.DeleteFirstAnnotation]
}}

// probed lets through Clouds whose capabilities came to be known or changed.
var probed = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Cloud), e.ObjectNew.(*v1alpha1.Cloud)
		return listed(was) != listed(is) || !equality.Semantic.DeepEqual(was.Status.Capabilities, is.Status.Capabilities)
	},
}

// finder finds groups in the cache. They are few.
type finder struct{ reader client.Reader }

func (f finder) byNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, func(*v1alpha1.VmGroup) bool { return true }, client.InNamespace(name))
}

func (f finder) byCloud(ctx context.Context, name string) []reconcile.Request {
	return f.find(ctx, func(g *v1alpha1.VmGroup) bool { return g.Spec.CloudRef == nil || g.Spec.CloudRef.Name == name })
}

func (f finder) withCloud() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request { return f.byCloud(ctx, o.GetName()) })
}

func (f finder) find(ctx context.Context, wanted func(*v1alpha1.VmGroup) bool, match ...client.ListOption) []reconcile.Request {
	var list v1alpha1.VmGroupList
	if err := f.reader.List(ctx, &list, append(match, client.UnsafeDisableDeepCopy)...); err != nil {
		log.Log.Error(err, "the VmGroups that news concern cannot be found")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if g := &list.Items[i]; wanted(g) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(g)})
		}
	}
	return requests
}
