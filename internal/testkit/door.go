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

// Door is where a manager checks names for the API server, with a certificate
// of its own.
type Door struct {
	// Host, Port and CertDir are what the manager has to serve with.
	Host    string
	Port    int
	CertDir string

	hooks  envtest.WebhookInstallOptions
	server *Env
}

// NewDoor makes a certificate and finds a free port of 127.0.0.1. Close it.
func (e *Env) NewDoor() (*Door, error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	hooks := envtest.WebhookInstallOptions{
		LocalServingHost: "127.0.0.1", Paths: []string{filepath.Join(root, "config", "webhook", "manifests.yaml")},
	}
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return nil, fmt.Errorf("preparing the webhooks of %s: %w", hooks.Paths[0], err)
	}
	return &Door{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir, hooks: hooks, server: e}, nil
}

// Open has the API server ask there about objects in namespaces with these
// labels, or in all; under a name, which differs from those of other doors.
func (d *Door) Open(ctx context.Context, name string, labels map[string]string) error {
	for _, configuration := range d.hooks.ValidatingWebhooks {
		configuration := configuration.DeepCopy()
		configuration.ObjectMeta = metav1.ObjectMeta{Name: name}
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
		if err := d.server.Client.Create(ctx, configuration); err != nil {
			return fmt.Errorf("creating the ValidatingWebhookConfiguration %s: %w", name, err)
		}
	}
	return nil
}

// Shut takes back what Open did.
func (d *Door) Shut(ctx context.Context, name string) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := d.server.Client.Delete(ctx, configuration); err != nil {
		return fmt.Errorf("deleting the ValidatingWebhookConfiguration %s: %w", name, err)
	}
	return nil
}

// Serve has a manager answer there.
func (d *Door) Serve(options *ctrl.Options) {
	options.WebhookServer = webhook.NewServer(webhook.Options{Host: d.Host, Port: d.Port, CertDir: d.CertDir})
}

// Close removes the certificate.
func (d *Door) Close() error {
	if err := d.hooks.Cleanup(); err != nil {
		return fmt.Errorf("removing the certificate of a door: %w", err)
	}
	return nil
}
