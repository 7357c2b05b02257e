package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

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
