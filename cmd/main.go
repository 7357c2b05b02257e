// The manager of the private-cloud operator.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"
	_ "golang.org/x/crypto/x509roots/fallback" // public CAs, for images that have no file of them
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	// +kubebuilder:scaffold:imports
)

// version is set by the linker.
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
	f.zap.BindFlags(flag.CommandLine)
	flag.Parse()
	return f
}

func main() {
	f := parseFlags()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&f.zap)))
	if err := run(ctrl.SetupSignalHandler(), f); err != nil {
		setupLog.Error(err, "the manager ended")
		os.Exit(1)
	}
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

// HTTP/2 stays off: its stream resets can be used to exhaust a server.
var tlsOptions = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}

func webhookServer(f flags) (webhook.Server, error) {
	host, text, err := net.SplitHostPort(f.webhookAddr)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-bind-address: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("read --webhook-bind-address: %q is no port of 1-65535", text)
	}
	return webhook.NewServer(webhook.Options{Host: host, Port: int(port), CertDir: f.webhookCertPath, TLSOpts: tlsOptions}), nil
}

func metricsOptions(f flags) metricsserver.Options {
	options := metricsserver.Options{
		BindAddress: f.metricsAddr, SecureServing: f.metricsSecure,
		TLSOpts: tlsOptions,
	}
	if f.metricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

func addProbes(mgr manager.Manager, nameCheck bool) error {
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	if !nameCheck {
		return nil
	}
	if err := mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return fmt.Errorf("add the readiness probe of the webhook server: %w", err)
	}
	return nil
}
