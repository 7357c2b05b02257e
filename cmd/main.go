// Command manager runs the controllers and the webhook of the private cloud
// operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap/zapcore"
	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for images that have no file of them
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/cmd/internal/buildinfo"
	"github.com/privatecloud/operator/internal/setup"
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
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

type flags struct {
	metricsAddr     string
	metricsSecure   bool
	webhookAddr     string
	webhookCertPath string
	probeAddr       string
	pprofAddr       string
	leaderElect     bool
	namespace       string
	defaultEndpoint string
	workers         int
	zap             zap.Options
	version         bool
}

func parseFlags() flags {
	f := flags{zap: zap.Options{TimeEncoder: zapcore.RFC3339TimeEncoder}}
	flag.StringVar(&f.metricsAddr, "metrics-bind-address", "0", "where metrics are served, such as :8443; 0 turns them off")
	flag.BoolVar(&f.metricsSecure, "metrics-secure", true, "serve metrics over HTTPS, to those who are authenticated and authorised")
	flag.StringVar(&f.webhookCertPath, "webhook-cert-path", "", "check the names of VMs before they are stored, with tls.crt and tls.key of this folder; empty for no check")
	flag.StringVar(&f.webhookAddr, "webhook-bind-address", ":9443", "where names are checked, for the API server")
	flag.StringVar(&f.probeAddr, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served; 0 turns them off")
	flag.StringVar(&f.pprofAddr, "pprof-bind-address", "0", "where profiles are served, such as 127.0.0.1:6060; 0 turns them off")
	flag.BoolVar(&f.leaderElect, "leader-elect", false, "act only while holding the lease; needed for more than one replica")
	flag.StringVar(&f.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the operator's own namespace, where the Secrets of Clouds are read; defaults to $POD_NAMESPACE")
	flag.StringVar(&f.defaultEndpoint, "default-cloud-endpoint", "", "make a Cloud \"default\" at this URL where none exists")
	flag.IntVar(&f.workers, "vm-workers", 16, "how many VMs are reconciled at a time")
	flag.BoolVar(&f.version, "version", false, "print the version and exit")
	f.zap.BindFlags(flag.CommandLine)
	flag.Parse()
	return f
}

func main() {
	f := parseFlags()
	if f.version {
		fmt.Println(version)
		return
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&f.zap)))
	reportVersion()
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		setupLog.Error(err, "the manager stopped with an error")
		os.Exit(1)
	}
}

// reportVersion logs the version and exports it as a metric.
func reportVersion() {
	setupLog.Info("starting the manager", buildinfo.LogValues(version)...)
	metrics.Registry.MustRegister(buildinfo.NewCollector(version))
}

func run(ctx context.Context, f flags) error {
	if f.namespace == "" {
		return fmt.Errorf("the operator's own namespace is not known: set --namespace or $POD_NAMESPACE")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.UserAgent = "private-cloud-operator/" + version
	retry := time.Second // a released lease is taken within one retry
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsOptions(f),
		HealthProbeBindAddress:        f.probeAddr,
		PprofBindAddress:              f.pprofAddr,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              "private-cloud-operator." + v1alpha1.GroupVersion.Group,
		LeaderElectionNamespace:       f.namespace,
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   &retry,
	}
	setup.Caches(&options)
	nameCheck := f.webhookCertPath != ""
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
		Namespace: f.namespace, DefaultEndpoint: f.defaultEndpoint, Workers: f.workers, Version: version, NameCheck: nameCheck,
	}); err != nil {
		return err
	}
	// +kubebuilder:scaffold:builder
	if err := addProbes(mgr, nameCheck); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
