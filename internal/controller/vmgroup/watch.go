package vmgroup

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// memberDelay is the time between an event of a member and the reconcile of its
// group: many events of members lead to one reconcile. It is that of a group with
// membersPerDelay members, and longer for larger ones in proportion: a reconcile looks
// at all members.
const (
	memberDelay     = 200 * time.Millisecond
	membersPerDelay = 2_000
)

// memberIndex is the cache index of VMs by the UID of their group.
const memberIndex = "group"

// watch sets up the events that enqueue groups, and those by which deleted ones are forgotten, also ones whose finalizer
// somebody else removed.
func (k *kind) watch(ctx context.Context, b *builder.Builder, reader client.Reader, engine *engine) *builder.Builder {
	find := tenancy.NewFinder(reader, &pcapi.VmGroupList{})
	usersOf := func(ctx context.Context, o client.Object) []reconcile.Request { return find.ByCloud(ctx, o.GetName()) }
	changed := controller.InScope(ctx, k.scope, reader, k.cloudOf, reconciler.ChangedByUser(pcapi.VmGroupFinalizer, reconciler.FinalizerAlone))
	return tenancy.Watch(b, k.scope, find.ByNamespace, find.ByCloud).
		For(&pcapi.VmGroup{}, builder.WithPredicates(changed)).
		Watches(&pcapi.VmGroup{}, engine.Forget(func(g client.Object) { k.memory.forget(g.GetUID()) })).
		Watches(&pcapi.VM{}, enqueueGroup{&k.memory}, builder.WithPredicates(memberChanged)).
		Watches(&pcapi.Cloud{}, handler.EnqueueRequestsFromMapFunc(usersOf), builder.WithPredicates(capabilitiesChanged)).
		WithOptions(controller.FairAmongNamespaces(workers))
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, &pcapi.VM{}, memberIndex, groupOf); err != nil {
		return err
	}
	return tenancy.IndexByCloud(ctx, indexer, &pcapi.VmGroup{}, cloudKeys)
}

func cloudKeys(o client.Object) []string {
	return tenancy.CloudKeys(o.(*pcapi.VmGroup).Spec.CloudRef, "")
}

func groupOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindName {
		return []string{string(owner.UID)}
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueueGroup enqueues the group of a VM, after the delay for its size.
type enqueueGroup struct{ *memory }

var _ handler.EventHandler = enqueueGroup{}

func (h enqueueGroup) enqueue(o client.Object, q queue) {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == kindName {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}, h.memberDelay(owner.UID))
	}
}

func (h enqueueGroup) Create(_ context.Context, e event.CreateEvent, q queue) {
	if !e.IsInInitialList { // the group is enqueued by its own initial list
		h.enqueue(e.Object, q)
	}
}
func (h enqueueGroup) Update(_ context.Context, e event.UpdateEvent, q queue) {
	h.enqueue(e.ObjectOld, q)
	h.enqueue(e.ObjectNew, q)
}
func (h enqueueGroup) Delete(_ context.Context, e event.DeleteEvent, q queue) { h.enqueue(e.Object, q) }
func (enqueueGroup) Generic(context.Context, event.GenericEvent, queue)       {}

// memberChanged rejects updates of a VM that its group does not depend on, such
// as a claim.
var memberChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM)
	return was.Generation != is.Generation || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
		!slices.Equal(groupOf(was), groupOf(is)) || !equality.Semantic.DeepEqual(was.Status, is.Status) || !equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		pcapi.DeletedFirst(was) != pcapi.DeletedFirst(is) || was.Annotations[pcapi.ApprovedPlanAnnotation] != is.Annotations[pcapi.ApprovedPlanAnnotation] || pcapi.Protected(was) != pcapi.Protected(is)
}}

// capabilitiesChanged accepts Clouds whose capabilities become known or change.
var capabilitiesChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*pcapi.Cloud), e.ObjectNew.(*pcapi.Cloud)
		return listed(was) != listed(is) || !equality.Semantic.DeepEqual(was.Status.Capabilities, is.Status.Capabilities)
	},
}
