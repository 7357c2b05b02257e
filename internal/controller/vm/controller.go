// Package vm keeps VM objects and the servers of a private cloud in step.
//
//	controller.go  what wakes a pass, and with which priority
//	observe.go     what a pass reads
//	plan.go        what is to be done about it (pure)
//	act.go         the steps' bodies
//	create.go      the one that creates, and what its answer leaves open
//	status.go      what is said about it (pure)
//	network.go     the Network that a VM waits for
package vm

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
	// Finalizer is on a VM as long as something of it may be in the cloud.
	Finalizer = v1alpha1.VMFinalizer
	// ClaimedNameAnnotation records the name that the cloud allowed when the finalizer was set.
	ClaimedNameAnnotation = v1alpha1.ClaimedNameAnnotation
	// ClaimedCloudAnnotation records the Cloud whose cloud that was.
	ClaimedCloudAnnotation = v1alpha1.ClaimedCloudAnnotation
)

// deadline bounds one pass: a name check, a create and their retries.
const deadline = 90 * time.Second

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are what the controller needs beside a manager.
type Options struct {
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Cluster is this cluster's own id on the clouds' servers: the UID of its kube-system namespace.
	Cluster string
	// Workers is the number of passes at a time, at least 1.
	Workers int
	// Clock tells the time.
	Clock func() time.Time
}

// kind is what the engine needs to know of VMs.
type kind struct {
	client    client.Client
	directory *inventory.Directory
	cluster   string
	clock     func() time.Time

	creates  *creates.Memory
	refusals refusals
	backoff  workqueue.TypedRateLimiter[types.UID]
}

const (
	firstBackoff = time.Second
	lastBackoff  = 2 * time.Minute
)

// New returns the reconciler of VMs.
func New(c client.Client, recorder events.EventRecorder, opts Options) *reconciler.Reconciler[*v1alpha1.VM, *scope] {
	return &reconciler.Reconciler[*v1alpha1.VM, *scope]{
		Client: c, Recorder: recorder, Deadline: deadline,
		Kind: &kind{
			client: c, directory: opts.Directory, cluster: opts.Cluster, clock: opts.Clock,
			creates: creates.New(), refusals: newRefusals(opts.Clock),
			backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff),
		},
	}
}

func (k *kind) New() *v1alpha1.VM { return &v1alpha1.VM{} }

func (k *kind) Finalizer() string { return Finalizer }

func (k *kind) Plan(vm *v1alpha1.VM, obs *scope) reconciler.Plan[*v1alpha1.VM, *scope] {
	names, outcome := plan(vm, obs)
	p := reconciler.Plan[*v1alpha1.VM, *scope]{Outcome: outcome}
	for _, name := range names {
		p.Steps = append(p.Steps, reconciler.Step[*v1alpha1.VM, *scope]{
			Name: name, Needs: reconciler.Mutates,
			Run: func(ctx context.Context, vm *v1alpha1.VM, obs *scope) error { return k.Act(ctx, vm, obs, name) },
		})
	}
	return p
}

func (k *kind) EventConditions() []string {
	return []string{v1alpha1.CreatedCondition, v1alpha1.DeletingCondition}
}

// SetupWithManager has VMs reconciled by the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	warm := true // a standby that takes over has its cache already
	find := finder{reader: mgr.GetCache()}
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vm"), find.byNamespace, find.byCloud).
		Watches(&v1alpha1.VM{}, enqueue{}, builder.WithPredicates(worthAPass)).
		Watches(&v1alpha1.Network{}, networkNews(find)).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			opts.Directory.Subscribe(waker{finder: find, queue: q}.wake)
			return nil
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Workers, EnableWarmup: &warm}).
		Complete(New(mgr.GetClient(), mgr.GetEventRecorder("private-cloud-operator"), opts))
}
