// Package restdialer makes the clients of Clouds of type REST from their spec
// and Secret.
package restdialer

import (
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/internal/clouds"
)

// The keys of a Secret with credentials.
const (
	tokenKey    = "token"
	usernameKey = "username"
	passwordKey = "password"
	caKey       = "ca.crt"
)

// Dialer makes clients of the REST API.
type Dialer struct {
	// Base has the version, timeout, log, metrics and holds of every client.
	Base rest.Config
}

var _ clouds.Dialer = Dialer{}

// Dial returns a client of the cloud at spec.endpoint.
func (d Dialer) Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	config, err := d.config(c, secret)
	if err != nil {
		return nil, err
	}
	return rest.New(config)
}

// SecretKeys names the two kinds of credentials.
func (Dialer) SecretKeys() string { return "token, or with username and password" }

// Forget drops the metrics of a Cloud, and what it asked clients to wait for.
func (d Dialer) Forget(name string) {
	d.Base.Metrics.Forget(name)
	d.Base.Holds.Forget(name)
}

func (d Dialer) config(c *pcapi.Cloud, secret *corev1.Secret) (rest.Config, error) {
	config := d.Base
	config.Name = c.Name
	config.Endpoint = c.Spec.Endpoint
	config.InsecureSkipVerify = c.Spec.InsecureSkipTLSVerify
	block := ptr.Deref(c.Spec.REST, pcapi.RESTCloud{})
	config.UniqueNames = ptr.Deref(block.UniqueNames, true)
	config.ExclusiveNames = block.ExclusiveNames
	config.Declared = block.Capabilities != nil
	for _, name := range block.Capabilities {
		config.Capabilities = append(config.Capabilities, cloud.Capability(name))
	}
	config.Limits = rest.Limits{
		RequestsPerSecond: float64(c.Spec.Limits.RequestsPerSecond),
		Burst:             int(c.Spec.Limits.Burst),
		MaxInFlight:       int(c.Spec.Limits.MaxInFlight),
	}
	if secret == nil {
		return config, nil
	}
	config.CA = secret.Data[caKey]
	config.Credentials = rest.Credentials{
		Token:    string(secret.Data[tokenKey]),
		Username: string(secret.Data[usernameKey]),
		Password: string(secret.Data[passwordKey]),
	}
	if err := validate(config.Credentials, config.CA); err != nil {
		return config, fmt.Errorf("Secret %q in namespace %q: %w", secret.Name, secret.Namespace, err)
	}
	if config.Credentials != (rest.Credentials{}) && !c.Spec.InsecureAllowHTTP && !encrypted(c.Spec.Endpoint) {
		return config, errors.New("credentials are sent over https only: give an endpoint that begins with https://, or set spec.insecureAllowHTTP to true")
	}
	return config, nil
}

// validate returns an error if nobody can log in with a Secret that holds c and ca.
func validate(c rest.Credentials, ca []byte) error {
	switch {
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return errors.New("give either token or username and password, not both")
	case c.Token == "" && (c.Username == "") != (c.Password == ""):
		return errors.New("username and password go together: one of them is missing")
	case c.Token == "" && c.Username == "" && len(ca) == 0:
		return errors.New("it holds none of token, username and password, ca.crt")
	}
	return nil
}

// encrypted reports whether calls of an endpoint are encrypted. An endpoint that is
// not a URL is not called at all.
func encrypted(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err != nil || u.Scheme != "http"
}
