package clouds

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// fingerprint identifies inputs.
type fingerprint [sha256.Size]byte

// inputs are what a client is made from, besides the Cloud itself.
type inputs struct {
	dialer Dialer
	// secret is nil if the spec names none.
	secret *corev1.Secret
	// fingerprint changes if a new client has to be made.
	fingerprint fingerprint
}

func (s *Clients) read(ctx context.Context, c *pcapi.Cloud, identity fingerprint) (inputs, error) {
	var in inputs
	var err error
	if in.dialer, err = s.dialer(c.Spec.Type); err != nil {
		return in, err
	}
	if in.secret, err = s.secret(ctx, c, in.dialer, identity); err != nil {
		return in, err
	}
	in.fingerprint, err = fingerprintOf(c, in.secret)
	return in, err
}

func (s *Clients) dialer(served pcapi.CloudType) (Dialer, error) {
	if d, ok := s.opts.Dialers[served]; ok {
		return d, nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.opts.Dialers)) {
		names = append(names, string(name))
	}
	return nil, &UnusableError{Reason: pcapi.InvalidConfigurationReason, Err: fmt.Errorf(
		"spec.type %q is not served by this operator: choose one of %s", served, strings.Join(names, ", "))}
}

// clientSpec returns the spec without the fields that do not concern a client, so
// that a field added later, such as another type's block, is covered without a
// change here.
func clientSpec(c *pcapi.Cloud) *pcapi.CloudSpec {
	spec := c.Spec.DeepCopy()
	spec.PollInterval, spec.SettleTime, spec.UtilizationStep = metav1.Duration{}, nil, 0
	spec.OrphanPolicy, spec.AllowedNamespaces = "", nil
	spec.Imports, spec.Importable, spec.NetworkImports, spec.ImportableNetworks = "", nil, "", nil
	if spec.OpenStack != nil {
		spec.OpenStack.Flavors.Selectable = nil
	}
	// What counts is the data, not the name that it is found by.
	spec.CredentialsSecretRef = nil
	return spec
}

// fingerprintOf covers the spec, the Secret's data and the annotation with which
// users request a new client.
func fingerprintOf(c *pcapi.Cloud, secret *corev1.Secret) (fingerprint, error) {
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	return sum(c, clientSpec(c), data, c.Annotations[pcapi.ReconcileRequestedAtAnnotation])
}

// identityOf covers what says which cloud a client calls, how it is protected on
// the way, and what an administrator states about it: all of the spec but the
// limits. A client of another identity is not used on.
func identityOf(c *pcapi.Cloud) (fingerprint, error) {
	spec := clientSpec(c)
	spec.Limits = pcapi.CloudLimits{}
	return sum(c, spec)
}

func sum(c *pcapi.Cloud, parts ...any) (fingerprint, error) {
	text, err := json.Marshal(parts)
	if err != nil {
		return fingerprint{}, fmt.Errorf("fingerprint of Cloud %q: %w", c.Name, err)
	}
	return sha256.Sum256(text), nil
}
