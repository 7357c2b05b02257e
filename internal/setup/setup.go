// Package setup puts the controllers into a manager: the same way in the
// operator's binary and in tests.
package setup

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/clouds/openstackdialer"
	"github.com/privatecloud/operator/internal/clouds/restdialer"
	"github.com/privatecloud/operator/internal/clouds/vspheredialer"
	"github.com/privatecloud/operator/internal/clusternet"
	"github.com/privatecloud/operator/internal/controller"
	cloudcontroller "github.com/privatecloud/operator/internal/controller/cloud"
	gpuinfocontroller "github.com/privatecloud/operator/internal/controller/gpuinfo"
	networkcontroller "github.com/privatecloud/operator/internal/controller/network"
	vmcontroller "github.com/privatecloud/operator/internal/controller/vm"
	vmconsolerequestcontroller "github.com/privatecloud/operator/internal/controller/vmconsolerequest"
	vmgroupcontroller "github.com/privatecloud/operator/internal/controller/vmgroup"
	vmsnapshotcontroller "github.com/privatecloud/operator/internal/controller/vmsnapshot"
	"github.com/privatecloud/operator/internal/diagnostics"
	"github.com/privatecloud/operator/internal/fairqueue"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/lean"
	"github.com/privatecloud/operator/internal/objectmetrics"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
	webhookv1alpha1 "github.com/privatecloud/operator/internal/webhook/v1alpha1"
)

// Options are what the controllers of one manager need to know.
type Options struct {
	// Namespace is the operator's own: Secrets are read there and nowhere else.
	Namespace string
	// DefaultEndpoint is where a Cloud "default" is made if none exists and Scope selects
	// it; empty for nowhere.
	DefaultEndpoint string
	// Workers is how many VMs of one namespace are reconciled at a time on one Cloud, at least 1.
	Workers int
	// Version is the operator's. Clouds get it in the User-Agent header.
	Version string
	// NameCheck makes the manager's webhook server check the names of VMs before they are
	// stored, and CloudWebhook the allowedNamespaces of Clouds, whether it leads or not.
	NameCheck, CloudWebhook bool
	// CallTimeout bounds one call to a cloud with all its tries, transport.DefaultTimeout if zero.
	CallTimeout time.Duration
	// Scope is the part of all Clouds that the manager reconciles, with the objects
	// that use them.
	Scope tenancy.Scope
	// Leading and Alone are those of controller.Options; nil without leader election.
	Leading, Alone func() bool
	// Tracer makes the spans of reconciles and of calls to clouds; nil for none.
	Tracer trace.Tracer
	// ProbeNetworks are those whose VMs the operator may connect to for readiness probes, except
	// addresses of its cluster. ProbeDial replaces these connections; nil for TCP. Tests use it to serve guests.
	ProbeNetworks probe.Networks
	ProbeDial     probe.Dial
	// Diagnostics is the loopback address of the diagnostics endpoint; "0" or empty for none.
	Diagnostics string
	// Dialers are added to those of the types that the operator serves, and replace one
	// if they have one of their own for its type. Tests use it to serve clouds in memory.
	Dialers map[pcapi.CloudType]clouds.Dialer
}

// Metrics of the whole process, which can be registered once.
var (
	cloudMetrics = sync.OnceValue(func() *transport.Metrics { return transport.NewMetrics(metrics.Registry) })
	probeMetrics = sync.OnceValue(func() *probe.Metrics { return probe.NewMetrics(metrics.Registry) })
	reads        = sync.OnceValue(func() *readFailures {
		f := newReadFailures(time.Now)
		metrics.Registry.MustRegister(f)
		return f
	})
)

// Caches sets how a manager must read for the controllers to work: a
// reconcile reads what an earlier one wrote.
func Caches(options *ctrl.Options) {
	readOwnWrites := true
	options.Cache = cache.Options{
		DefaultTransform:         lean.Object,
		DefaultWatchErrorHandler: reads().handle,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}:            {Transform: gpuinfocontroller.LeanNode},
			&pcapi.VM{}:               {Transform: vmcontroller.LeanVM},
			&pcapi.VMConsoleRequest{}: {Transform: vmconsolerequestcontroller.Lean},
		},
	}
	options.Client = client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &readOwnWrites}}
}

// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// Controllers adds the controllers to a manager.
func Controllers(ctx context.Context, mgr manager.Manager, opts Options) error {
	var system corev1.Namespace
	if err := mgr.GetAPIReader().Get(ctx, client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		return fmt.Errorf("read namespace kube-system, whose UID is this cluster's id: %w", err)
	}
	directory := inventory.New(time.Now, string(system.UID))
	clients := clouds.New(clouds.Options{
		Secrets: mgr.GetAPIReader(), Namespace: opts.Namespace, Clock: time.Now, Dialers: dialers(opts),
	})
	if err := clients.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	if err := mgr.Add(clients.Closer(mgr.GetCache())); err != nil {
		return fmt.Errorf("add what closes the clients: %w", err)
	}
	probes, err := prober(ctx, mgr, opts)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", reads().check); err != nil {
		return fmt.Errorf("add the readiness probe of the caches: %w", err)
	}
	if err := startCaches(ctx, mgr.GetCache()); err != nil {
		return err
	}
	begun := time.Now()
	options := controller.Options{
		Directory: directory, Probes: probes, Clients: clients, Cluster: string(system.UID), Workers: opts.Workers,
		Clock: time.Now, Elapsed: func() time.Duration { return time.Since(begun) },
		Live: mgr.GetAPIReader(), Scope: opts.Scope, Leading: opts.leading(), Alone: opts.alone(), Tracer: opts.Tracer,
	}
	if err := serveDiagnostics(mgr, opts, &options); err != nil {
		return err
	}
	if err := controllersOfKinds(ctx, mgr, options); err != nil {
		return err
	}
	if err := objectmetrics.SetupWithManager(mgr, opts.Scope); err != nil {
		return err
	}
	if opts.NameCheck {
		webhookv1alpha1.SetupVMWebhookWithManager(mgr, clients)
	}
	if opts.CloudWebhook {
		webhookv1alpha1.SetupCloudWebhookWithManager(mgr)
	}
	// The Cloud "default" has no labels: another manager makes it if the scope lacks it.
	if endpoint := strings.TrimSpace(opts.DefaultEndpoint); endpoint != "" && opts.Scope.Selects(nil) {
		if err := mgr.Add(cloudcontroller.Bootstrap{Client: mgr.GetClient(), Endpoint: endpoint}); err != nil {
			return fmt.Errorf("add the default Cloud: %w", err)
		}
	}
	return nil
}

// controllersOfKinds sets up the controller of each kind.
func controllersOfKinds(ctx context.Context, mgr manager.Manager, options controller.Options) error {
	for _, kind := range []struct {
		name  string
		setUp func(context.Context, ctrl.Manager, controller.Options) error
	}{
		{"VM", vmcontroller.SetupWithManager},
		{"VmGroup", vmgroupcontroller.SetupWithManager},
		{"Network", networkcontroller.SetupWithManager},
		{"VMSnapshot", vmsnapshotcontroller.SetupWithManager},
		{"VMConsoleRequest", vmconsolerequestcontroller.SetupWithManager},
		{"Cloud", cloudcontroller.SetupWithManager},
		{"GPUInfo", gpuinfocontroller.SetupWithManager},
	} {
		if err := kind.setUp(ctx, mgr, options); err != nil {
			return fmt.Errorf("set up the %s controller: %w", kind.name, err)
		}
	}
	return nil
}

// prober adds what probes guests. It does not connect to addresses of the cluster, which are read only
// if it may connect to any.
func prober(ctx context.Context, mgr manager.Manager, opts Options) (*probe.Prober, error) {
	networks := opts.ProbeNetworks
	if !networks.Empty() {
		excluded := probe.NewExclusion()
		networks = networks.Except(excluded)
		if err := clusternet.Follow(ctx, mgr, excluded); err != nil {
			return nil, err
		}
	}
	probes := probe.New(probe.Options{Networks: networks, Dial: opts.ProbeDial, Metrics: probeMetrics()})
	if err := mgr.Add(probes); err != nil {
		return nil, fmt.Errorf("add what probes guests: %w", err)
	}
	return probes, nil
}

// serveDiagnostics adds the diagnostics endpoint, and sets what controllers record for it.
func serveDiagnostics(mgr manager.Manager, opts Options, options *controller.Options) error {
	if opts.Diagnostics == "" || opts.Diagnostics == diagnostics.Off {
		return nil
	}
	options.History, options.Queues = reconciler.NewHistory(), &fairqueue.Queues{}
	handler := diagnostics.NewHandler(diagnostics.Options{
		Version: opts.Version, Cluster: options.Cluster, Scope: opts.Scope, Cache: mgr.GetCache(), Directory: options.Directory,
		History: options.History, Queues: options.Queues, Metrics: metrics.Registry, Leading: opts.Leading,
	})
	if err := mgr.Add(diagnostics.NewServer(opts.Diagnostics, handler)); err != nil {
		return fmt.Errorf("add the diagnostics endpoint: %w", err)
	}
	return nil
}

// leading returns Leading, or without leader election a function that allows every effect: another
// process may have acted before this one all the same.
func (o Options) leading() func() bool {
	if o.Leading == nil {
		return func() bool { return true }
	}
	return o.Leading
}

// alone returns Alone, or nil if a Cloud may come from or go to a manager with another
// lease: caches lag, so that both act on it for a moment.
func (o Options) alone() func() bool {
	if !o.Scope.All() {
		return nil
	}
	return o.Alone
}

// startCaches makes the caches of all kinds that controllers watch start with the
// manager, so that a standby has them when it takes over. The controllers of a
// standby do not start themselves: without workers their queues would only grow.
func startCaches(ctx context.Context, informers cache.Informers) error {
	for _, object := range []client.Object{
		&pcapi.VM{}, &pcapi.VmGroup{}, &pcapi.Network{}, &pcapi.VMClass{}, &pcapi.VMSnapshot{}, &pcapi.VMConsoleRequest{}, &pcapi.GPUInfo{}, &pcapi.Cloud{},
		&corev1.Node{}, tenancy.NamespaceMetadata(),
	} {
		if _, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("start the cache of %T: %w", object, err)
		}
	}
	return nil
}

func dialers(opts Options) map[pcapi.CloudType]clouds.Dialer {
	all := map[pcapi.CloudType]clouds.Dialer{
		pcapi.CloudTypeREST: restdialer.Dialer{Base: rest.Config{
			Version: opts.Version, Timeout: opts.CallTimeout, Metrics: cloudMetrics(), Tracer: opts.Tracer, Holds: transport.NewHolds(), Log: ctrl.Log.WithName("cloud"),
		}},
		pcapi.CloudTypeVSphere: vspheredialer.Dialer{Base: vsphere.Config{
			Version: opts.Version, Timeout: opts.CallTimeout, Metrics: cloudMetrics(), Tracer: opts.Tracer, Holds: transport.NewHolds(), Log: ctrl.Log.WithName("cloud"),
		}},
		pcapi.CloudTypeOpenStack: openstackdialer.Dialer{Base: openstack.Config{
			Version: opts.Version, Timeout: opts.CallTimeout, Metrics: cloudMetrics(), Tracer: opts.Tracer, Holds: transport.NewHolds(), Log: ctrl.Log.WithName("cloud"),
		}},
	}
	maps.Copy(all, opts.Dialers)
	return all
}
