// Package openstackdialer makes the clients of Clouds of type OpenStack from their spec
// and Secret.
package openstackdialer

import (
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

// The keys of a Secret with credentials.
const (
	credentialIDKey     = "applicationCredentialId"
	credentialSecretKey = "applicationCredentialSecret"
	usernameKey         = "username"
	passwordKey         = "password"
	caKey               = "ca.crt"
)

// Dialer makes clients of OpenStack.
type Dialer struct {
	// Base has the version, timeout, log, metrics and holds of every client.
	Base openstack.Config
}

var _ clouds.Dialer = Dialer{}

// Dial returns a client of the project that the spec and the Secret name.
func (d Dialer) Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	config, err := d.config(c, secret)
	if err != nil {
		return nil, err
	}
	return openstack.New(config)
}

// SecretKeys names the two kinds of credentials.
func (Dialer) SecretKeys() string {
	return "applicationCredentialId and applicationCredentialSecret, or with username and password"
}

// Forget drops the metrics of a Cloud, and what it asked clients to wait for.
func (d Dialer) Forget(name string) {
	d.Base.Metrics.Forget(name)
	d.Base.Holds.Forget(name)
}

func (d Dialer) config(c *pcapi.Cloud, secret *corev1.Secret) (openstack.Config, error) {
	config, block := d.Base, c.Spec.OpenStack
	if block == nil {
		return config, errors.New("spec.openstack is missing: it has the settings of a cloud of type OpenStack")
	}
	config.Name, config.Endpoint = c.Name, c.Spec.Endpoint
	config.InsecureSkipVerify, config.AllowHTTP = c.Spec.InsecureSkipTLSVerify, c.Spec.InsecureAllowHTTP
	config.Region, config.Project, config.Domain = block.Region, block.Project, block.Domain
	config.Image, config.Flavor, config.AtLeast = block.Images.Default, block.Flavors.Default, block.Flavors.Match == pcapi.FlavorMatchAtLeast
	config.Network, config.Zone = block.Network.Default, block.AvailabilityZone
	config.TagLabel = inventory.UIDLabel
	config.Limits = transport.Limits{
		RequestsPerSecond: float64(c.Spec.Limits.RequestsPerSecond),
		Burst:             int(c.Spec.Limits.Burst),
		MaxInFlight:       int(c.Spec.Limits.MaxInFlight),
	}
	if secret == nil {
		return config, errors.New("a cloud of type OpenStack needs credentials: name a Secret in spec.credentialsSecretRef")
	}
	if !c.Spec.InsecureAllowHTTP && !encrypted(c.Spec.Endpoint) {
		return config, errors.New("credentials are sent over https only: give an endpoint that begins with https://, or set spec.insecureAllowHTTP to true")
	}
	config.CA = secret.Data[caKey]
	config.Credentials = openstack.Credentials{
		ApplicationCredentialID:     string(secret.Data[credentialIDKey]),
		ApplicationCredentialSecret: string(secret.Data[credentialSecretKey]),
		Username:                    string(secret.Data[usernameKey]),
		Password:                    string(secret.Data[passwordKey]),
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
	return err != nil || u.Scheme != "http"
}
