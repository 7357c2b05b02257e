package connection

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=get

// The keys of a Secret with credentials.
const (
	tokenKey    = "token"
	usernameKey = "username"
	passwordKey = "password"
	caKey       = "ca.crt"
)

// UnusableError says that no connection can be made from a Cloud's spec and
// Secret until a person mends them.
type UnusableError struct {
	// Reason is one of a Cloud's Ready condition.
	Reason string
	Err    error
}

func (e *UnusableError) Error() string { return e.Err.Error() }

func (e *UnusableError) Unwrap() error { return e.Err }

// config reads all that a connection is made from.
func (s *Connections) config(ctx context.Context, c *v1alpha1.Cloud) (rest.Config, error) {
	config := s.Base
	config.Name = c.Name
	config.Endpoint = c.Spec.Endpoint
	config.InsecureSkipVerify = c.Spec.InsecureSkipTLSVerify
	config.UniqueNames = ptr.Deref(c.Spec.UniqueNames, true)
	config.Limits = rest.Limits{
		RequestsPerSecond: float64(c.Spec.Limits.RequestsPerSecond),
		Burst:             int(c.Spec.Limits.Burst),
		MaxInFlight:       int(c.Spec.Limits.MaxInFlight),
	}
	if c.Spec.CredentialsSecretRef == nil {
		return config, nil
	}
	name := c.Spec.CredentialsSecretRef.Name
	var secret corev1.Secret
	err := s.Secrets.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return config, &UnusableError{Reason: v1alpha1.SecretMissingReason, Err: fmt.Errorf(
			"Secret %q does not exist in namespace %q: create it with token, or with username and password", name, s.Namespace)}
	}
	if err != nil {
		return config, fmt.Errorf("read Secret %q in namespace %q: %w", name, s.Namespace, err)
	}
	config.CA = secret.Data[caKey]
	config.Credentials = rest.Credentials{
		Token:    string(secret.Data[tokenKey]),
		Username: string(secret.Data[usernameKey]),
		Password: string(secret.Data[passwordKey]),
	}
	if err := complete(config.Credentials, config.CA); err != nil {
		return config, &UnusableError{
			Reason: v1alpha1.InvalidConfigurationReason, Err: fmt.Errorf("Secret %q in namespace %q: %w", name, s.Namespace, err),
		}
	}
	return config, nil
}

// complete refuses a Secret from which nobody could log in.
func complete(c rest.Credentials, ca []byte) error {
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

// fingerprint changes when the connection must be made anew: with what it is
// made from, or because somebody asked.
func fingerprint(config rest.Config, requestedAt string) [sha256.Size]byte {
	text, _ := json.Marshal([]any{
		config.Endpoint, config.Credentials.Token, config.Credentials.Username, config.Credentials.Password,
		config.CA, config.InsecureSkipVerify, config.UniqueNames, config.Limits, requestedAt,
	})
	return sha256.Sum256(text)
}
