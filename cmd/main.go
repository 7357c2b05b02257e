// Command manager runs the controllers and the webhooks of the private cloud
// operator. With drain as its first argument, it instead removes all that the operator
// manages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"
	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for images without a file of CAs
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/cmd/internal/buildinfo"
	"github.com/privatecloud/operator/internal/diagnostics"
	"github.com/privatecloud/operator/internal/leader"
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/tracing"
	// +kubebuilder:scaffold:imports
)

// version is set with -ldflags "-X main.version=...".
var version = "dev"

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(pcapi.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

type flags struct {
	metricsAddr     string
	metricsSecure   bool
	webhookAddr     string
	webhookCertPath string
	webhookClientCA string
	cloudWebhook    bool
	probeAddr       string
	pprofAddr       string
	diagnosticsAddr string
	leaderElect     bool
	namespace       string
	defaultEndpoint string
	cloudSelector   string
	probeNetworks   string
	workers         int
	zap             zap.Options
	version         bool
}

func parseFlags() flags {
	f := flags{zap: zap.Options{TimeEncoder: zapcore.RFC3339TimeEncoder}}
	flag.StringVar(&f.metricsAddr, "metrics-bind-address", "0", "address of the metrics endpoint, such as :8443; 0 disables it")
	flag.BoolVar(&f.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS to authenticated and authorized clients")
	flag.StringVar(&f.webhookCertPath, "webhook-cert-path", "", "folder with tls.crt and tls.key of the webhooks; empty disables them")
	flag.StringVar(&f.webhookClientCA, "webhook-client-ca", os.Getenv("WEBHOOK_CLIENT_CA"), "file with the CA of the client certificate of the API server: the webhooks then accept no other client; empty accepts all; defaults to $WEBHOOK_CLIENT_CA")
	flag.BoolVar(&f.cloudWebhook, "cloud-webhook", false, "serve the webhook for Clouds beside the name check webhook, for the bundle of OLM, which registers it")
	flag.StringVar(&f.webhookAddr, "webhook-bind-address", ":9443", "address of the webhooks")
	flag.StringVar(&f.probeAddr, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 disables them")
	flag.StringVar(&f.pprofAddr, "pprof-bind-address", "0", "address of the profiling endpoint, such as 127.0.0.1:6060; 0 disables it")
	flag.StringVar(&f.diagnosticsAddr, "diagnostics-bind-address", diagnostics.Off, "loopback address of the diagnostics endpoint, such as 127.0.0.1:8082, which the kubectl plugin reads through a forwarded port; 0 disables it")
	flag.BoolVar(&f.leaderElect, "leader-elect", false, "reconcile only while holding the lease; required with more than one replica")
	flag.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "namespace of the operator, where the Secrets of Clouds are read; defaults to $POD_NAMESPACE")
	flag.StringVar(&f.defaultEndpoint, "default-cloud-endpoint", "", "create a Cloud \"default\" with this endpoint if it does not exist")
	flag.StringVar(&f.cloudSelector, "cloud-selector", "", "reconcile only the Clouds whose labels match, and the objects that use them; empty for all Clouds")
	flag.StringVar(&f.probeNetworks, "probe-networks", os.Getenv("PROBE_NETWORKS"), "networks of VMs in CIDR notation, separated by commas, whose addresses readiness probes may connect to, except those of this cluster that the operator finds: of Nodes, Pods, Services, the API server and its own; empty for none; defaults to $PROBE_NETWORKS")
	flag.IntVar(&f.workers, "vm-workers", 16, "number of VMs of one namespace that are reconciled concurrently on one Cloud")
	flag.BoolVar(&f.version, "version", false, "print the version and exit")
	f.zap.BindFlags(flag.CommandLine)
	flag.Parse()
	return f
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == drainCommand {
		ctrl.SetLogger(zap.New())
		os.Exit(runDrain(ctrl.SetupSignalHandler(), os.Args[2:], os.Stdout, os.Stderr))
	}
	f := parseFlags()
	if f.version {
		fmt.Println(version)
		return
	}
	limitGarbage()
	boundVerbosity(&f.zap)
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&f.zap)))
	reportVersion()
	ctx := ctrl.SetupSignalHandler()
	tracer, flush, err := tracing.Start(ctx, version, ctrl.Log.WithName("tracing"))
	if err != nil {
		setupLog.Error(err, "traces cannot be exported")
		os.Exit(1)
	}
	err = run(ctx, f, tracer)
	flush()
	if err != nil {
		setupLog.Error(err, "the manager stopped with an error")
		os.Exit(1)
	}
}

// boundVerbosity disables levels from 7 on: there, client-go logs the bodies of
// requests and answers, and the answer to a read of a Secret is one of them.
func boundVerbosity(options *zap.Options) {
	const most = zapcore.Level(-6)
	if options.Level != nil && options.Level.Enabled(most-1) {
		options.Level = most
	}
}

// maxGarbage is how much garbage may wait for collection, in percent of the memory in
// use. Go's default is 100, with which the largest listings that clouds can send take
// a third more.
const maxGarbage = 50

// limitGarbage sets maxGarbage, unless the environment variable GOGC has another value.
func limitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(maxGarbage)
	}
}

// reportVersion logs the version and exports it as a metric.
func reportVersion() {
	setupLog.Info("starting the manager", buildinfo.LogValues(version)...)
	metrics.Registry.MustRegister(buildinfo.NewCollector(version))
}

func run(ctx context.Context, f flags, tracer trace.Tracer) error {
	if f.namespace == "" {
		return fmt.Errorf("the namespace of the operator is not known: set --namespace or $POD_NAMESPACE")
	}
	scope, err := tenancy.ParseScope(f.cloudSelector)
	if err != nil {
		return fmt.Errorf("read --cloud-selector: %w", err)
	}
	networks, err := probe.ParseNetworks(f.probeNetworks)
	if err != nil {
		return fmt.Errorf("read --probe-networks: %w", err)
	}
	if err := diagnostics.CheckAddress(f.diagnosticsAddr); err != nil {
		return fmt.Errorf("read --diagnostics-bind-address: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.UserAgent = "private-cloud-operator/" + version
	leaseDuration, renewDeadline := 15*time.Second, 10*time.Second
	retry := time.Second                  // another replica acquires a released lease within one retry
	stopTimeout := reconciler.StopTimeout // shorter than the terminationGracePeriodSeconds of the deployment
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsOptions(f),
		HealthProbeBindAddress:        f.probeAddr,
		PprofBindAddress:              f.pprofAddr,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              scope.LeaseName("private-cloud-operator." + pcapi.GroupVersion.Group),
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &leaseDuration,
		RenewDeadline:                 &renewDeadline,
		RetryPeriod:                   &retry,
		GracefulShutdownTimeout:       &stopTimeout,
	}
	if !scope.All() {
		setupLog.Info("reconciling a part of the Clouds", "cloudSelector", f.cloudSelector, "lease", f.namespace+"/"+options.LeaderElectionID)
	}
	setup.Caches(&options)
	var leading func() bool
	if f.leaderElect {
		lock, err := leader.New(leader.Config{
			Rest: config, Scheme: scheme, Namespace: f.namespace, Name: options.LeaderElectionID, Term: renewDeadline,
		})
		if err != nil {
			return err
		}
		defer lock.Close()
		options.LeaderElectionResourceLockInterface, leading = lock, lock.Leading
	}
	nameCheck := f.webhookCertPath != ""
	if f.cloudWebhook && !nameCheck {
		return errors.New("--cloud-webhook needs --webhook-cert-path: without it, no webhook is served")
	}
	if nameCheck {
		if options.WebhookServer, err = webhookServer(f); err != nil {
			return err
		}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := setup.Controllers(ctx, mgr, setup.Options{
		Namespace: f.namespace, DefaultEndpoint: f.defaultEndpoint, Workers: f.workers, Version: version, NameCheck: nameCheck, CloudWebhook: nameCheck && f.cloudWebhook,
		ProbeNetworks: networks, Scope: scope, Leading: leading, Alone: leading, Tracer: tracer, Diagnostics: f.diagnosticsAddr,
	}); err != nil {
		return err
	}
	// +kubebuilder:scaffold:builder
	if err := addProbes(mgr, f); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
