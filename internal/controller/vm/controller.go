// Package vm reconciles VM objects with the servers of a private cloud. What
// belongs to one field of a VM is in the package field.
//
//	controller.go   setup
//	watch.go        which events enqueue a VM, and with which priority
//	index.go        the cache indexes of VMs
//	lean.go         VMs as the cache holds them
//	resource.go     the servers of the cloud, for internal/external
//	names.go        servers with the name that a create asked for
//	answer.go       whether the answer to a create is about what it made
//	labels.go       owner labels, and those that the cloud does not keep
//	relate.go       other VMs that have the name or the server
//	freed.go        VMs that wait for what a VM has that is being deleted
//	imports.go      which servers a VM may import
//	class.go        the VMClass that a VM takes its size or flavor from
//	group.go        VmGroups that protect their members
//	network.go      the Networks that a VM waits for
//	addresses.go    static addresses that a VM asks for
//	plan.go         what is to be done (pure)
//	drift.go        which changes are sent first, and which are possible (pure)
//	power.go        the steps between power states (pure)
//	disks.go        disks that others attached
//	tags.go         tags that the cloud refused
//	placement.go    anti-affinity of VMs
//	readiness.go    whether the guest is ready
//	socket.go       connections to the guest, for its readiness
//	steps.go        the steps that only VMs have
//	poweroff.go     how a server is stopped
//	restart.go      restarts at a time
//	snapshots.go    the VMSnapshots of a VM that is deleted
//	revert.go       reverts to a VMSnapshot
//	userdata.go     the user data of a new VM
//	confirm.go      the read of a server before it is imported
//	refusals.go     names and tags that the cloud refused lately
//	status.go       the status (pure)
//	forecast.go     what is going to be done, for users (pure)
//	forecaster.go   forecasts from what the API server has
//	outcomes.go     outcomes that several files return
//	observation.go  what one reconcile knows
//	object.go       what a VM object is and asks for (pure)
package vm

import (
	"context"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks;vmgroups,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmsnapshots,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

type (
	plan      = reconciler.Plan[*pcapi.VM, *observation]
	lifecycle = external.Lifecycle[*pcapi.VM, cloud.Server, *observation]
)

// kind is the VM kind for internal/external.
type kind struct {
	external.Defaults[*pcapi.VM, cloud.Server, *observation]
	*lifecycle

	cluster  string
	refusals refusals
	probes   *probe.Prober
	recorder events.EventRecorder
}

func newKind(c client.Client, opts controller.Options) *kind {
	k := &kind{cluster: opts.Cluster, refusals: newRefusals(opts.Clock), probes: opts.Probes}
	if k.probes == nil {
		k.probes = probe.New(probe.Options{})
	}
	k.lifecycle = external.New(k, func() *pcapi.VM { return &pcapi.VM{} }, func() *observation { return &observation{} }, external.Options{
		Client: c, Live: opts.Live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History, Queues: opts.Queues, Alone: opts.Alone, Scope: opts.Scope, Directory: opts.Directory, Clock: opts.Clock,
		Kind: "VM", Noun: "VM", Finalizer: pcapi.VMFinalizer, EventConditions: reconciler.EventConditions(pcapi.GuestReadyCondition), LostAdvice: "delete this object and create another",
	})
	return k
}

// SetupWithManager sets up the VM controller with the Manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	k, find := newKind(mgr.GetClient(), opts), tenancy.NewFinder(mgr.GetCache(), &pcapi.VMList{})
	k.recorder = controller.Recorder(mgr)
	engine := k.Reconciler(k.recorder)
	changed := controller.InScope(ctx, opts.Scope, mgr.GetClient(), k.CloudOf, k.ChangedByUser())
	b := tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vm"), opts.Scope, find.ByNamespace, find.ByCloud)
	return watchSnapshots(watchClasses(b, find), mgr.GetCache()).
		Watches(&pcapi.VM{}, enqueue{}, builder.WithPredicates(changed)).
		Watches(&pcapi.VM{}, engine.Forget(k.forgetVM)).
		Watches(&pcapi.VM{}, k.freed(find)).
		Watches(&pcapi.Network{}, networkChanges(mgr.GetCache())).
		Watches(&pcapi.VmGroup{}, membersOf(find), builder.WithPredicates(protectionEnded)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			opts.Directory.Subscribe(subscriber{find: find, reader: mgr.GetCache(), queue: q}.enqueue)
			k.probes.Subscribe(func(of probe.Key) { add(q, priorityChange, requestOf(of)) })
			return nil
		})).
		WithOptions(k.ControllerOptions(opts.Workers)).
		Complete(engine)
}
