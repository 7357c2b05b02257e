package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/healthz"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"

	"github.com/privatecloud/operator/internal/metricsapi"
)

// shutdownDelay is how long calls are served after the termination signal, until
// the aggregation layer has observed that this replica is not ready.
const shutdownDelay = 5 * time.Second

// server is an API server of the group custom.metrics.k8s.io. It authenticates and
// authorizes callers with the main API server.
type server struct {
	adapter cmd.AdapterBase
}

// newServer returns a server that reads its settings from flags, which the caller
// parses. By default it listens on port 6443 with a self-signed certificate in
// memory.
func newServer(flags *pflag.FlagSet) *server {
	settings := options.NewCustomMetricsAdapterServerOptions()
	settings.SecureServing.BindPort = 6443
	settings.SecureServing.ServerCert.CertDirectory = ""
	s := &server{adapter: cmd.AdapterBase{
		Name: "private-cloud-operator-metrics-api", CustomMetricsAdapterServerOptions: settings, FlagSet: flags,
	}}
	s.adapter.InstallFlags()
	return s
}

// run serves until ctx is done, and then completes the calls in progress.
func (s *server) run(ctx context.Context) error {
	client, err := s.adapter.ClientConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	client.UserAgent = "private-cloud-operator-metrics-api/" + version
	objects, synced, err := metricsapi.NewCache(ctx, client)
	if err != nil {
		return err
	}
	s.adapter.WithCustomMetrics(metricsapi.NewProvider(objects, time.Now))
	config, err := s.adapter.Config()
	if err != nil {
		return fmt.Errorf("set up the metrics API: %w", err)
	}
	config.GenericConfig.ShutdownDelayDuration = shutdownDelay
	api, err := s.adapter.Server()
	if err != nil {
		return fmt.Errorf("set up the metrics API: %w", err)
	}
	if err := api.GenericAPIServer.AddReadyzChecks(healthz.NamedCheck("cache", func(*http.Request) error {
		if !synced() {
			return errors.New("not all VmGroups and VMs have been read yet")
		}
		return nil
	})); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return objects.Start(ctx) })
	group.Go(func() error { return api.GenericAPIServer.PrepareRun().RunWithContext(ctx) })
	return group.Wait()
}
