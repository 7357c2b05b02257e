// Package gpuinfo chooses a Kubernetes node for each GPUInfo and reserves its
// host's hours for it.
//
//	controller.go  setup, and what the engine needs to know of the kind
//	watch.go       which events enqueue a GPUInfo
//	collector.go   events that concern many GPUInfos
//	observe.go     what a reconcile reads
//	nodes.go       the nodes, read once until one changes
//	hosts.go       the cloud's hosts, with a cache of failures
//	ends.go        when reservations end by the monotonic clock
//	claims.go      the reservations of all GPUInfos, summed up by host
//	candidate.go   whether a node suits (pure)
//	plan.go        which node is kept or chosen, and the outcome (pure)
//	status.go      the status (pure)
//
// Nothing but the status is written, so there is no finalizer, and the one step
// hands the decision on to Report.
package gpuinfo

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// deadline bounds one reconcile.
const deadline = 30 * time.Second

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=gpuinfos,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=gpuinfos/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// The engine's types for GPUInfos.
type (
	plan = reconciler.Plan[*pcapi.GPUInfo, *observation]
	step = reconciler.Step[*pcapi.GPUInfo, *observation]
)

// kind is what the engine needs to know of GPUInfos.
type kind struct {
	client    client.Client
	scope     tenancy.Scope
	cluster   string
	directory *inventory.Directory
	clock     func() time.Time
	ends      *ends
	claims    *claims
	nodes     nodes
	collector *collector

	mu sync.Mutex
	// named and listed are caches of what Observe reads, by Cloud. The values of named
	// belong to the one worker; mu guards the maps.
	named  map[string]named
	listed map[string]listed
}

// New returns the reconciler of GPUInfos. Its reconciles must run one after the
// other, with a client that reads its own writes: each choice counts the hours
// that the choices before it reserved.
func New(c client.Client, recorder events.EventRecorder, opts controller.Options) *reconciler.Reconciler[*pcapi.GPUInfo, *observation] {
	return newKind(c, opts).reconciler(recorder, opts)
}

func newKind(c client.Client, opts controller.Options) *kind {
	e := newEnds(opts.Elapsed)
	return &kind{
		client: c, scope: opts.Scope, cluster: opts.Cluster, directory: opts.Directory, clock: opts.Clock, ends: e, claims: newClaims(c, opts.Clock, e),
		collector: newCollector(enqueueDelay), named: map[string]named{}, listed: map[string]listed{},
	}
}

func (k *kind) reconciler(recorder events.EventRecorder, opts controller.Options) *reconciler.Reconciler[*pcapi.GPUInfo, *observation] {
	return &reconciler.Reconciler[*pcapi.GPUInfo, *observation]{
		Client: k.client, Recorder: recorder, Deadline: deadline, Kind: k, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History,
		Owns: controller.Owns(opts.Scope, k.client, opts.Live, k.cloudOf),
	}
}

func (k *kind) New() *pcapi.GPUInfo { return &pcapi.GPUInfo{} }

// Finalizer returns none: a GPUInfo that is deleted leaves nothing behind.
func (k *kind) Finalizer() string { return "" }

func (k *kind) EventConditions() []reconciler.EventCondition {
	return reconciler.EventConditions(pcapi.PlacedCondition, pcapi.ReadyCondition)
}

// SetupWithManager sets up the GPUInfo controller with the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	k := newKind(mgr.GetClient(), opts)
	return k.watch(ctx, ctrl.NewControllerManagedBy(mgr).Named("gpuinfo"), mgr.GetCache()).
		Complete(k.reconciler(controller.Recorder(mgr), opts))
}
