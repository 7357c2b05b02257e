package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The keys of a Secret with credentials.
const (
	tokenKey    = "token"
	usernameKey = "username"
	passwordKey = "password"
	caKey       = "ca.crt"
)

// links holds the connection to each Cloud and what it was made from.
type links struct {
	mu     sync.Mutex
	byName map[string]link
}

type link struct {
	made   [sha256.Size]byte
	client cloud.Client
}

func (l *links) get(name string) link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byName[name]
}

func (l *links) set(name string, to link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string]link{}
	}
	l.byName[name] = to
}

func (l *links) drop(name string) link {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.byName[name]
	delete(l.byName, name)
	return old
}

// connect returns the client of a Cloud, made anew when its spec or Secret has changed.
func (k *kind) connect(ctx context.Context, c *v1alpha1.Cloud) (cloud.Client, error) {
	config, err := k.config(ctx, c)
	if err != nil {
		return nil, err
	}
	made := fingerprint(config, c.Annotations[v1alpha1.ReconcileRequestedAtAnnotation])
	if last := k.links.get(c.Name); last.client != nil && last.made == made {
		return last.client, nil
	}
	fresh, err := rest.New(config)
	if err != nil {
		return nil, stall(v1alpha1.InvalidConfigurationReason, err)
	}
	old := k.links.drop(c.Name)
	k.links.set(c.Name, link{made: made, client: fresh})
	if old.client != nil {
		go closeLink(context.WithoutCancel(ctx), old.client)
	}
	return fresh, nil
}

func closeLink(ctx context.Context, old cloud.Client) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	old.Close(ctx)
}

// config reads all that a connection is made from.
func (k *kind) config(ctx context.Context, c *v1alpha1.Cloud) (rest.Config, error) {
	config := k.Connections
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
	err := k.live.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return config, stall(v1alpha1.SecretMissingReason, fmt.Errorf(
			"Secret %q does not exist in namespace %q: create it with token, or with username and password", name, k.Namespace))
	}
	if err != nil {
		return config, fmt.Errorf("read Secret %q in namespace %q: %w", name, k.Namespace, err)
	}
	config.CA = secret.Data[caKey]
	config.Credentials = rest.Credentials{
		Token:    string(secret.Data[tokenKey]),
		Username: string(secret.Data[usernameKey]),
		Password: string(secret.Data[passwordKey]),
	}
	if err := complete(config.Credentials, config.CA); err != nil {
		return config, stall(v1alpha1.InvalidConfigurationReason, fmt.Errorf("Secret %q in namespace %q: %w", name, k.Namespace, err))
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

func settingsOf(c *v1alpha1.Cloud) inventory.Settings {
	return inventory.Settings{
		PollInterval:    c.Spec.PollInterval.Duration,
		SettleTime:      ptr.Deref(c.Spec.SettleTime, defaultSettleTime).Duration,
		UtilizationStep: int(c.Spec.UtilizationStep),
	}
}

// verdictOn turns the failure of a poll into what the Cloud says of itself.
func verdictOn(c *v1alpha1.Cloud, err error) error {
	wait := func(reason string) error {
		return reconciler.Wait(max(recheck, cloud.RetryAfter(err)), reason,
			"%v; tried again by itself: if it lasts, look at the cloud and at spec.endpoint, %s", err, c.Spec.Endpoint)
	}
	switch {
	case cloud.Is(err, cloud.Unauthorized):
		return stall(v1alpha1.AuthenticationFailedReason, err)
	case cloud.Is(err, cloud.Untrusted):
		return stall(v1alpha1.UntrustedReason, err)
	case cloud.Is(err, cloud.Unavailable, cloud.Throttled):
		return wait(v1alpha1.UnreachableReason)
	case cloud.KindOf(err) != "":
		return wait(v1alpha1.PollFailedReason)
	default:
		return err
	}
}

// stall is a verdict on what a person has to mend; looked at again, since
// nothing tells when a Secret or the cloud changes.
func stall(reason string, cause error) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: recheck}
}
