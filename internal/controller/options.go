// Package controller holds what the controllers of all kinds have in common.
//
//	options.go     the options of their SetupWithManager, outcomes, and the names of
//	               shared cache indexes
//	queue.go       queues that serve the namespaces one after the other
//	servers.go     whether a server is that of a VM
//	referred.go    what enqueues objects that wait for something of a cloud
//	interfaces.go  the network interfaces that a VM asks for
//	capabilities.go
//	               what a Cloud reports that it can do
//	access.go      outcomes for objects whose Cloud may not be used, or is not listed yet
package controller

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Options are the options of every controller's SetupWithManager. A controller
// ignores those that it does not need.
type Options struct {
	// Directory holds the inventories of all Clouds.
	Directory *inventory.Directory
	// Probes connects to guests of VMs for readiness probes; nil to connect to none.
	Probes *probe.Prober
	// Clients holds the clients of all Clouds.
	Clients *clouds.Clients
	// Cluster identifies this cluster in the labels of servers.
	Cluster string
	// Workers is how many VMs of one namespace are reconciled at a time on one Cloud, at least 1.
	Workers int
	// Clock returns the current time.
	Clock func() time.Time
	// Elapsed returns the time since a fixed moment by a clock that nobody can set.
	// GPUInfos need it.
	Elapsed func() time.Duration
	// Scope is the part of all Clouds that is reconciled, with the objects that use them.
	Scope tenancy.Scope
	// Live reads from the API server; see reconciler.Reconciler.
	Live client.Reader
	// Tracer makes the spans of reconciles; nil for none.
	Tracer trace.Tracer
	// History remembers the last steps of objects, and Queues has the queues of the
	// controllers, both for diagnostics; nil for none.
	History *reconciler.History
	Queues  *fairqueue.Queues
	// Leading is that of reconciler.Reconciler.
	Leading func() bool
	// Alone reports whether no other manager may act now: this process holds the
	// lease, and the lease has not expired. Nil for never, as without leader election,
	// and where a Cloud may move to another manager, which has another lease.
	Alone func() bool
}

// ForecastOptions are the options of a kind that makes forecasts outside of the operator: it
// reads objects with c, and knows no cloud. Cluster is the UID of the namespace kube-system,
// empty if it is not known.
func ForecastOptions(c client.Client, cluster string, clock func() time.Time) Options {
	return Options{Cluster: cluster, Clock: clock, Live: c, Directory: inventory.New(clock, cluster)}
}

// Recorder returns the recorder of the controllers, which drops events if there are too many.
func Recorder(mgr recorder.Provider) events.EventRecorder {
	return reconciler.LimitEvents(mgr.GetEventRecorder("private-cloud-operator"))
}

// AwaitNamespace returns the outcome of a reconcile that failed with err: a wait
// without a change of the status if the object was observed before its namespace,
// else err.
func AwaitNamespace(err error) error {
	if pending, ok := errors.AsType[*tenancy.NamespacePendingError](err); ok {
		return &reconciler.WaitError{After: tenancy.NamespaceDelay, Reason: pcapi.ProgressingReason, Message: pending.Error(), Quiet: true}
	}
	return err
}

// CloudOf returns the name of the Cloud that an object uses.
type CloudOf[T client.Object] func(ctx context.Context, obj T) (string, error)

// Owns returns the Owns of a reconciler whose objects use the Clouds that cloudOf
// returns; nil if the scope is all Clouds.
func Owns[T client.Object](scope tenancy.Scope, cached, live client.Reader, cloudOf CloudOf[T]) func(context.Context, T) (func() bool, error) {
	if scope.All() {
		return nil
	}
	return func(ctx context.Context, obj T) (func() bool, error) {
		name, err := cloudOf(ctx, obj)
		if err != nil {
			return nil, AwaitNamespace(err)
		}
		return scope.Ownership(ctx, cached, live, name)
	}
}

// InScope returns the predicate that the Filter of a scope makes of changed.
func InScope[T client.Object](ctx context.Context, scope tenancy.Scope, cached client.Reader, cloudOf CloudOf[T], changed predicate.Predicate) predicate.Predicate {
	return scope.Filter(ctx, cached, func(ctx context.Context, o client.Object) (string, error) {
		return cloudOf(ctx, o.(T))
	}, changed)
}

// VMNetworkIndex is the cache index of VMs by the name of the Network that they
// refer to. The VM controller registers it.
const VMNetworkIndex = "network"

// VMSnapshotVMIndex is the cache index of VMSnapshots by the name of their VM. The VM
// controller registers it.
const VMSnapshotVMIndex = "vm"

// ClockFunc is a clock for caches of Kubernetes libraries.
type ClockFunc func() time.Time

// Now returns the current time.
func (c ClockFunc) Now() time.Time { return c() }
