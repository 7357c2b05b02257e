// Package vmgroup keeps as many VM objects as a VmGroup asks for. It talks to no
// cloud: its members are VMs, and the VM controller does the rest.
//
//	controller.go  setup
//	wake.go        what wakes a pass
//	observe.go     what a pass reads: the members, and what their Cloud can do
//	member.go      what a member is made from, is called and is worth
//	memory.go      what this process remembers: names that are somebody else's, failures
//	moves.go       which members come, go and change (pure)
//	plan.go        the steps and the outcome that follow (pure)
//	act.go         the steps' bodies
//	status.go      what is said about it (pure)
package vmgroup

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

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// Finalizer is on a group as long as it has members to delete.
const Finalizer = v1alpha1.VmGroupFinalizer

const (
	// deadline bounds one pass: as many creates as a pass makes.
	deadline = 2 * time.Minute
	// workers is how many groups are reconciled at a time.
	workers = 4
)

// Members that fail are replaced at once, and those that fail again later and later.
const (
	firstBackoff = 10 * time.Second
	lastBackoff  = 10 * time.Minute
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// kind is what the engine needs to know of groups.
type kind struct {
	client client.Client
	clock  func() time.Time
	// refused holds names that turned out to be somebody else's.
	refused refused
	// failures spaces the replacements of members that fail.
	failures failures
}

// New returns the reconciler of groups.
func New(c client.Client, recorder events.EventRecorder, clock func() time.Time) *reconciler.Reconciler[*v1alpha1.VmGroup, *scope] {
	return &reconciler.Reconciler[*v1alpha1.VmGroup, *scope]{
		Client: c, Recorder: recorder, Deadline: deadline,
		Kind: &kind{
			client: c, clock: clock, refused: newRefused(clock),
			failures: failures{
				next:    map[types.UID]time.Time{},
				backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff),
			},
		},
	}
}

func (k *kind) New() *v1alpha1.VmGroup { return &v1alpha1.VmGroup{} }

func (k *kind) Finalizer() string { return Finalizer }

func (k *kind) Plan(g *v1alpha1.VmGroup, obs *scope) reconciler.Plan[*v1alpha1.VmGroup, *scope] {
	names, outcome := plan(g, obs)
	p := reconciler.Plan[*v1alpha1.VmGroup, *scope]{Outcome: outcome}
	for _, name := range names {
		p.Steps = append(p.Steps, reconciler.Step[*v1alpha1.VmGroup, *scope]{
			Name: name, Needs: reconciler.Mutates,
			Run: func(ctx context.Context, g *v1alpha1.VmGroup, obs *scope) error { return k.Act(ctx, g, obs, name) },
		})
	}
	return p
}

func (k *kind) EventConditions() []string { return []string{v1alpha1.DeletingCondition} }

// SetupWithManager has groups reconciled by the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, clock func() time.Time) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.VM{}, memberIndex, groupOf); err != nil {
		return err
	}
	find := finder{reader: mgr.GetCache()}
	warm := true // a standby that takes over has its cache already
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vmgroup"), find.byNamespace, find.byCloud).
		For(&v1alpha1.VmGroup{}, builder.WithPredicates(reconciler.ChangedByUser(Finalizer, ""))).
		Watches(&v1alpha1.VM{}, ownerOf{}, builder.WithPredicates(memberChanged)).
		Watches(&v1alpha1.Cloud{}, find.withCloud(), builder.WithPredicates(probed)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, EnableWarmup: &warm}).
		Complete(New(mgr.GetClient(), mgr.GetEventRecorder("private-cloud-operator"), clock))
}
