// Package vmgroup keeps as many VM objects as a VmGroup asks for. It calls no
// cloud: the members are VMs, and the VM controller does the rest.
//
//	controller.go  setup, and what the engine needs to know of the kind
//	watch.go       which events enqueue a group
//	observe.go     what a reconcile reads: the members, and what their Cloud can do
//	member.go      names and states of members
//	template.go    what members are created with, and what a change of it does to them
//	disks.go       disks of members
//	memory.go      what this process remembers: failures, sizes, steps to be continued, names that are taken
//	moves.go       which members are created, changed and deleted (pure)
//	plan.go        the steps and the outcome (pure)
//	steps.go       what the steps do
//	pace.go        how many members a step changes, and how many at a time
//	approval.go    plans that wait for an approval
//	status.go      the status (pure)
//	forecast.go    what is going to be done, for users
package vmgroup

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	vms "github.com/privatecloud/operator/internal/controller/vm"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// deadline bounds one reconcile, which creates up to maxChanges members.
	deadline = 2 * time.Minute
	// workers is the number of groups that are reconciled concurrently.
	workers = 4
)

// Members that fail are replaced after firstBackoff; while they keep failing, replacements
// are delayed more and more.
const (
	firstBackoff = 10 * time.Second
	lastBackoff  = 10 * time.Minute
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups,verbs=list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=list;watch;create;patch;delete;approve;approve-for
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The engine's types for groups.
type (
	plan = reconciler.Plan[*pcapi.VmGroup, *observation]
	step = reconciler.Step[*pcapi.VmGroup, *observation]
)

// kind is what the engine needs to know of groups.
type kind struct {
	client   client.Client
	recorder events.EventRecorder
	scope    tenancy.Scope
	clock    func() time.Time
	// refused holds names that other objects or servers turned out to have.
	refused refused
	// memory holds what is remembered of each group.
	memory memory
	// members says what the operator does about members.
	members *vms.Forecaster
}

// New returns the reconciler of groups.
func New(c client.Client, recorder events.EventRecorder, opts controller.Options) *reconciler.Reconciler[*pcapi.VmGroup, *observation] {
	return newKind(c, recorder, opts).reconciler(opts)
}

func newKind(c client.Client, recorder events.EventRecorder, opts controller.Options) *kind {
	return &kind{
		client: c, recorder: recorder, scope: opts.Scope, clock: opts.Clock, refused: newRefused(opts.Clock),
		members: vms.NewForecaster(c, opts.Cluster, opts.Clock),
	}
}

// engine reconciles groups.
type engine = reconciler.Reconciler[*pcapi.VmGroup, *observation]

func (k *kind) reconciler(opts controller.Options) *engine {
	return &engine{
		Client: k.client, Recorder: k.recorder, Deadline: deadline, Kind: k, Reported: k.reported, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History,
		Owns:     controller.Owns(opts.Scope, k.client, opts.Live, k.cloudOf),
		Disowned: func(g *pcapi.VmGroup) { k.memory.forget(g.UID) },
	}
}

func (k *kind) New() *pcapi.VmGroup { return &pcapi.VmGroup{} }

func (k *kind) Finalizer() string { return pcapi.VmGroupFinalizer }

func (k *kind) EventConditions() []reconciler.EventCondition {
	return reconciler.EventConditions(pcapi.DeletingCondition, pcapi.ReadyCondition)
}

// reported records that a group is in sync.
func (k *kind) reported(g *pcapi.VmGroup, _ *observation, outcome error) {
	if outcome == nil {
		k.memory.inSync(g.UID, k.clock())
	}
}

// SetupWithManager sets up the VmGroup controller with the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	k := newKind(mgr.GetClient(), controller.Recorder(mgr), opts)
	engine := k.reconciler(opts)
	return k.watch(ctx, ctrl.NewControllerManagedBy(mgr).Named("vmgroup"), mgr.GetCache(), engine).
		Complete(engine)
}
