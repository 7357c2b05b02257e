package clouds

import (
	corev1 "k8s.io/api/core/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Dialer makes the clients of one type of cloud. It MUST be safe for concurrent use.
type Dialer interface {
	// Dial returns a client of the cloud that c describes. secret is the one that
	// spec.credentialsSecretRef names, or nil if the spec names none. Dial MUST NOT
	// call the cloud, and MUST NOT change its arguments.
	//
	// An error means that the spec or the Secret has to be corrected. It becomes
	// the message of a condition: it says what to correct, and MUST NOT contain
	// data of the Secret.
	Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error)
	// SecretKeys names the keys that a Secret with credentials has. It completes
	// the sentence "create it with ...".
	SecretKeys() string
	// Forget drops everything that the Dialer holds for a deleted Cloud of this name,
	// such as its metrics. The Cloud may be of another type.
	Forget(name string)
}

// DialFunc is a Dialer that holds nothing for its clients.
type DialFunc func(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error)

// Dial calls f.
func (f DialFunc) Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	return f(c, secret)
}

// SecretKeys names no key.
func (DialFunc) SecretKeys() string { return "the cloud's credentials" }

// Forget does nothing.
func (DialFunc) Forget(string) {}

// UnusableError is returned if no client can be made from a Cloud's spec and
// Secret until somebody corrects them.
type UnusableError struct {
	// Reason is a reason of the Cloud's Ready condition.
	Reason string
	// Malformed is set if the Secret may be used, but what it holds cannot: the client
	// in use may go on, as if the cloud had refused the new credentials.
	Malformed bool
	Err       error
}

func (e *UnusableError) Error() string { return e.Err.Error() }

func (e *UnusableError) Unwrap() error { return e.Err }
