package testkit

import (
	"context"
	"fmt"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// cloudWebhook is the name of the registration of the webhook for Clouds in config/manifests.
const cloudWebhook = "private-cloud-operator-allowed-namespaces"

// Webhook is the address and the certificate with which a manager serves the
// webhooks, and their registration at the API server.
type Webhook struct {
	// Host, Port and CertDir are what the manager has to serve with.
	Host    string
	Port    int
	CertDir string

	hooks  envtest.WebhookInstallOptions
	server *Env
}

// NewWebhook makes a certificate and finds a free port of 127.0.0.1. Close it.
func (e *Env) NewWebhook() (*Webhook, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	hooks := envtest.WebhookInstallOptions{
		LocalServingHost: "127.0.0.1", Paths: []string{
			filepath.Join(root, "config", "webhook", "manifests.yaml"),
			filepath.Join(root, "config", "manifests", "cloud_webhook.yaml"),
		},
	}
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return nil, fmt.Errorf("preparing the webhooks of %v: %w", hooks.Paths, err)
	}
	return &Webhook{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir, hooks: hooks, server: e}, nil
}

// Register makes the API server call the name check webhook for VMs in namespaces with
// these labels, or in all namespaces if there are none. The name identifies the
// registration and must differ from those of other registrations.
func (w *Webhook) Register(ctx context.Context, name string, labels map[string]string) error {
	for _, configuration := range w.hooks.ValidatingWebhooks {
		if configuration.Name == cloudWebhook {
			continue
		}
		configuration := configuration.DeepCopy()
		configuration.ObjectMeta = metav1.ObjectMeta{Name: name}
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		if err := w.server.Client.Create(ctx, configuration); err != nil {
			return fmt.Errorf("creating the ValidatingWebhookConfiguration %s: %w", name, err)
		}
	}
	return nil
}

// RegisterClouds makes the API server call the webhook for Clouds with these labels, or for
// all Clouds if there are none. The name is as for Register.
func (w *Webhook) RegisterClouds(ctx context.Context, name string, labels map[string]string) error {
	for _, configuration := range w.hooks.ValidatingWebhooks {
		if configuration.Name != cloudWebhook {
			continue
		}
		configuration := configuration.DeepCopy()
		configuration.ObjectMeta = metav1.ObjectMeta{Name: name}
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ObjectSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		if err := w.server.Client.Create(ctx, configuration); err != nil {
			return fmt.Errorf("creating the ValidatingWebhookConfiguration %s: %w", name, err)
		}
	}
	return nil
}

// Unregister removes the registration of that name.
func (w *Webhook) Unregister(ctx context.Context, name string) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.server.Client.Delete(ctx, configuration); err != nil {
		return fmt.Errorf("deleting the ValidatingWebhookConfiguration %s: %w", name, err)
	}
	return nil
}

// Serve changes the options of a manager so that it serves the webhook.
func (w *Webhook) Serve(options *ctrl.Options) {
	options.WebhookServer = webhook.NewServer(webhook.Options{Host: w.Host, Port: w.Port, CertDir: w.CertDir})
}

// Close removes the certificate.
func (w *Webhook) Close() error {
	if err := w.hooks.Cleanup(); err != nil {
		return fmt.Errorf("removing the certificate of the webhook: %w", err)
	}
	return nil
}
