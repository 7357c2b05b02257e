// Package vmconsolerequest answers VMConsoleRequests with what the serial consoles of VMs printed.
//
//	controller.go  setup, and what the engine needs to know of the kind
//	observe.go     what a reconcile reads, and why a request is not answered (yet)
//	plan.go        what is to be done about a request (pure), and its steps
//	status.go      the status (pure)
//	lean.go        requests as the cache holds them
//
// Nothing is created in the cloud, so there is no finalizer.
package vmconsolerequest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// workers is how many requests of one namespace are answered at a time on one Cloud.
	workers = 2
	// deadline bounds one reconcile, which has two calls.
	deadline = 90 * time.Second
	// vmIndex is the cache index of requests by the name of their VM.
	vmIndex = "vm"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmconsolerequests,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmconsolerequests/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// The engine's types for VMConsoleRequests.
type (
	plan = reconciler.Plan[*pcapi.VMConsoleRequest, *observation]
	step = reconciler.Step[*pcapi.VMConsoleRequest, *observation]
)

// kind is what the engine needs to know of VMConsoleRequests.
type kind struct {
	client    client.Client
	directory *inventory.Directory
	clock     func() time.Time
}

func newKind(c client.Client, opts controller.Options) *kind {
	return &kind{client: c, directory: opts.Directory, clock: opts.Clock}
}

func (k *kind) reconciler(recorder events.EventRecorder, opts controller.Options) *reconciler.Reconciler[*pcapi.VMConsoleRequest, *observation] {
	return &reconciler.Reconciler[*pcapi.VMConsoleRequest, *observation]{
		Client: k.client, Recorder: recorder, Deadline: deadline, Kind: k, Live: opts.Live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History,
		Owns: controller.Owns(opts.Scope, k.client, opts.Live, k.cloudOf),
	}
}

// SetupWithManager sets up the VMConsoleRequest controller with the manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	indexer := mgr.GetFieldIndexer()
	err := tenancy.IndexByCloud(ctx, indexer, &pcapi.VMConsoleRequest{}, func(o client.Object) []string {
		return []string{o.(*pcapi.VMConsoleRequest).Status.Cloud}
	})
	if err != nil {
		return err
	}
	err = indexer.IndexField(ctx, &pcapi.VMConsoleRequest{}, vmIndex, func(o client.Object) []string {
		return []string{o.(*pcapi.VMConsoleRequest).Spec.VMName}
	})
	if err != nil {
		return fmt.Errorf("index VMConsoleRequests by VM: %w", err)
	}
	k, find := newKind(mgr.GetClient(), opts), tenancy.NewFinder(mgr.GetCache(), &pcapi.VMConsoleRequestList{})
	ofVM := func(ctx context.Context, vm client.Object) []reconcile.Request {
		return find.Matching(ctx, client.InNamespace(vm.GetNamespace()), client.MatchingFields{vmIndex: vm.GetName()})
	}
	changed := controller.InScope(ctx, opts.Scope, mgr.GetClient(), k.cloudOf, reconciler.ChangedByUser(k.Finalizer(), noClaim))
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vmconsolerequest"), opts.Scope, find.ByNamespace, find.ByCloud).
		For(&pcapi.VMConsoleRequest{}, builder.WithPredicates(changed)).
		Watches(&pcapi.VM{}, handler.EnqueueRequestsFromMapFunc(ofVM), builder.WithPredicates(serverChanged)).
		WithOptions(controller.FairAmongClouds(workers, opts.Queues, k.group)).
		Complete(k.reconciler(controller.Recorder(mgr), opts))
}

// noClaim is the claim of objects that have none.
func noClaim(client.Object) map[string]string { return nil }

// serverChanged selects the events of VMs after which a request may be answered, or be that of another manager.
var serverChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM)
		return before.Status.VMID != after.Status.VMID || before.Status.Cloud != after.Status.Cloud
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func (k *kind) New() *pcapi.VMConsoleRequest { return &pcapi.VMConsoleRequest{} }

// Finalizer returns none: a VMConsoleRequest that is deleted leaves nothing behind.
func (k *kind) Finalizer() string { return "" }

func (k *kind) EventConditions() []reconciler.EventCondition {
	return reconciler.EventConditions(pcapi.ReadyCondition)
}

// cloudOf returns the name of the Cloud of the VM whose console is read.
func (k *kind) cloudOf(ctx context.Context, r *pcapi.VMConsoleRequest) (string, error) {
	vm, err := external.FindVM(ctx, k.client, r.Namespace, r.Spec.VMName)
	if err != nil {
		return "", err
	}
	return external.CloudOfVM(ctx, k.client, r.Namespace, vm)
}

// group returns what the object of a request shares workers with: one that is gone, or may not use its Cloud, calls no cloud.
func (k *kind) group(request reconcile.Request) fairqueue.Group {
	ctx, group, r := context.Background(), fairqueue.Group{Namespace: request.Namespace}, k.New()
	if k.client.Get(ctx, request.NamespacedName, r, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency) != nil {
		return group
	}
	name, err := k.cloudOf(ctx, r)
	if err != nil {
		return group
	}
	if _, err := tenancy.Open(ctx, k.client, request.Namespace, name); err == nil {
		group.Cloud = name
	}
	return group
}
