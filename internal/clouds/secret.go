package clouds

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// +kubebuilder:rbac:groups="",namespace=system,resources=secrets,verbs=get

// credentials are the Secret of a Cloud as it was read last.
type credentials struct {
	secret *corev1.Secret
	// uid is that of the Cloud, and identity says where the data was sent.
	uid      types.UID
	identity fingerprint
	// gone is when this process first found that the Secret does not exist any more; zero if it does.
	gone time.Time
}

// secret returns the Secret of a Cloud; nil if the spec names none. For a Cloud that is being deleted, it returns the
// Secret as it was read last if it does not exist any more: both may be deleted together, and what the Cloud has made is
// deleted with it. If the Cloud is not deleted within unusedTimeout, its Secret was withdrawn, and is forgotten.
func (s *Clients) secret(ctx context.Context, c *pcapi.Cloud, d Dialer, identity fingerprint) (*corev1.Secret, error) {
	if c.Spec.CredentialsSecretRef == nil {
		return nil, nil //nolint:nilnil // a Cloud may do without a Secret
	}
	name := c.Spec.CredentialsSecretRef.Name
	var secret corev1.Secret
	err := s.opts.Secrets.Get(ctx, client.ObjectKey{Namespace: s.opts.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		if last := s.lastSecret(c, identity); last != nil {
			return last, nil
		}
		return nil, &UnusableError{Reason: pcapi.SecretMissingReason, Err: fmt.Errorf(
			"Secret %q does not exist in namespace %q: create it with %s, and with the label %s=%s",
			name, s.opts.Namespace, d.SecretKeys(), pcapi.CredentialsForLabel, c.Name)}
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %q in namespace %q: %w", name, s.opts.Namespace, err)
	}
	if secret.Labels[pcapi.CredentialsForLabel] != c.Name {
		s.forgetSecret(c.Name)
		return nil, &UnusableError{Reason: pcapi.InvalidConfigurationReason, Err: fmt.Errorf(
			"Secret %q in namespace %q is not for this Cloud: give it the label %s=%s to allow that its data is sent to spec.endpoint",
			name, s.opts.Namespace, pcapi.CredentialsForLabel, c.Name)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[c.Name] = &credentials{secret: &secret, uid: c.UID, identity: identity}
	return &secret, nil
}

// lastSecret returns the Secret that does not exist any more, if the Cloud is being deleted and its client is to be
// one of the same cloud; else nil.
func (s *Clients) lastSecret(c *pcapi.Cloud, identity fingerprint) *corev1.Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.secrets[c.Name]
	if last == nil || last.uid != c.UID || last.identity != identity || last.secret.Name != c.Spec.CredentialsSecretRef.Name {
		return nil
	}
	now := s.opts.Clock()
	if last.gone.IsZero() {
		last.gone = now
	}
	switch {
	case tenancy.Closing(c):
		return last.secret
	case now.Sub(last.gone) > unusedTimeout:
		delete(s.secrets, c.Name)
	}
	return nil
}

// SecretGone reports whether a Cloud is used with the data of a Secret that does not exist any more.
func (s *Clients) SecretGone(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secrets[name] != nil && !s.secrets[name].gone.IsZero()
}

func (s *Clients) forgetSecret(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.secrets, name)
}
