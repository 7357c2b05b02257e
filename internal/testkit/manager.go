package testkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/privatecloud/operator/internal/setup"
)

// Manager is the operator, running in the process of the test.
type Manager struct {
	// Writes are the changes that it requested from the API server.
	Writes *Writes
	// Cache has what the manager has observed, which may be older than what the API
	// server answers.
	Cache client.Reader

	stop context.CancelFunc
	done chan error
}

// StartManager runs the operator as the user of a configuration, such as that of
// Env.OperatorConfig, until it is stopped. It serves no metrics, no probes and, unless
// change configures it (see Webhook.Serve), no webhook.
func StartManager(user *rest.Config, options setup.Options, change ...func(*ctrl.Options)) (*Manager, error) {
	m := &Manager{Writes: &Writes{}, done: make(chan error, 1)}
	user = rest.CopyConfig(user)
	m.Writes.Count(user)
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	mgr, err := m.build(ctx, user, options, change)
	if err != nil {
		stop()
		return nil, err
	}
	go func() { m.done <- mgr.Start(ctx) }()
	return m, nil
}

func (m *Manager) build(ctx context.Context, user *rest.Config, options setup.Options, change []func(*ctrl.Options)) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	managed := ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		// One process may run several managers.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	setup.Caches(&managed)
	for _, apply := range change {
		apply(&managed)
	}
	mgr, err := ctrl.NewManager(user, managed)
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if options.Workers == 0 {
		options.Workers = 16
	}
	m.Cache = mgr.GetCache()
	return mgr, setup.Controllers(ctx, mgr, options)
}

// Stop ends the manager as SIGTERM does, and returns its error.
func (m *Manager) Stop() error {
	m.stop()
	select {
	case err := <-m.done:
		return err
	case <-time.After(30 * time.Second):
		return errors.New("the manager did not end within 30 s")
	}
}
