package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// tlsOptions turn HTTP/2 off, because its stream resets can be used to exhaust a
// server.
var tlsOptions = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}

func webhookServer(f flags) (webhook.Server, error) {
	host, text, err := net.SplitHostPort(f.webhookAddr)
	if err != nil {
		return nil, fmt.Errorf("read --webhook-bind-address: %w", err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("read --webhook-bind-address: %q is not a port of 1-65535", text)
	}
	options := webhook.Options{Host: host, Port: int(port), CertDir: f.webhookCertPath, TLSOpts: tlsOptions}
	if f.webhookClientCA != "" {
		clients, err := clientCA(f.webhookClientCA)
		if err != nil {
			return nil, fmt.Errorf("read --webhook-client-ca ($WEBHOOK_CLIENT_CA): %w", err)
		}
		options.TLSOpts = append(slices.Clone(tlsOptions), func(c *tls.Config) {
			c.ClientCAs, c.ClientAuth = clients, tls.RequireAndVerifyClientCert
		})
	}
	return webhook.NewServer(options), nil
}

// clientCA returns the certificates of a PEM file.
func clientCA(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the administrator names the file
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
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

func addProbes(mgr manager.Manager, f flags) error {
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	if f.webhookCertPath == "" {
		return nil
	}
	if err := mgr.AddReadyzCheck("webhook", webhookStarted(mgr.GetWebhookServer(), f.webhookClientCA != "")); err != nil {
		return fmt.Errorf("add the readiness probe of the webhook server: %w", err)
	}
	return nil
}

// webhookStarted returns the check of whether the webhook server answers. It
// connects without a client certificate. Where one is required, the server logs
// each such connection, so that there is none after the first success.
func webhookStarted(server webhook.Server, requiresClient bool) healthz.Checker {
	var started atomic.Bool
	connect := server.StartedChecker()
	return func(r *http.Request) error {
		if requiresClient && started.Load() {
			return nil
		}
		err := connect(r)
		started.Store(err == nil)
		return err
	}
}
