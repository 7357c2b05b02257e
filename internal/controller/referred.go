package controller

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/privatecloud/operator/internal/inventory"
)

// Referred enqueues the objects of a kind that wait for something of a cloud.
func Referred(directory *inventory.Directory, kind string) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		directory.Subscribe(func(event inventory.Event) {
			for _, ref := range event.Refs {
				if ref.Kind == kind {
					q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}})
				}
			}
		})
		return nil
	})
}
