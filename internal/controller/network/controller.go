// Package network keeps Network objects and the networks of a private cloud in step.
//
//	controller.go  setup
//	wake.go        what wakes a pass
//	observe.go     what a pass reads, and scope.go where it is kept
//	plan.go        what is to be done about it (pure), with drift.go
//	act.go         the steps' bodies
//	status.go      what is said about it (pure)
//	memory.go      what this process remembers between passes
package network

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/creates"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// Finalizer is on a Network as long as something of it may be in the cloud.
	Finalizer = v1alpha1.NetworkFinalizer
	// ClaimedCloudAnnotation records the Cloud that was meant when the finalizer was set.
	ClaimedCloudAnnotation = v1alpha1.ClaimedCloudAnnotation
)

const (
	// deadline bounds one pass: a listing, a create and their retries.
	deadline = 90 * time.Second
	// workers is how many Networks are looked after at a time.
	workers = 4
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are what the controller needs beside a manager.
type Options struct {
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Cluster is this cluster's own id: the UID of its kube-system namespace.
	Cluster string
	// VMIndex is the cache's index of VMs by the name of the Network that they refer to.
	VMIndex string
	// VMFinalizer is on a VM as long as something of it may be in the cloud.
	VMFinalizer string
	// Clock tells the time.
	Clock func() time.Time
}

// kind is what the engine needs to know of Networks.
type kind struct {
	Options
	client client.Client

	creates *creates.Memory
	silent  *silences
	// backoff is of calls that change something, unheard of those that only look.
	backoff, unheard workqueue.TypedRateLimiter[types.UID]
}

const (
	firstBackoff = time.Second
	lastBackoff  = 2 * time.Minute
)

// New returns the reconciler of Networks.
func New(c client.Client, recorder events.EventRecorder, opts Options) *reconciler.Reconciler[*v1alpha1.Network, *scope] {
	return &reconciler.Reconciler[*v1alpha1.Network, *scope]{
		Client: c, Recorder: recorder, Deadline: deadline,
		Kind: &kind{
			Options: opts, client: c, creates: creates.New(), silent: newSilences(),
			backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff),
			unheard: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff),
		},
	}
}

func (k *kind) New() *v1alpha1.Network { return &v1alpha1.Network{} }

func (k *kind) Finalizer() string { return Finalizer }

func (k *kind) Plan(net *v1alpha1.Network, obs *scope) reconciler.Plan[*v1alpha1.Network, *scope] {
	names, outcome := plan(net, obs)
	p := reconciler.Plan[*v1alpha1.Network, *scope]{Outcome: outcome}
	for _, name := range names {
		p.Steps = append(p.Steps, reconciler.Step[*v1alpha1.Network, *scope]{
			Name: name, Needs: reconciler.Mutates,
			Run: func(ctx context.Context, net *v1alpha1.Network, obs *scope) error { return k.Act(ctx, net, obs, name) },
		})
	}
	return p
}

func (k *kind) EventConditions() []string {
	return []string{v1alpha1.CreatedCondition, v1alpha1.DeletingCondition}
}

// SetupWithManager has Networks reconciled by the manager. The index of VMs must
// have been added to it.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	warm := true // a standby that takes over has its cache already
	find, runs := finder{reader: mgr.GetCache()}, New(mgr.GetClient(), mgr.GetEventRecorder("private-cloud-operator"), opts)
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("network"), find.byNamespace, find.byCloud).
		For(&v1alpha1.Network{}, builder.WithPredicates(reconciler.ChangedByUser(Finalizer, ClaimedCloudAnnotation))).
		Watches(&v1alpha1.Network{}, departures(runs.Kind.(*kind))).
		Watches(&v1alpha1.VM{}, find.attachments(opts)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			opts.Directory.Subscribe(func(news inventory.Event) { wake(q, news) })
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, EnableWarmup: &warm}).
		Complete(runs)
}
