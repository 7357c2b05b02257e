package restdialer

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/clouds"
)

const pollInterval = 30 * time.Second

var errAPIAway = errors.New("the API server is away")

// recorder is a Dialer that records the config instead of making a client.
type recorder struct {
	Dialer
	config rest.Config
}

func (r *recorder) Dial(c *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	var err error
	r.config, err = r.Dialer.config(c, secret)
	return nil, err
}

// clientsOf returns Clients of a Dialer for REST, which read a Secret; nil if
// there is none. unread is the error of each read.
func clientsOf(t *testing.T, d clouds.Dialer, secret *corev1.Secret, unread error) *clouds.Clients {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if secret != nil {
		builder = builder.WithObjects(secret)
	}
	if unread != nil {
		builder = builder.WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return unread
			},
		})
	}
	return clouds.New(clouds.Options{
		Secrets: builder.Build(), Namespace: "operator", Clock: time.Now,
		Dialers: map[pcapi.CloudType]clouds.Dialer{pcapi.CloudTypeREST: d},
	})
}

// home returns the Cloud home, changed.
func home(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "uid-home", Generation: 1},
		Spec: pcapi.CloudSpec{
			Type: pcapi.CloudTypeREST, Endpoint: "https://cloud.test/api", PollInterval: metav1.Duration{Duration: pollInterval},
		},
	}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func withSecret(c *pcapi.Cloud) {
	c.Spec.CredentialsSecretRef = &pcapi.SecretReference{Name: "login"}
}

func overHTTP(c *pcapi.Cloud) { c.Spec.Endpoint = "http://cloud.test/api" }

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "operator", Name: "login", Labels: map[string]string{pcapi.CredentialsForLabel: "home"},
	}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func reasonOf(err error) string {
	if unusable, ok := errors.AsType[*clouds.UnusableError](err); ok {
		return unusable.Reason
	}
	return ""
}

func TestCredentialsAreReadFromTheSecret(t *testing.T) {
	tests := []struct {
		name   string
		cloud  *pcapi.Cloud
		secret *corev1.Secret
		unread error
		want   rest.Credentials
		ca     string
		reason string
		says   []string
	}{
		{name: "no Secret is named: none is read", cloud: home(), unread: errAPIAway},
		{name: "token: used", cloud: home(withSecret), secret: secret(map[string]string{"token": "t"}), want: rest.Credentials{Token: "t"}},
		{name: "username and password: used", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "password": "p"}), want: rest.Credentials{Username: "u", Password: "p"}},
		{name: "token and CA: used", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "ca.crt": "CA"}), want: rest.Credentials{Token: "t"}, ca: "CA"},
		{name: "CA alone, for a cloud without credentials: used", cloud: home(withSecret), secret: secret(map[string]string{"ca.crt": "CA"}), ca: "CA"},
		{
			name: "the Secret does not exist: SecretMissing with the keys to create", cloud: home(withSecret), reason: pcapi.SecretMissingReason,
			says: []string{`Secret "login" does not exist in namespace "operator"`, "create it with token, or with username and password"},
		},
		{
			name: "empty Secret: rejected", cloud: home(withSecret), secret: secret(nil), reason: pcapi.InvalidConfigurationReason,
			says: []string{`Secret "login" in namespace "operator"`, "none of token, username and password, ca.crt"},
		},
		{
			name: "unknown keys only: rejected", cloud: home(withSecret), secret: secret(map[string]string{"TOKEN": "t"}), reason: pcapi.InvalidConfigurationReason,
			says: []string{"none of token, username and password, ca.crt"},
		},
		{
			name: "both kinds of credentials: rejected as ambiguous", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "username": "u", "password": "p"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"give either token or username and password, not both"},
		},
		{
			name: "token and half of the other kind: rejected", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "password": "p"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"not both"},
		},
		{
			name: "password is missing: rejected", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "ca.crt": "CA"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"username and password go together"},
		},
		{
			name: "username is missing: rejected", cloud: home(withSecret), secret: secret(map[string]string{"password": "p"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"username and password go together"},
		},
		{
			name: "token over http: rejected", cloud: home(withSecret, overHTTP), secret: secret(map[string]string{"token": "t"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"over https only", "spec.insecureAllowHTTP"},
		},
		{
			name: "username and password over HTTP: rejected", cloud: home(withSecret, func(c *pcapi.Cloud) { c.Spec.Endpoint = "HTTP://cloud.test" }),
			secret: secret(map[string]string{"username": "u", "password": "p"}), reason: pcapi.InvalidConfigurationReason, says: []string{"over https only"},
		},
		{
			name: "token over http that is allowed: used", cloud: home(withSecret, overHTTP, func(c *pcapi.Cloud) { c.Spec.InsecureAllowHTTP = true }),
			secret: secret(map[string]string{"token": "t"}), want: rest.Credentials{Token: "t"},
		},
		{name: "CA alone over http: no credentials are sent", cloud: home(withSecret, overHTTP), secret: secret(map[string]string{"ca.crt": "CA"}), ca: "CA"},
		{
			name: "the Secret is for another Cloud: rejected", cloud: home(withSecret, func(c *pcapi.Cloud) { c.Name = "other" }), secret: secret(map[string]string{"token": "t"}),
			reason: pcapi.InvalidConfigurationReason, says: []string{"samplecontroller.k8s.io/credentials-for=other"},
		},
		{
			name: "the Secret cannot be read: an error without a reason, since the configuration may be valid", cloud: home(withSecret), unread: errAPIAway,
			says: []string{`read Secret "login" in namespace "operator": the API server is away`},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := &recorder{}
			_, err := clientsOf(t, r, tc.secret, tc.unread).Get(t.Context(), tc.cloud)
			if err != nil || len(tc.says) > 0 {
				if got := reasonOf(err); got != tc.reason {
					t.Errorf("%v: reason %q, want %q", err, got, tc.reason)
				}
				for _, part := range tc.says {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("message %q, want %q in it", err, part)
					}
				}
				return
			}
			if got := r.config; got.Credentials != tc.want || string(got.CA) != tc.ca {
				t.Errorf("credentials or CA differ from the Secret's data")
			}
		})
	}
}

func TestConfigFollowsTheSpec(t *testing.T) {
	c := home(func(c *pcapi.Cloud) {
		c.Spec.InsecureSkipTLSVerify = true
		c.Spec.REST = &pcapi.RESTCloud{UniqueNames: new(false), ExclusiveNames: true, Capabilities: []pcapi.RESTCapability{"labels", "async"}}
		c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7}
	})
	d := Dialer{Base: rest.Config{Version: "v1", Timeout: time.Minute}}
	got, err := d.config(c, nil)
	if err != nil {
		t.Fatalf("config: %v", err)
	}
	want := rest.Config{
		Name: "home", Endpoint: "https://cloud.test/api", InsecureSkipVerify: true, Version: "v1", Timeout: time.Minute,
		Limits:         rest.Limits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7},
		ExclusiveNames: true, Declared: true, Capabilities: []cloud.Capability{cloud.Labels, cloud.Async},
	}
	opts := []cmp.Option{cmpopts.IgnoreFields(rest.Config{}, "Log"), cmp.Comparer(func(a, b rest.Credentials) bool { return a == b })}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestUniqueNamesDefaultsToTrue(t *testing.T) {
	for name, block := range map[string]*pcapi.RESTCloud{"no block rest": nil, "empty block rest": {}} {
		t.Run(name, func(t *testing.T) {
			got, err := Dialer{}.config(home(func(c *pcapi.Cloud) { c.Spec.REST = block }), nil)
			if err != nil || !got.UniqueNames {
				t.Errorf("uniqueNames %t, %v; want true", got.UniqueNames, err)
			}
		})
	}
}

func TestCapabilitiesAreDeclaredByAnEmptyList(t *testing.T) {
	for name, test := range map[string]struct {
		block    *pcapi.RESTCloud
		declared bool
	}{
		"no block rest: asked": {nil, false}, "no list: asked": {&pcapi.RESTCloud{}, false},
		"an empty list: declared": {&pcapi.RESTCloud{Capabilities: []pcapi.RESTCapability{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Dialer{}.config(home(func(c *pcapi.Cloud) { c.Spec.REST = test.block }), nil)
			if err != nil || got.Declared != test.declared || len(got.Capabilities) > 0 {
				t.Errorf("declared %t with %v, %v; want %t", got.Declared, got.Capabilities, err, test.declared)
			}
		})
	}
}

func TestRefusedPasswordIsNotTriedByTheNextClient(t *testing.T) {
	logins := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		logins++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	all := clientsOf(t, Dialer{Base: rest.Config{Holds: transport.NewHolds()}}, secret(map[string]string{"username": "u", "password": "p"}), nil)
	c := home(withSecret, func(c *pcapi.Cloud) { c.Spec.Endpoint, c.Spec.InsecureAllowHTTP = server.URL, true })
	try := func() {
		t.Helper()
		candidate, err := all.Get(t.Context(), c)
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if _, err := candidate.Capabilities(t.Context()); !cloud.Is(err, cloud.Unauthorized) {
			t.Errorf("%v, want Unauthorized", err)
		}
		all.Drop(t.Context(), "home")
	}
	for range 3 {
		try()
	}
	if logins != 1 {
		t.Errorf("logged in %d times with three clients, want once", logins)
	}
	all.Forget(t.Context(), "home")
	try()
	if logins != 2 {
		t.Errorf("logged in %d times after the Cloud was forgotten, want twice", logins)
	}
}

func TestInvalidInputsAreNamedWithoutSecrets(t *testing.T) {
	tests := []struct {
		name, ca string
		change   func(*pcapi.Cloud)
		says     string
	}{
		{name: "endpoint without http", change: func(c *pcapi.Cloud) { c.Spec.Endpoint = "ftp://cloud.test" }, says: "endpoint: must begin with https:// or http://"},
		{name: "CA that is not PEM", ca: "not PEM", change: func(*pcapi.Cloud) {}, says: "ca.crt"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			all := clientsOf(t, Dialer{}, secret(map[string]string{"token": "secret-token", "ca.crt": tc.ca}), nil)
			_, err := all.Get(t.Context(), home(withSecret, tc.change))
			if reasonOf(err) != pcapi.InvalidConfigurationReason || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("%v, want InvalidConfiguration with %q in it and no secret", err, tc.says)
			}
		})
	}
}

func TestForgetDropsTheMetricsOfACloud(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	registry := prometheus.NewRegistry()
	all := clientsOf(t, Dialer{Base: rest.Config{Metrics: transport.NewMetrics(registry)}}, nil, nil)
	for _, name := range []string{"home", "other"} {
		c := home(func(c *pcapi.Cloud) { c.Name, c.Spec.Endpoint = name, server.URL })
		connected, err := all.Get(t.Context(), c)
		if err != nil {
			t.Fatalf("Get: %v", err)
		}
		if _, err := connected.GetServer(t.Context(), "id"); err == nil {
			t.Error("a server was found where there is none")
		}
	}
	all.Forget(t.Context(), "home")
	families, err := registry.Gather()
	if err != nil {
		t.Fatalf("Gather: %v", err)
	}
	left := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "cloud" {
					left[label.GetValue()] = true
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"other": true}, left); diff != "" {
		t.Errorf("Clouds with metrics (-want +got):\n%s", diff)
	}
}
