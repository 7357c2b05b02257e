// Package vmsnapshot reconciles VMSnapshot objects with the snapshots of the servers
// of a private cloud.
//
//	controller.go  setup, and which events enqueue a VMSnapshot
//	resource.go    the snapshots of the cloud, for internal/external
//	plan.go        what is to be done about a snapshot (pure), and its steps
//	status.go      the status (pure)
//	forecast.go    what is going to be done, for users
package vmsnapshot

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// workers is how many VMSnapshots of one namespace are reconciled at a time on one Cloud.
	workers = 4
	// kindName is the name of the kind, by which the inventory refers to its objects.
	kindName = "VMSnapshot"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmsnapshots,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmsnapshots/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// observation is what one reconcile knows.
type observation struct {
	external.Observation[cloud.Snapshot]

	// name is the name of the snapshot in the cloud, which proves that it is this
	// object's.
	name string
	// server is the id of the server that the status records; empty for none. noServer: it is
	// gone, and another one may have the id.
	server   string
	noServer bool
	// vmID and vmCloud are the server of the VM and its Cloud, as the VM's status records
	// them. notReady is why no snapshot of the VM can be created; nil if one can.
	vmID, vmCloud string
	notReady      error
	// reverting: the VM is being reverted to the snapshot.
	reverting bool
}

type (
	plan      = reconciler.Plan[*pcapi.VMSnapshot, *observation]
	lifecycle = external.Lifecycle[*pcapi.VMSnapshot, cloud.Snapshot, *observation]
)

// kind is the VMSnapshot kind for internal/external.
type kind struct {
	external.Defaults[*pcapi.VMSnapshot, cloud.Snapshot, *observation]
	*lifecycle

	cluster string
}

func newKind(c client.Client, opts controller.Options) *kind {
	k := &kind{cluster: opts.Cluster}
	k.lifecycle = external.New(k, func() *pcapi.VMSnapshot { return &pcapi.VMSnapshot{} }, func() *observation { return &observation{} }, external.Options{
		Client: c, Live: opts.Live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History, Queues: opts.Queues, Alone: opts.Alone, Scope: opts.Scope, Directory: opts.Directory, Clock: opts.Clock,
		Kind: kindName, Noun: "snapshot", Finalizer: pcapi.VMSnapshotFinalizer, Ref: kindName, OnDemand: true, Identified: true,
		Needs: []cloud.Capability{cloud.Snapshots}, CloudFor: k.cloudFor,
		Elsewhere:  "delete this VMSnapshot, which with deletionPolicy Orphan needs no cloud",
		LostAdvice: "snapshots go with their VM; delete this VMSnapshot",
	})
	return k
}

// SetupWithManager sets up the VMSnapshot controller with the Manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	err := tenancy.IndexByCloud(ctx, mgr.GetFieldIndexer(), &pcapi.VMSnapshot{}, func(o client.Object) []string {
		return []string{o.(*pcapi.VMSnapshot).Status.Cloud}
	})
	if err != nil {
		return err
	}
	k, find := newKind(mgr.GetClient(), opts), tenancy.NewFinder(mgr.GetCache(), &pcapi.VMSnapshotList{})
	ofVM := func(ctx context.Context, vm client.Object) []reconcile.Request {
		return find.Matching(ctx, client.InNamespace(vm.GetNamespace()), client.MatchingFields{controller.VMSnapshotVMIndex: vm.GetName()})
	}
	engine := k.Reconciler(controller.Recorder(mgr))
	changed := controller.InScope(ctx, opts.Scope, mgr.GetClient(), k.CloudOf, k.ChangedByUser())
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vmsnapshot"), opts.Scope, find.ByNamespace, find.ByCloud).
		For(&pcapi.VMSnapshot{}, builder.WithPredicates(changed)).
		Watches(&pcapi.VMSnapshot{}, engine.Forget(k.ForgetDeleted)).
		Watches(&pcapi.VM{}, handler.EnqueueRequestsFromMapFunc(ofVM), builder.WithPredicates(serverChanged)).
		WatchesRawSource(controller.Referred(opts.Directory, kindName)).
		WithOptions(k.ControllerOptions(workers)).
		Complete(engine)
}

// serverChanged selects the events of VMs after which a VMSnapshot may be created, is lost or can be deleted.
var serverChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*pcapi.VM), e.ObjectNew.(*pcapi.VM)
		return serverOf(before) != serverOf(after)
	},
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// server is what a VMSnapshot depends on of the server of its VM.
type server struct {
	id           string
	policy       pcapi.ManagementPolicy
	ready, lost  bool
	reverting    types.UID
	beingDeleted bool
}

func serverOf(vm *pcapi.VM) server {
	return server{
		id: vm.Status.VMID, policy: vm.Spec.ManagementPolicy, beingDeleted: !vm.DeletionTimestamp.IsZero(),
		ready: meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition), lost: vm.Status.State == pcapi.VMStateLost,
		reverting: reverting(vm),
	}
}

// reverting returns the UID of the VMSnapshot that a VM is being reverted to, empty for none.
func reverting(vm *pcapi.VM) types.UID {
	if vm.RevertOpen() && vm.DeletionTimestamp.IsZero() {
		return vm.Status.Revert.SnapshotUID
	}
	return ""
}
