package connection

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

const pollInterval = 30 * time.Second

var errAPIAway = errors.New("the API server is away")

func reasonOf(err error) string {
	if unusable, ok := errors.AsType[*UnusableError](err); ok {
		return unusable.Reason
	}
	return ""
}

// home returns the Cloud home, changed.
func home(change ...func(*v1alpha1.Cloud)) *v1alpha1.Cloud {
	c := &v1alpha1.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "uid-home", Generation: 1},
		Spec: v1alpha1.CloudSpec{
			Type: v1alpha1.CloudTypeREST, Endpoint: "https://cloud.test/api", PollInterval: metav1.Duration{Duration: pollInterval},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func withSecret(c *v1alpha1.Cloud) {
	c.Spec.CredentialsSecretRef = &v1alpha1.SecretReference{Name: "login"}
}

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "login"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestASecretIsReadAsItIsWritten(t *testing.T) {
	tests := []struct {
		name   string
		cloud  *v1alpha1.Cloud
		secret *corev1.Secret
		unread error
		want   rest.Credentials
		ca     string
		reason string
		says   []string
	}{
		{name: "no Secret is named: none is read", cloud: home(), unread: errAPIAway},
		{name: "a token", cloud: home(withSecret), secret: secret(map[string]string{"token": "t"}), want: rest.Credentials{Token: "t"}},
		{name: "a username and a password", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "password": "p"}), want: rest.Credentials{Username: "u", Password: "p"}},
		{name: "a token and a CA", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "ca.crt": "CA"}), want: rest.Credentials{Token: "t"}, ca: "CA"},
		{name: "a CA alone, for a cloud that asks for no credentials", cloud: home(withSecret), secret: secret(map[string]string{"ca.crt": "CA"}), ca: "CA"},
		{
			name: "it does not exist", cloud: home(withSecret), reason: v1alpha1.SecretMissingReason,
			says: []string{`Secret "login" does not exist in namespace "operator"`, "create it with token, or with username and password"},
		},
		{
			name: "it holds nothing", cloud: home(withSecret), secret: secret(nil), reason: v1alpha1.InvalidConfigurationReason,
			says: []string{`Secret "login" in namespace "operator"`, "none of token, username and password, ca.crt"},
		},
		{
			name: "it holds other keys than we know", cloud: home(withSecret), secret: secret(map[string]string{"TOKEN": "t"}), reason: v1alpha1.InvalidConfigurationReason,
			says: []string{"none of token, username and password, ca.crt"},
		},
		{
			name: "it holds both kinds: which one is meant?", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "username": "u", "password": "p"}),
			reason: v1alpha1.InvalidConfigurationReason, says: []string{"give either token or username and password, not both"},
		},
		{
			name: "a token and half of the other kind", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "password": "p"}),
			reason: v1alpha1.InvalidConfigurationReason, says: []string{"not both"},
		},
		{
			name: "the password is missing", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "ca.crt": "CA"}),
			reason: v1alpha1.InvalidConfigurationReason, says: []string{"username and password go together"},
		},
		{
			name: "the username is missing", cloud: home(withSecret), secret: secret(map[string]string{"password": "p"}),
			reason: v1alpha1.InvalidConfigurationReason, says: []string{"username and password go together"},
		},
		{
			name: "it cannot be read: that is no fault of what was written", cloud: home(withSecret), unread: errAPIAway,
			says: []string{`read Secret "login" in namespace "operator": the API server is away`},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var objects []client.Object
			if tc.secret != nil {
				objects = append(objects, tc.secret)
			}
			w := newWorld(t, objects...)
			w.unreadable = tc.unread
			got, err := w.config(t.Context(), tc.cloud)
			if err != nil || len(tc.says) > 0 {
				if got := reasonOf(err); got != tc.reason {
					t.Errorf("%v: reason %q, want %q", err, got, tc.reason)
				}
				for _, part := range tc.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("message %q, want %q in it", err, part)
					}
				}
				return
			}
			if got.Credentials != tc.want || string(got.CA) != tc.ca {
				t.Errorf("credentials or CA differ from what the Secret holds")
			}
		})
	}
}

func TestTheSpecBecomesTheConnection(t *testing.T) {
	c := home(func(c *v1alpha1.Cloud) {
		c.Spec.InsecureSkipTLSVerify = true
		c.Spec.UniqueNames = new(false)
		c.Spec.Limits = v1alpha1.CloudLimits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7}
	})
	w := newWorld(t)
	w.Base = rest.Config{Version: "v1", Timeout: time.Minute}
	got, err := w.config(t.Context(), c)
	if err != nil {
		t.Fatalf("config: %v", err)
	}
	want := rest.Config{
		Name: "home", Endpoint: "https://cloud.test/api", InsecureSkipVerify: true, Version: "v1", Timeout: time.Minute,
		Limits: rest.Limits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7},
	}
	opts := []cmp.Option{cmpopts.IgnoreFields(rest.Config{}, "Log"), cmp.Comparer(func(a, b rest.Credentials) bool { return a == b })}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if got, err = w.config(t.Context(), home()); err != nil || !got.UniqueNames {
		t.Errorf("uniqueNames %t, %v; want it true where the spec is silent", got.UniqueNames, err)
	}
}

func TestWhatCannotBeUsedSaysWhatToMend(t *testing.T) {
	tests := []struct {
		name, ca string
		change   func(*v1alpha1.Cloud)
		says     string
	}{
		{name: "an endpoint that is none", change: func(c *v1alpha1.Cloud) { c.Spec.Endpoint = "ftp://cloud.test" }, says: "endpoint: must begin with https:// or http://"},
		{name: "a CA that is none", ca: "not PEM", change: func(*v1alpha1.Cloud) {}, says: "ca.crt"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, secret(map[string]string{"token": "secret-token", "ca.crt": tc.ca}))
			w.Dial = New(Options{}).Dial
			_, err := w.To(t.Context(), home(withSecret, tc.change))
			if reasonOf(err) != v1alpha1.InvalidConfigurationReason || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%v, want InvalidConfiguration with %q in it and no secret", err, tc.says)
			}
		})
	}
}
