// Package vm reconciles VM objects with the servers of a private cloud. What
// belongs to one field of a VM is in the package field.
//
//	controller.go   setup
//	freed.go        VMs that wait for what a VM has that is being deleted
//	forecaster.go   forecasts from what the API server has
//	kind.go         the VM kind for internal/external, and its parts
//	forecast.go     what is going to be done, for users (pure)
//	status.go       the status (pure)
//	readiness.go    whether the guest is ready
//	plan.go         what is to be done (pure)
//	steps.go        the steps that only VMs have
//	confirm.go      the read of a server before it is imported
//	resource.go     the servers of the cloud, for internal/external
//	revert.go       reverts to a VMSnapshot
//	restart.go      restarts at a time
//	update.go       how a server is changed
//	aside.go        tags, security groups and addresses that the cloud refused
//	poweroff.go     how a server is stopped
//	drift.go        which changes are sent first, and which are possible (pure)
//	power.go        the steps between power states (pure)
//	namecheck.go    whether a name may be used, and what a refusal of it means
//	observer.go     the objects beside a VM and its server
//	rivals.go       other VMs that have the name or the server
//	imports.go      which servers a VM may import
//	class.go        the VMClass that a VM takes its size or flavor from
//	flavor.go       flavors that a VM may name, and those that do not exist
//	group.go        VmGroups that protect their members
//	network.go      the Networks that a VM waits for
//	addresses.go    static addresses that a VM asks for
//	userdata.go     the user data of a new VM
//	placement.go    anti-affinity of VMs
//	answer.go       whether the answer to a create is about what it made
//	servers.go      which servers are those of a VM
//	labels.go       owner labels, and those that the cloud does not keep
//	names.go        servers with the name that a create asked for
//	outcomes.go     outcomes that several files return
//	snapshots.go    the VMSnapshots of a VM that is deleted
//	disks.go        disks that others attached
//	socket.go       connections to the guest, for its readiness
//	refusals.go     names and tags that the cloud refused lately
//	watch.go        which events enqueue a VM, and with which priority
//	index.go        the cache indexes of VMs
//	lean.go         VMs as the cache holds them
//	observation.go  what one reconcile knows
//	object.go       what a VM object is and asks for (pure)
package vm

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/source"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/tenancy"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks;vmgroups,verbs=list;watch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vmsnapshots,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager sets up the VM controller with the Manager.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	k, find := newKind(mgr.GetClient(), opts, controller.Recorder(mgr)), tenancy.NewFinder(mgr.GetCache(), &pcapi.VMList{})
	engine := k.Reconciler(k.recorder)
	changed := controller.InScope(ctx, opts.Scope, mgr.GetClient(), k.CloudOf, k.ChangedByUser())
	b := tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("vm"), opts.Scope, find.ByNamespace, find.ByCloud)
	return watchSnapshots(watchClasses(b, find), mgr.GetCache()).
		Watches(&pcapi.VM{}, enqueue{}, builder.WithPredicates(changed)).
		Watches(&pcapi.VM{}, engine.Forget(k.forgetVM)).
		Watches(&pcapi.VM{}, freed{find: find, reader: mgr.GetClient(), cloudOf: k.CloudOf, refusals: k.refusals}.handler()).
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
