// Package openstackdialer makes the clients of Clouds of type OpenStack from their spec
// and Secret.
package openstackdialer

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

// The keys of a Secret with credentials. Beside a clouds.yaml, cacert means the same as
// ca.crt, as for other tools.
const (
	cloudsKey           = "clouds.yaml"
	credentialIDKey     = "applicationCredentialId"
	credentialSecretKey = "applicationCredentialSecret"
	usernameKey         = "username"
	passwordKey         = "password"
	caKey               = "ca.crt"
	otherCAKey          = "cacert"
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

// SecretKeys names the kinds of credentials.
func (Dialer) SecretKeys() string {
	return "clouds.yaml, with applicationCredentialId and applicationCredentialSecret, or with username and password"
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
	config.Interface = openstack.Interface(strings.ToLower(string(block.Interface)))
	config.Endpoints = openstack.Endpoints(block.Endpoints)
	config.Image, config.Flavor, config.AtLeast = block.Images.Default, block.Flavors.Default, block.Flavors.Match == pcapi.FlavorMatchAtLeast
	config.Flavors = block.Flavors.Allowed
	config.Network, config.Zone, config.KeyPair = block.Network.Default, block.AvailabilityZone, block.KeyPair
	for _, name := range block.SecurityGroups.Default {
		config.SecurityGroups = append(config.SecurityGroups, string(name))
	}
	for _, address := range block.Network.AllowedAddresses {
		config.AllowedAddresses = append(config.AllowedAddresses, string(address))
	}
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
	if err := addSecret(&config, block, secret); err != nil {
		return config, fmt.Errorf("Secret %q in namespace %q: %w", secret.Name, secret.Namespace, err)
	}
	return config, nil
}

// addSecret adds what the Secret has. Region, interface and endpoints of the spec are used in
// place of those of a clouds.yaml.
func addSecret(config *openstack.Config, block *pcapi.OpenStackCloud, secret *corev1.Secret) error {
	config.CA = secret.Data[caKey]
	config.Credentials = openstack.Credentials{
		ApplicationCredentialID:     string(secret.Data[credentialIDKey]),
		ApplicationCredentialSecret: string(secret.Data[credentialSecretKey]),
		Username:                    string(secret.Data[usernameKey]),
		Password:                    string(secret.Data[passwordKey]),
	}
	data, found := secret.Data[cloudsKey]
	if !found {
		if block.CloudName != "" {
			return errors.New("it has no clouds.yaml, and spec.openstack.cloudName names a cloud of one")
		}
		return config.Credentials.Validate()
	}
	if config.Credentials != (openstack.Credentials{}) {
		return errors.New("it has both clouds.yaml and other credentials; give one of the two")
	}
	if len(config.CA) == 0 {
		config.CA = secret.Data[otherCAKey]
	}
	file, err := openstack.ParseFile(data, block.CloudName)
	switch {
	case err != nil:
		return err
	case file.SkipVerify && !config.InsecureSkipVerify:
		return errors.New("clouds.yaml: has verify: false; remove it, or set spec.insecureSkipTLSVerify to true")
	case file.CAFile != "" && len(config.CA) == 0:
		return errors.New("clouds.yaml: cacert names a file, which the operator does not have: put its content into the key ca.crt of the Secret")
	}
	config.AuthURL, config.Credentials = file.AuthURL, file.Credentials
	config.Region = cmp.Or(config.Region, file.Region)
	config.Interface = cmp.Or(config.Interface, file.Interface)
	config.Endpoints = openstack.Endpoints{
		Compute: cmp.Or(config.Endpoints.Compute, file.Endpoints.Compute),
		Network: cmp.Or(config.Endpoints.Network, file.Endpoints.Network),
		Image:   cmp.Or(config.Endpoints.Image, file.Endpoints.Image),

		BlockStorage: cmp.Or(config.Endpoints.BlockStorage, file.Endpoints.BlockStorage),
	}
	return nil
}

// encrypted reports whether calls of an endpoint are encrypted. An endpoint that is not
// a URL is not called at all.
func encrypted(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err != nil || u.Scheme != "http"
}
