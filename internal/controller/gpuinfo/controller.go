// Package gpuinfo chooses a Kubernetes node for each GPUInfo, and holds its
// host's hours for it.
//
//	controller.go  setup
//	wake.go        what wakes a pass
//	observe.go     what a pass reads
//	candidate.go   what is said of each node (pure)
//	plan.go        which node is kept or chosen (pure)
//	status.go      what is said about it (pure)
//
// Nothing but status is written, so there is no finalizer and no step.
package gpuinfo

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// deadline bounds one pass.
const deadline = 30 * time.Second

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=gpuinfos,verbs=get;list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=gpuinfos/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Options are what the controller needs beside a manager.
type Options struct {
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Clock tells the time.
	Clock func() time.Time
}

// kind is what the engine needs to know of GPUInfos.
type kind struct {
	client    client.Client
	directory *inventory.Directory
	clock     func() time.Time
	// silent holds the Clouds whose hosts could not be listed lately, named the
	// servers of Clouds that are nodes. They have no lock: there is one worker.
	silent map[string]silence
	named  map[string]named
}

// New returns the reconciler of GPUInfos. Its passes must be made one after the
// other, through a client that reads its own writes: each choice counts the
// hours that the ones before it reserved.
func New(c client.Client, recorder events.EventRecorder, opts Options) *reconciler.Reconciler[*v1alpha1.GPUInfo, *scope] {
	return &reconciler.Reconciler[*v1alpha1.GPUInfo, *scope]{
		Client: c, Recorder: recorder, Deadline: deadline,
		Kind: &kind{client: c, directory: opts.Directory, clock: opts.Clock, silent: map[string]silence{}, named: map[string]named{}},
	}
}

func (k *kind) New() *v1alpha1.GPUInfo { return &v1alpha1.GPUInfo{} }

// Finalizer is none: a GPUInfo that is deleted leaves nothing behind.
func (k *kind) Finalizer() string { return "" }

func (k *kind) Plan(gpu *v1alpha1.GPUInfo, obs *scope) reconciler.Plan[*v1alpha1.GPUInfo, *scope] {
	return reconciler.End[*v1alpha1.GPUInfo, *scope](plan(gpu, obs))
}

func (k *kind) Report(gpu *v1alpha1.GPUInfo, obs *scope, _ error) reconciler.Summary {
	return report(gpu, obs)
}

func (k *kind) EventConditions() []string { return []string{v1alpha1.PlacedCondition} }

// SetupWithManager has GPUInfos reconciled by the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	warm := true // a standby that takes over has its cache already
	return watch(ctrl.NewControllerManagedBy(mgr).Named("gpuinfo"), finder{reader: mgr.GetCache()}, opts.Directory).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, EnableWarmup: &warm}).
		Complete(New(mgr.GetClient(), mgr.GetEventRecorder("private-cloud-operator"), opts))
}
