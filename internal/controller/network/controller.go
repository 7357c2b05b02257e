// Package network reconciles Network objects with the networks of a private cloud.
//
//	controller.go  setup
//	watch.go       which events enqueue a Network
//	resource.go    the networks of the cloud, for internal/external
//	imports.go     networks that exist, and which of them a Network may import
//	plan.go        what is to be done about an existing network (pure)
//	router.go      routers of networks
//	drift.go       what counts as different (pure)
//	gateway.go     which gateways are refused (pure)
//	status.go      the status (pure)
//	forecast.go    what is going to be done, for users
package network

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// workers is how many Networks of one namespace are reconciled at a time on one Cloud.
	workers = 4
	// kindName is the name of the kind, by which the inventory refers to its objects.
	kindName = "Network"
)

// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=networks/status,verbs=patch
// +kubebuilder:rbac:groups=samplecontroller.k8s.io,resources=vms,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// observation is what one reconcile knows.
type observation struct {
	external.Observation[cloud.Network]

	// name is the name of the network in the cloud, which proves that it is this
	// object's.
	name string
	// half: a create made the network in part, and no id is on record.
	half bool
	// byName: the network to import is not on record, and looked for by its name.
	// named is how many networks have it, and importErr refuses the import.
	byName    bool
	named     int
	importErr error
	// found is the external network that the router was connected to anew by its name: what the
	// status says is not used any more.
	found bool
	// attached are the names of the VMs that refer to the Network and that exist
	// in the cloud or may exist, sorted; counted is set once they are known.
	attached []string
	counted  bool
}

type (
	plan      = reconciler.Plan[*pcapi.Network, *observation]
	step      = reconciler.Step[*pcapi.Network, *observation]
	lifecycle = external.Lifecycle[*pcapi.Network, cloud.Network, *observation]
)

// kind is the Network kind for internal/external.
type kind struct {
	external.Defaults[*pcapi.Network, cloud.Network, *observation]
	*lifecycle

	cluster string
}

func newKind(c client.Client, opts controller.Options) *kind {
	k := &kind{cluster: opts.Cluster}
	k.lifecycle = external.New(k, func() *pcapi.Network { return &pcapi.Network{} }, func() *observation { return &observation{} }, external.Options{
		Client: c, Live: opts.Live, Leading: opts.Leading, Tracer: opts.Tracer, History: opts.History, Queues: opts.Queues, Alone: opts.Alone, Scope: opts.Scope, Directory: opts.Directory, Clock: opts.Clock,
		Kind: kindName, Noun: "network", Finalizer: pcapi.NetworkFinalizer, Ref: kindName, OnDemand: true, Identified: true,
		Needs:      []cloud.Capability{cloud.Networks, cloud.NetworkAttach},
		LostAdvice: "delete the VMs that refer to it and this object, and create others",
	})
	return k
}

// cloudKeys returns the keys of a Network in tenancy.CloudIndex.
func cloudKeys(o client.Object) []string {
	net := o.(*pcapi.Network)
	return tenancy.CloudKeys(net.Spec.CloudRef, external.RecordedCloud(net, net.Status.NetworkID, net.Status.Cloud, pcapi.NetworkFinalizer))
}

// SetupWithManager sets up the Network controller with the Manager. The index
// VMNetworkIndex must have been added to its cache.
func SetupWithManager(ctx context.Context, mgr ctrl.Manager, opts controller.Options) error {
	err := tenancy.IndexByCloud(ctx, mgr.GetFieldIndexer(), &pcapi.Network{}, cloudKeys)
	if err != nil {
		return err
	}
	k, find := newKind(mgr.GetClient(), opts), tenancy.NewFinder(mgr.GetCache(), &pcapi.NetworkList{})
	engine := k.Reconciler(controller.Recorder(mgr))
	changed := controller.InScope(ctx, opts.Scope, mgr.GetClient(), k.CloudOf, k.ChangedByUser())
	return tenancy.Watch(ctrl.NewControllerManagedBy(mgr).Named("network"), opts.Scope, find.ByNamespace, find.ByCloud).
		For(&pcapi.Network{}, builder.WithPredicates(changed)).
		Watches(&pcapi.Network{}, engine.Forget(k.ForgetDeleted)).
		Watches(&pcapi.VM{}, attachments(mgr.GetCache())).
		WatchesRawSource(controller.Referred(opts.Directory, kindName)).
		WithOptions(k.ControllerOptions(workers)).
		Complete(engine)
}
