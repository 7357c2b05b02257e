package external

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/tenancy"
)

// ControllerOptions returns the options of the controller that runs the lifecycle.
// workers is how many objects of one namespace are reconciled at a time on one Cloud.
func (l *Lifecycle[T, R, S]) ControllerOptions(workers int) ctrlcontroller.Options {
	return controller.FairAmongClouds(workers, l.Queues, l.Group)
}

// Group returns what the object of a request shares workers with. Objects that are gone, and
// those whose Cloud does not exist or may not be used, call no cloud and belong to none, so that
// their waits do not reveal which of the two it is. A deleted object may still have something on a
// Cloud that its namespace may not use any more.
func (l *Lifecycle[T, R, S]) Group(request reconcile.Request) fairqueue.Group {
	ctx, group := context.Background(), fairqueue.Group{Namespace: request.Namespace}
	obj := l.object()
	if l.Client.Get(ctx, request.NamespacedName, obj, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) != nil {
		return group
	}
	name, err := l.CloudOf(ctx, obj)
	if err != nil {
		return group
	}
	_, err = tenancy.Open(ctx, l.Client, request.Namespace, name)
	denied, isDenied := errors.AsType[*tenancy.AccessError](err)
	if !isDenied || !denied.Missing && deleted(obj) && controllerutil.ContainsFinalizer(obj, l.Options.Finalizer) {
		group.Cloud = name
	}
	return group
}
