// Package cloud keeps the way to each Cloud open, lists its servers and says
// how it stands.
//
//	controller.go  what wakes a pass
//	observe.go     what a pass reads: the listing, and whose the servers are
//	plan.go        what is to be done about it (pure)
//	outcomes.go    what a failed poll means
//	act.go         the steps' bodies
//	status.go      what is said about it (pure)
//	bootstrap.go   the Cloud "default" of an installation
package cloud

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Finalizer is on a Cloud as long as VMs and Networks may refer to it.
const Finalizer = v1alpha1.CloudFinalizer

const (
	// deadline bounds one pass: a listing of the largest clouds.
	deadline = 5 * time.Minute
	// workers is how many Clouds are listed at a time; one that hangs holds up one of them.
	workers = 8
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms;networks,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are what the controller needs beside a manager.
type Options struct {
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Cluster is this cluster's own id on the clouds' servers.
	Cluster string
	// VMIndex is the cache's index of VMs by their Cloud's name.
	VMIndex string
	// NetworkIndex is that of Networks.
	NetworkIndex string
	// Clients are kept up to date by this controller, for all callers.
	Clients *clouds.Clients
	// Clock tells the time.
	Clock func() time.Time
}

// kind is what the engine needs to know of Clouds.
type kind struct {
	Options
	client client.Client
	// live reads past the cache: objects that are to be proved gone.
	live  client.Reader
	gauge *gauges
}

// New returns the reconciler of Clouds.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, opts Options) *reconciler.Reconciler[*v1alpha1.Cloud, *scope] {
	return &reconciler.Reconciler[*v1alpha1.Cloud, *scope]{
		Client: c, Recorder: recorder, Deadline: deadline,
		Kind: &kind{Options: opts, client: c, live: live, gauge: sharedGauges},
	}
}

func (k *kind) New() *v1alpha1.Cloud { return &v1alpha1.Cloud{} }

func (k *kind) Finalizer() string { return Finalizer }

func (k *kind) Plan(c *v1alpha1.Cloud, obs *scope) reconciler.Plan[*v1alpha1.Cloud, *scope] {
	names, outcome := plan(c, obs)
	p := reconciler.Plan[*v1alpha1.Cloud, *scope]{Outcome: outcome}
	for _, name := range names {
		p.Steps = append(p.Steps, reconciler.Step[*v1alpha1.Cloud, *scope]{
			Name: name, Needs: reconciler.Mutates,
			Run: func(ctx context.Context, c *v1alpha1.Cloud, obs *scope) error { return k.Act(ctx, c, obs, name) },
		})
	}
	return p
}

func (k *kind) EventConditions() []string { return []string{v1alpha1.BrakedCondition} }

// SetupWithManager has Clouds reconciled by the manager.
func SetupWithManager(mgr ctrl.Manager, opts Options) error {
	annotated := predicate.AnnotationChangedPredicate{}
	warm := true // a standby that takes over has its cache already
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Cloud{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, annotated))).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			opts.Directory.OnPollRequest(func(name string, within time.Duration) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, within)
			})
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, EnableWarmup: &warm}).
		Complete(New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("private-cloud-operator"), opts))
}
