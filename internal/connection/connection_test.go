package connection

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

// world is an operator's namespace, and the connections that are made from it.
type world struct {
	*Connections

	t      *testing.T
	now    time.Time
	client client.Client
	// reads counts the Secrets read, and unreadable answers them.
	reads      int
	unreadable error
	// held has those who dial wait.
	held chan struct{}
	made []*wire
}

// wire is a connection that notes its end.
type wire struct {
	cloud.Client
	closed chan time.Duration
}

func (w *wire) Close(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	w.closed <- time.Until(deadline)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	w := &world{t: t, now: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w.Connections = New(Options{
		Secrets: secrets{w}, Namespace: "operator", Clock: func() time.Time { return w.now }, Dial: w.dial,
	})
	return w
}

func (w *world) dial(rest.Config) (cloud.Client, error) {
	if w.held != nil {
		<-w.held
	}
	fresh := &wire{closed: make(chan time.Duration, 1)}
	w.made = append(w.made, fresh)
	return fresh, nil
}

type secrets struct{ *world }

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

func (w *world) to(c *v1alpha1.Cloud) cloud.Client {
	w.t.Helper()
	way, err := w.To(w.t.Context(), c)
	if err != nil {
		w.t.Fatalf("To: %v", err)
	}
	return way
}

func (w *world) borrow(c *v1alpha1.Cloud) cloud.Client {
	w.t.Helper()
	way, err := w.Borrow(w.t.Context(), c)
	if err != nil {
		w.t.Fatalf("Borrow: %v", err)
	}
	return way
}

func (w *world) rotate(data map[string]string) {
	w.t.Helper()
	if err := w.client.Update(w.t.Context(), secret(data)); err != nil {
		w.t.Fatalf("Update: %v", err)
	}
}

// wantClosed waits for a connection to be closed, which nobody waits for otherwise.
func (w *wire) wantClosed(t *testing.T) {
	t.Helper()
	select {
	case left := <-w.closed:
		if left <= 0 || left > goodbye {
			t.Errorf("closed with %v left, want at most %v, and the caller's own end not to cut it short", left, goodbye)
		}
	case <-time.After(10 * time.Second):
		t.Error("the connection was not closed within 10 s")
	}
}

func (w *wire) wantOpen(t *testing.T) {
	t.Helper()
	select {
	case <-w.closed:
		t.Error("the connection was closed")
	default:
	}
}

func TestAConnectionIsMadeAnewWhenWhatItWasMadeFromChanges(t *testing.T) {
	rotate := func(data map[string]string) func(*world, *v1alpha1.Cloud) {
		return func(w *world, _ *v1alpha1.Cloud) { w.rotate(data) }
	}
	edit := func(change func(*v1alpha1.Cloud)) func(*world, *v1alpha1.Cloud) {
		return func(_ *world, c *v1alpha1.Cloud) {
			change(c)
			c.Generation++
		}
	}
	tests := []struct {
		name  string
		do    func(*world, *v1alpha1.Cloud)
		fresh bool
	}{
		{name: "nothing", do: func(*world, *v1alpha1.Cloud) {}},
		{name: "what does not concern it", do: edit(func(c *v1alpha1.Cloud) {
			c.Spec.PollInterval.Duration = time.Hour
			c.Labels = map[string]string{"a": "b"}
		})},
		{name: "the token", do: rotate(map[string]string{"token": "new"}), fresh: true},
		{name: "the kind of credentials", do: rotate(map[string]string{"username": "u", "password": "old"}), fresh: true},
		{name: "the CA", do: rotate(map[string]string{"token": "old", "ca.crt": "another"}), fresh: true},
		{name: "the endpoint", do: edit(func(c *v1alpha1.Cloud) { c.Spec.Endpoint += "/v2" }), fresh: true},
		{name: "whether certificates are verified", do: edit(func(c *v1alpha1.Cloud) { c.Spec.InsecureSkipTLSVerify = true }), fresh: true},
		{name: "whether names are unique", do: edit(func(c *v1alpha1.Cloud) { c.Spec.UniqueNames = new(false) }), fresh: true},
		{name: "the limits", do: edit(func(c *v1alpha1.Cloud) { c.Spec.Limits.Burst = 9 }), fresh: true},
		{name: "somebody's patience", do: func(_ *world, c *v1alpha1.Cloud) {
			c.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: "now"}
		}, fresh: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w, c := newWorld(t, secret(map[string]string{"token": "old"})), home(withSecret)
			first := w.to(c)
			tc.do(w, c)
			second := w.to(c)
			if fresh := second != first; fresh != tc.fresh {
				t.Fatalf("made anew: %t, want %t", fresh, tc.fresh)
			}
			if !tc.fresh {
				w.made[0].wantOpen(t)
				return
			}
			w.made[0].wantClosed(t)
			if w.to(c) != second || w.borrow(c) != second {
				t.Error("the new connection is not used again")
			}
		})
	}
}

func TestWhatCannotBeUsedLeavesTheOldConnectionOpen(t *testing.T) {
	w, c := newWorld(t, secret(map[string]string{"token": "t"})), home(withSecret)
	old := w.to(c)
	w.rotate(map[string]string{"password": "p"})
	if _, err := w.To(t.Context(), c); reasonOf(err) != v1alpha1.InvalidConfigurationReason {
		t.Errorf("To: %v, want InvalidConfiguration", err)
	}
	if w.borrow(c) != old {
		t.Error("the old connection was dropped")
	}
	w.made[0].wantOpen(t)
}

func TestWhoBorrowsGetsTheVeryConnectionThatIsKept(t *testing.T) {
	w, c := newWorld(t, secret(map[string]string{"token": "t"})), home(withSecret)
	kept := w.to(c)
	w.now = w.now.Add(time.Hour)
	w.rotate(map[string]string{"token": "new"})
	changed := c.DeepCopy()
	changed.Generation++
	if w.borrow(changed) != kept || w.reads != 1 {
		t.Errorf("another connection, or %d reads of the Secret; want those of the one who keeps it alone", w.reads)
	}
	w.made[0].wantOpen(t)
}

func TestWhoKeepsAConnectionTakesOverTheOneThatWasBorrowed(t *testing.T) {
	w, c := newWorld(t), home()
	borrowed := w.borrow(c)
	if w.to(c) != borrowed {
		t.Error("a new leader made a second connection")
	}
	w.now = w.now.Add(time.Hour)
	if w.borrow(c) != borrowed {
		t.Error("a third connection was made")
	}
}

func TestWhereNobodyKeepsAConnectionTheSecretIsReadOnceAPollInterval(t *testing.T) {
	w, c := newWorld(t, secret(map[string]string{"token": "old"})), home(withSecret)
	first := w.borrow(c)
	for range 100 {
		if w.borrow(c) != first {
			t.Fatal("a second connection was made")
		}
	}
	if w.reads != 1 {
		t.Errorf("%d reads of the Secret for 101 calls, want 1", w.reads)
	}
	w.rotate(map[string]string{"token": "new"})
	w.now = w.now.Add(pollInterval)
	second := w.borrow(c)
	if second == first || w.reads != 2 {
		t.Errorf("the rotated Secret was not seen after a pollInterval; %d reads", w.reads)
	}
	w.made[0].wantClosed(t)

	c.Spec.Endpoint, c.Generation = "https://other.test", 2
	if w.borrow(c) == second {
		t.Error("an edited Cloud is called at its old endpoint")
	}
}

func TestADroppedConnectionIsClosedAndNotUsedAgain(t *testing.T) {
	w, c := newWorld(t), home()
	w.Drop(t.Context(), "home")
	first := w.to(c)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w.Forget(over, "home")
	w.made[0].wantClosed(t)
	if w.borrow(c) == first {
		t.Error("a closed connection is used")
	}
}

func TestManyWhoAskAtOnceShareOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t), home()
		w.held = make(chan struct{})
		got := make(chan cloud.Client)
		for range 10 {
			go func() {
				way, _ := w.Borrow(t.Context(), c)
				got <- way
			}()
			go func() {
				way, _ := w.To(t.Context(), c)
				got <- way
			}()
		}
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Borrow(impatient, c); err == nil {
			t.Error("who has no time left waits all the same")
		}
		close(w.held)
		first := <-got
		for range 19 {
			if way := <-got; way != first {
				t.Error("two connections are in use")
			}
		}
		if len(w.made) != 1 {
			t.Errorf("%d connections were made, want 1", len(w.made))
		}
	})
}

func TestManyWhoBorrowAtOnceReadTheSecretOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := newWorld(t, secret(map[string]string{"token": "t"})), home(withSecret)
		w.held = make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := w.Borrow(t.Context(), c); err != nil {
					t.Errorf("Borrow: %v", err)
				}
			})
		}
		synctest.Wait()
		close(w.held)
		all.Wait()
		if w.reads != 1 {
			t.Errorf("%d reads of the Secret, want 1", w.reads)
		}
	})
}
