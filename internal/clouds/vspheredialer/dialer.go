// Package vspheredialer makes the clients of Clouds of type VSphere from their spec
// and Secret.
package vspheredialer

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/clouds"
)

// The keys of a Secret with credentials.
const (
	usernameKey    = "username"
	passwordKey    = "password"
	tokenKey       = "token"
	certificateKey = "tls.crt"
	keyKey         = "tls.key"
	caKey          = "ca.crt"
)

// Dialer makes clients of vCenters.
type Dialer struct {
	// Base has the version, timeout, log, metrics and holds of every client.
	Base vsphere.Config
}

var _ clouds.Dialer = Dialer{}

// Dial returns a client of the vCenter at spec.endpoint.
func (d Dialer) Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	config, err := d.config(c, secret)
	if err != nil {
		return nil, err
	}
	return vsphere.New(config)
}

// SecretKeys names the kinds of credentials.
func (Dialer) SecretKeys() string { return vsphere.CredentialKeys }

// Forget drops the metrics of a Cloud, and what it asked clients to wait for.
func (d Dialer) Forget(name string) {
	d.Base.Metrics.Forget(name)
	d.Base.Holds.Forget(name)
}

func (d Dialer) config(c *pcapi.Cloud, secret *corev1.Secret) (vsphere.Config, error) {
	config := d.Base
	block := c.Spec.VSphere
	switch {
	case block == nil:
		return config, errors.New("spec.vsphere is missing: it has the settings of a cloud of type VSphere")
	case secret == nil:
		return config, errors.New("a cloud of type VSphere needs credentials: name a Secret in spec.credentialsSecretRef")
	case !c.Spec.InsecureAllowHTTP && !encrypted(c.Spec.Endpoint):
		return config, errors.New("credentials are sent over https only: give an endpoint that begins with https://, or set spec.insecureAllowHTTP to true")
	}
	config.Name, config.Endpoint = c.Name, c.Spec.Endpoint
	config.InsecureSkipVerify = c.Spec.InsecureSkipTLSVerify
	config.Limits = transport.Limits{
		RequestsPerSecond: float64(c.Spec.Limits.RequestsPerSecond),
		Burst:             int(c.Spec.Limits.Burst),
		MaxInFlight:       int(c.Spec.Limits.MaxInFlight),
	}
	config.Place = vsphere.Place{
		Datacenter: block.Datacenter, Folder: block.Folder, ResourcePool: block.ResourcePool, Datastore: block.Datastore,
		TemplateFolder: block.Templates.Folder, DefaultTemplate: block.Templates.Default,
		LinkedClones: block.CloneMode == pcapi.CloneModeLinked, Network: block.Networks.Default,
	}
	for _, zone := range block.Zones {
		config.Place.Zones = append(config.Place.Zones, vsphere.Zone(zone))
	}
	config.CA = secret.Data[caKey]
	config.Credentials = vsphere.Credentials{
		Username: string(secret.Data[usernameKey]), Password: string(secret.Data[passwordKey]), Token: string(secret.Data[tokenKey]),
		Certificate: secret.Data[certificateKey], Key: secret.Data[keyKey],
	}
	if err := config.Credentials.Validate(); err != nil {
		return config, fmt.Errorf("Secret %q in namespace %q: %w", secret.Name, secret.Namespace, err)
	}
	return config, nil
}

// encrypted reports whether calls of an endpoint are encrypted. An endpoint that is not
// a URL is not called at all.
func encrypted(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err != nil || !strings.EqualFold(u.Scheme, "http")
}
