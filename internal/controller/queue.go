package controller

import (
	"k8s.io/client-go/util/workqueue"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/internal/fairqueue"
)

// FairAmongNamespaces returns the options of a controller that reconciles at most so many objects at a time, which call no
// cloud: the namespaces are served one after the other, however many objects each has.
func FairAmongNamespaces(workers int) ctrlcontroller.Options {
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: workers + 1, // see NewWithPlaces
		NewQueue: func(name string, rateLimiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			inner := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = rateLimiter })
			return fairqueue.NewWithPlaces(inner, name, workers, func(r reconcile.Request) fairqueue.Group { return fairqueue.Group{Namespace: r.Namespace} })
		},
	}
}

// FairAmongClouds returns the options of a controller that reconciles at most so many objects of one namespace at a time on one
// Cloud, which groupOf returns. The queue is added to queues, which may be nil.
func FairAmongClouds(workers int, queues *fairqueue.Queues, groupOf func(reconcile.Request) fairqueue.Group) ctrlcontroller.Options {
	return ctrlcontroller.Options{
		MaxConcurrentReconciles: fairqueue.Workers(workers),
		NewQueue: func(name string, rateLimiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			inner := priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = rateLimiter })
			q := fairqueue.New(inner, name, workers, groupOf)
			queues.Add(q)
			return q
		},
	}
}
