// Package cloud keeps the client of each Cloud up to date, lists its servers and
// reports its status.
//
//	controller.go  setup, and what the engine needs to know of the kind
//	observe.go     what a reconcile reads: the VMs, the client, the listing
//	survey.go      what the listing means for the VMs: vanished and orphaned servers
//	memory.go      what is remembered between two reconciles
//	users.go       what keeps a deleted Cloud
//	plan.go        the steps and the outcome (pure)
//	outcomes.go    what a failed poll means
//	steps.go       what the steps do
//	forget.go      a Cloud that is gone
//	watch.go       changes that clouds report by themselves
//	status.go      the status (pure)
//	conformant.go  the condition Conformant (pure)
//	insecure.go    the condition Insecure (pure)
//	metrics.go     the metrics of each Cloud
//	bootstrap.go   the Cloud "default" of an installation
package cloud

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// deadline bounds one reconcile, which may list the largest clouds.
	deadline = 5 * time.Minute
	// workers is the number of Clouds that are reconciled concurrently. One that does
	// not answer occupies a worker, which costs little while it waits: there are more
	// workers than Clouds in almost every installation. The memory of listings is
	// bounded by inventory.Directory.List.
	workers = 256
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=clouds/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms;networks;vmsnapshots,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The engine's types for Clouds.
type (
	plan = reconciler.Plan[*pcapi.Cloud, *observation]
	step = reconciler.Step[*pcapi.Cloud, *observation]
)

// kind is what the engine needs to know of Clouds.
type kind struct {
	controller.Options
	client client.Client
	// live reads past the cache, to prove that objects are gone.
	live  client.Reader
	gauge *gauges
	// connected holds the names of Clouds with a new client that has not been used
	// for a listing yet.
	connected sync.Map
	// memories holds a *memory for each Cloud by its name.
	memories sync.Map
	watches  *watches
}

// New returns the reconciler of Clouds.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, opts controller.Options) *reconciler.Reconciler[*pcapi.Cloud, *observation] {
	k := &kind{Options: opts, client: c, live: live, gauge: sharedGauges, watches: newWatches(opts.Leading, sharedGauges)}
	return &reconciler.Reconciler[*pcapi.Cloud, *observation]{
		Client: c, Recorder: recorder, Deadline: deadline, Kind: k, Reported: k.reported, Live: live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History,
		Owns: controller.Owns(opts.Scope, c, live, nameOf),
	}
}

// nameOf returns the name of a Cloud.
func nameOf(_ context.Context, c *pcapi.Cloud) (string, error) { return c.Name, nil }

func (k *kind) New() *pcapi.Cloud { return &pcapi.Cloud{} }

func (k *kind) Finalizer() string { return pcapi.CloudFinalizer }

func (k *kind) EventConditions() []reconciler.EventCondition {
	return append(reconciler.EventConditions(pcapi.BrakedCondition, pcapi.ReadyCondition),
		reconciler.EventCondition{Type: pcapi.InsecureCondition, Warnings: []string{pcapi.NotEncryptedReason, pcapi.CertificateNotVerifiedReason}},
		reconciler.EventCondition{Type: pcapi.ConformantCondition, Warnings: []string{pcapi.ListingIncompleteReason}},
	)
}

// SetupWithManager sets up the Cloud controller with the manager. The indexes of
// VMs and Networks by their Cloud are registered by their controllers.
func SetupWithManager(_ context.Context, mgr ctrl.Manager, opts controller.Options) error {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, reconciler.FinalizerTaken(pcapi.CloudFinalizer))
	r := New(mgr.GetClient(), mgr.GetAPIReader(), controller.Recorder(mgr), opts)
	if err := mgr.Add(r.Kind.(*kind).watches); err != nil {
		return fmt.Errorf("add the watches: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&pcapi.Cloud{}, builder.WithPredicates(opts.Scope.FilterClouds(changed))).
		WatchesRawSource(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			opts.Directory.OnPollRequest(func(name string, within time.Duration) {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, within)
			})
			return nil
		})).
		WithOptions(ctrlcontroller.Options{MaxConcurrentReconciles: workers}).
		Complete(r.Kind.(*kind).forgetting(r))
}
