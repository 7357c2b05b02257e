package clouds

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

const (
	pollInterval = 30 * time.Second
	memoryType   = pcapi.CloudType("InMemory")
)

var errNoUsername = errors.New("username is missing")

// harness is an operator's namespace and the Clients that read it.
type harness struct {
	*Clients

	t      *testing.T
	now    time.Time
	client client.Client
	// reads counts the reads of Secrets. unreadable is their error.
	reads      int
	unreadable error
	// blocked makes Dial wait until it is closed.
	blocked   chan struct{}
	mu        sync.Mutex
	dialed    []*recordedClient
	forgotten []string
}

// recordedClient is a client of a cloud in memory. It records how much time its
// Close was given.
type recordedClient struct {
	*cloudfake.Cloud
	left time.Duration
	// slow is how long Close takes.
	slow time.Duration
}

func newClient() *recordedClient {
	return &recordedClient{Cloud: cloudfake.New(cloudfake.Options{})}
}

func (c *recordedClient) Close(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	c.left = time.Until(deadline)
	<-time.After(c.slow)
	c.Cloud.Close(ctx)
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	h := &harness{t: t, now: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)}
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	h.Clients = New(Options{
		Secrets: secrets{h}, Namespace: "operator", Clock: func() time.Time { return h.now },
		Dialers: map[pcapi.CloudType]Dialer{memoryType: memory{h}, pcapi.CloudTypeREST: DialFunc(neverDial)},
	})
	return h
}

func neverDial(*pcapi.Cloud, *corev1.Secret) (cloud.Client, error) {
	return nil, errors.New("dialed as another type of cloud")
}

// memory is the Dialer of a type of cloud in memory.
type memory struct{ h *harness }

// Dial rejects a Secret with a password and no username.
func (m memory) Dial(_ *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
	if m.h.blocked != nil {
		<-m.h.blocked
	}
	if secret != nil && secret.Data["password"] != nil && secret.Data["username"] == nil {
		return nil, errNoUsername
	}
	fresh := newClient()
	m.h.mu.Lock()
	defer m.h.mu.Unlock()
	m.h.dialed = append(m.h.dialed, fresh)
	return fresh, nil
}

func (memory) SecretKeys() string { return "a key of the cloud in memory" }

func (m memory) Forget(name string) { m.h.forgotten = append(m.h.forgotten, name) }

type secrets struct{ *harness }

func (s secrets) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	s.reads++
	if s.unreadable != nil {
		return s.unreadable
	}
	return s.client.Get(ctx, key, o, opts...)
}

func (secrets) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("Secrets are read by name")
}

func (h *harness) get(c *pcapi.Cloud) cloud.Client {
	h.t.Helper()
	got, err := h.Get(h.t.Context(), c)
	if err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	return got
}

// connect returns the client of Get, which has answered.
func (h *harness) connect(c *pcapi.Cloud) cloud.Client {
	h.t.Helper()
	got := h.get(c)
	h.Commit(c.Name, got)
	return got
}

// connected returns the Cloud home with a Secret, whose token is "old", and the client
// of it, which has answered.
func connected(t *testing.T) (*harness, *pcapi.Cloud, cloud.Client) {
	t.Helper()
	h, c := newHarness(t, secretOf(map[string]string{"token": "old"})), home(withSecret)
	current := h.connect(c)
	return h, c, current
}

func (h *harness) getShared(c *pcapi.Cloud) cloud.Client {
	h.t.Helper()
	got, err := h.GetShared(h.t.Context(), c)
	if err != nil {
		h.t.Fatalf("GetShared: %v", err)
	}
	return got
}

func (h *harness) rotate(data map[string]string) {
	h.t.Helper()
	if err := h.client.Update(h.t.Context(), secretOf(data)); err != nil {
		h.t.Fatalf("Update: %v", err)
	}
}

func (h *harness) rotateToken(token string) {
	h.t.Helper()
	h.rotate(map[string]string{"token": token})
}

// wantClosed waits for Close, which runs in the background.
func (c *recordedClient) wantClosed(t *testing.T) {
	t.Helper()
	select {
	case <-c.Closed():
		if c.left <= 0 || c.left > retireTimeout {
			t.Errorf("Close had %v left; want more than 0 and at most %v, whatever the caller's deadline is", c.left, retireTimeout)
		}
	case <-time.After(time.Minute):
		t.Error("the client was not closed within a minute")
	}
}

func (c *recordedClient) wantOpen(t *testing.T) {
	t.Helper()
	if c.Closes() > 0 {
		t.Error("the client was closed")
	}
}

// home returns the Cloud home, changed.
func home(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "uid-home", Generation: 1},
		Spec: pcapi.CloudSpec{
			Type: memoryType, Endpoint: "https://cloud.test/api", PollInterval: metav1.Duration{Duration: pollInterval},
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

// secretOf returns the Secret that withSecret refers to, for the Cloud home.
func secretOf(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "operator", Name: "login", Labels: map[string]string{pcapi.CredentialsForLabel: "home"},
	}}
	s.Data = map[string][]byte{}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func reasonOf(err error) string {
	if unusable, ok := errors.AsType[*UnusableError](err); ok {
		return unusable.Reason
	}
	return ""
}
