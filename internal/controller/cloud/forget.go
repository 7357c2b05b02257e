package cloud

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// forgetting returns a reconciler that calls r and then, if the Cloud does not exist or is
// another manager's, forgets it: a Cloud without the finalizer is deleted without a
// release. A Cloud that exists is watched or not, as the reconcile left it.
// The deletion enqueues the Cloud, and its reconciles do not run concurrently, so
// nothing that a reconcile under way stores is left behind.
func (k *kind) forgetting(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := r.Reconcile(ctx, req)
		var c pcapi.Cloud
		cached := &client.GetOptions{DisableReadYourWritesConsistency: true}
		switch read := k.client.Get(ctx, req.NamespacedName, &c, client.UnsafeDisableDeepCopy, cached); {
		case apierrors.IsNotFound(read):
			k.forget(ctx, req.Name)
		case read == nil && !k.Scope.Selects(c.Labels):
			k.forget(ctx, req.Name)
		case read == nil:
			k.watchOrNot(&c)
		}
		return result, err
	})
}

// forget drops all that this process knows of a Cloud.
func (k *kind) forget(ctx context.Context, name string) {
	k.watches.stop(name)
	if !k.Directory.Remove(name) {
		return
	}
	k.Clients.Forget(ctx, name)
	k.connected.Delete(name)
	k.memories.Delete(name)
	k.gauge.forget(name)
}
