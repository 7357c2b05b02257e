package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
	"github.com/privatecloud/operator/internal/inventory"
)

func secret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "login"}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

// aCA is a certificate that can be parsed.
func aCA(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestASecretIsReadAsItIsWritten(t *testing.T) {
	tests := []struct {
		name    string
		cloud   *v1alpha1.Cloud
		secret  *corev1.Secret
		unread  error
		want    rest.Credentials
		ca      string
		verdict string
		says    []string
	}{
		{name: "no Secret is named: none is read", cloud: home(), unread: errAPIAway},
		{name: "a token", cloud: home(withSecret), secret: secret(map[string]string{"token": "t"}), want: rest.Credentials{Token: "t"}},
		{name: "a username and a password", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "password": "p"}), want: rest.Credentials{Username: "u", Password: "p"}},
		{name: "a token and a CA", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "ca.crt": "CA"}), want: rest.Credentials{Token: "t"}, ca: "CA"},
		{name: "a CA alone, for a cloud that asks for no credentials", cloud: home(withSecret), secret: secret(map[string]string{"ca.crt": "CA"}), ca: "CA"},
		{
			name: "it does not exist", cloud: home(withSecret), verdict: "stalled: SecretMissing, again in 10s",
			says: []string{`Secret "login" does not exist in namespace "operator"`, "create it with token, or with username and password"},
		},
		{
			name: "it holds nothing", cloud: home(withSecret), secret: secret(nil), verdict: "stalled: InvalidConfiguration, again in 10s",
			says: []string{`Secret "login" in namespace "operator"`, "none of token, username and password, ca.crt"},
		},
		{
			name: "it holds other keys than we know", cloud: home(withSecret), secret: secret(map[string]string{"TOKEN": "t"}), verdict: "stalled: InvalidConfiguration, again in 10s",
			says: []string{"none of token, username and password, ca.crt"},
		},
		{
			name: "it holds both kinds: which one is meant?", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "username": "u", "password": "p"}),
			verdict: "stalled: InvalidConfiguration, again in 10s", says: []string{"give either token or username and password, not both"},
		},
		{
			name: "a token and half of the other kind", cloud: home(withSecret), secret: secret(map[string]string{"token": "t", "password": "p"}),
			verdict: "stalled: InvalidConfiguration, again in 10s", says: []string{"not both"},
		},
		{
			name: "the password is missing", cloud: home(withSecret), secret: secret(map[string]string{"username": "u", "ca.crt": "CA"}),
			verdict: "stalled: InvalidConfiguration, again in 10s", says: []string{"username and password go together"},
		},
		{
			name: "the username is missing", cloud: home(withSecret), secret: secret(map[string]string{"password": "p"}),
			verdict: "stalled: InvalidConfiguration, again in 10s", says: []string{"username and password go together"},
		},
		{name: "it cannot be read: that is no fault of what was written", cloud: home(withSecret), unread: errAPIAway, verdict: `error: read Secret "login" in namespace "operator": the API server is away`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var objects []client.Object
			if tc.secret != nil {
				objects = append(objects, tc.secret)
			}
			w := newWorld(t, tc.cloud, nil, objects...)
			w.unreadable = tc.unread
			got, err := w.kind.config(t.Context(), tc.cloud)
			if err != nil || tc.verdict != "" {
				equal(t, "verdict", tc.verdict, said(err))
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
	w := newWorld(t, c, nil)
	w.kind.Connections = rest.Config{Version: "v1", Timeout: time.Minute}
	got, err := w.kind.config(t.Context(), c)
	if err != nil {
		t.Fatalf("config: %v", err)
	}
	want := rest.Config{
		Name: "home", Endpoint: "https://cloud.test/api", InsecureSkipVerify: true, Version: "v1", Timeout: time.Minute,
		Limits: rest.Limits{RequestsPerSecond: 5, Burst: 6, MaxInFlight: 7},
	}
	equal(t, "config", want, got, cmpopts.IgnoreFields(rest.Config{}, "Log"), cmp.Comparer(func(a, b rest.Credentials) bool { return a == b }))

	got, err = w.kind.config(t.Context(), home())
	if err != nil || !got.UniqueNames {
		t.Errorf("uniqueNames %t, %v; want it true where the spec is silent", got.UniqueNames, err)
	}
	equal(t, "settings", inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime, UtilizationStep: 1}, settingsOf(c))
	silent := home(func(c *v1alpha1.Cloud) { c.Spec.SettleTime = nil })
	equal(t, "settle time where the spec is silent", 2*time.Minute, settingsOf(silent).SettleTime)
	none := home(func(c *v1alpha1.Cloud) { c.Spec.SettleTime = &metav1.Duration{} })
	equal(t, "settle time where the spec says none", time.Duration(0), settingsOf(none).SettleTime)
}

func TestAConnectionIsMadeAnewWhenWhatItWasMadeFromChanges(t *testing.T) {
	login := secret(map[string]string{"token": "old"})
	rotate := func(data map[string]string) func(*world) {
		return func(w *world) {
			s := secret(data)
			if err := w.client.Update(w.t.Context(), s); err != nil {
				w.t.Fatalf("Update: %v", err)
			}
		}
	}
	edit := func(change func(*v1alpha1.Cloud)) func(*world) { return func(w *world) { w.edit(change) } }
	ca := aCA(t)
	tests := []struct {
		name  string
		do    func(*world)
		fresh bool
	}{
		{name: "nothing", do: func(*world) {}},
		{name: "what does not concern it", do: edit(func(c *v1alpha1.Cloud) {
			c.Spec.PollInterval.Duration = time.Hour
			c.Labels = map[string]string{"a": "b"}
		})},
		{name: "the token", do: rotate(map[string]string{"token": "new"}), fresh: true},
		{name: "the kind of credentials", do: rotate(map[string]string{"username": "u", "password": "old"}), fresh: true},
		{name: "the CA", do: rotate(map[string]string{"token": "old", "ca.crt": ca}), fresh: true},
		{name: "the endpoint", do: edit(func(c *v1alpha1.Cloud) { c.Spec.Endpoint += "/v2" }), fresh: true},
		{name: "whether certificates are verified", do: edit(func(c *v1alpha1.Cloud) { c.Spec.InsecureSkipTLSVerify = true }), fresh: true},
		{name: "whether names are unique", do: edit(func(c *v1alpha1.Cloud) { c.Spec.UniqueNames = new(false) }), fresh: true},
		{name: "the limits", do: edit(func(c *v1alpha1.Cloud) { c.Spec.Limits.Burst = 9 }), fresh: true},
		{name: "somebody's patience", do: edit(func(c *v1alpha1.Cloud) {
			c.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: "now"}
		}), fresh: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, home(withSecret), nil, login.DeepCopy())
			first, err := w.kind.connect(t.Context(), w.stored())
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			old := newCloud(nil)
			w.kind.links.set("home", link{made: w.kind.links.get("home").made, client: old})
			tc.do(w)
			second, err := w.kind.connect(t.Context(), w.stored())
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			if !tc.fresh {
				if second != cloud.Client(old) {
					t.Error("a second connection was made")
				}
				return
			}
			if second == first || second == cloud.Client(old) {
				t.Error("the old connection is still used")
			}
			old.wantClosed(t)
			if third, err := w.kind.connect(t.Context(), w.stored()); err != nil || third != second {
				t.Errorf("connect = %v; want the new connection again", err)
			}
		})
	}
}

func TestWhatCannotBeUsedLeavesTheOldConnectionOpen(t *testing.T) {
	tests := []struct {
		name, data string
		change     func(*v1alpha1.Cloud)
		says       string
	}{
		{name: "an endpoint that is none", change: func(c *v1alpha1.Cloud) { c.Spec.Endpoint = "ftp://cloud.test" }, says: "endpoint: must begin with https:// or http://"},
		{name: "a CA that is none", data: "not PEM", change: func(*v1alpha1.Cloud) {}, says: "ca.crt"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, home(withSecret, tc.change), nil, secret(map[string]string{"token": "secret-token", "ca.crt": tc.data}))
			old := newCloud(nil)
			w.kind.links.set("home", link{made: sha256.Sum256(nil), client: old})
			_, err := w.kind.connect(t.Context(), w.stored())
			equal(t, "verdict", "stalled: InvalidConfiguration, again in 10s", said(err))
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "secret-token") {
				t.Errorf("message %q, want %q in it and no secret", err, tc.says)
			}
			if w.kind.links.get("home").client != cloud.Client(old) {
				t.Error("the old connection was dropped")
			}
			select {
			case <-old.closed:
				t.Error("the old connection was closed")
			default:
			}
		})
	}
}

func TestAFailedPollSaysWhatToDo(t *testing.T) {
	throttled := &cloud.Error{Kind: cloud.Throttled, Op: "list servers", RetryAfter: time.Minute}
	patient := &cloud.Error{Kind: cloud.Unavailable, Op: "list servers", Detail: "maintenance", RetryAfter: 5 * time.Minute}
	tests := []struct {
		err     error
		verdict string
		says    string
	}{
		{errLogin, "stalled: AuthenticationFailed, again in 10s", "wrong token"},
		{errUntrusted, "stalled: Untrusted, again in 10s", "unknown authority"},
		{errRefused, "waiting: Unreachable, again in 10s", "spec.endpoint, https://cloud.test/api"},
		{patient, "waiting: Unreachable, again in 5m0s", "maintenance"},
		{throttled, "waiting: Unreachable, again in 1m0s", "list servers"},
		{errGarbage, "waiting: PollFailed, again in 10s", "not JSON"},
		{errAPIAway, "error: the API server is away", "the API server is away"},
	}
	for _, tc := range tests {
		t.Run(tc.verdict, func(t *testing.T) {
			got := verdictOn(home(), tc.err)
			equal(t, "verdict", tc.verdict, said(got))
			if !strings.Contains(got.Error(), tc.says) {
				t.Errorf("message %q, want %q in it", got, tc.says)
			}
		})
	}
}

func TestAClosingConnectionIsBounded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &farewell{}
	closeLink(context.WithoutCancel(ctx), f)
	if f.err != nil || f.left <= 0 || f.left > 10*time.Second {
		t.Errorf("closed with %v left and %v; want at most 10 s, and the pass's own end not to cut it short", f.left, f.err)
	}
}

// farewell notes how long it was given to close.
type farewell struct {
	cloud.Client
	left time.Duration
	err  error
}

func (f *farewell) Close(ctx context.Context) {
	f.err = ctx.Err()
	if deadline, ok := ctx.Deadline(); ok {
		f.left = time.Until(deadline)
	}
}

func TestTheDefaultCloudIsMadeWhereNoneIs(t *testing.T) {
	get := func(w *world) *v1alpha1.Cloud {
		c := &v1alpha1.Cloud{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: v1alpha1.DefaultCloudName}, c); err != nil {
			t.Fatalf("Get: %v", err)
		}
		return c
	}
	w := newWorld(t, home(), nil)
	for _, endpoint := range []string{"http://first.test", "http://second.test"} {
		b := Bootstrap{Client: w.client, Endpoint: endpoint}
		if err := b.Start(t.Context()); err != nil {
			t.Fatalf("Start: %v", err)
		}
		if !b.NeedLeaderElection() {
			t.Error("a standby would write")
		}
		equal(t, "endpoint: what is there is not changed", "http://first.test", get(w).Spec.Endpoint)
	}
	b := Bootstrap{Client: uncreatable{w.client}, Endpoint: "http://first.test"}
	if err := b.Start(t.Context()); !errors.Is(err, errAPIAway) || !strings.Contains(err.Error(), "--default-cloud-endpoint") {
		t.Errorf("Start = %v, want it to say which flag it was for", err)
	}
}

type uncreatable struct{ client.Client }

func (uncreatable) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errAPIAway
}
