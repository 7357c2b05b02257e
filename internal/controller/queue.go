package controller

import (
	"k8s.io/client-go/util/workqueue"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/internal/fairqueue"
)

// FairQueue returns the NewQueue of a controller whose workers are shared as a fairqueue.Queue shares them: workers
// is how many a namespace may have on one Cloud. The queue is added to queues, which may be nil.
func FairQueue(workers int, queues *fairqueue.Queues, groupOf func(reconcile.Request) fairqueue.Group) func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return func(name string, rateLimiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		inner := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = rateLimiter })
		q := fairqueue.New(inner, name, workers, groupOf)
		queues.Add(q)
		return q
	}
}

// FairAmongNamespaces returns the options of a controller with a number of workers for objects that call no cloud: the
// workers serve the namespaces one after the other, however many objects each has.
func FairAmongNamespaces(workers int) ctrlcontroller.Options {
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue:                FairQueue(workers, nil, func(r reconcile.Request) fairqueue.Group { return fairqueue.Group{Namespace: r.Namespace} }),
	}
}
