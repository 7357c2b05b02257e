package clouds

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestWithdrawnSecretEndsTheClient(t *testing.T) {
	for name, withdraw := range map[string]func(*harness, *corev1.Secret) error{
		"its label is removed": func(h *harness, s *corev1.Secret) error {
			s.Labels = nil
			return h.client.Update(h.t.Context(), s)
		},
		"it is deleted": func(h *harness, s *corev1.Secret) error { return h.client.Delete(h.t.Context(), s) },
	} {
		t.Run(name, func(t *testing.T) {
			h, c, first := connected(t)
			h.unreadable = errors.New("the API server is away")
			if _, err := h.Get(t.Context(), c); err == nil || !h.InUse("home", first) {
				t.Errorf("the Secret cannot be read: %v, want an error and the client in use", err)
			}
			h.unreadable = nil
			if err := withdraw(h, secretOf(map[string]string{"token": "old"})); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Get(t.Context(), c); reasonOf(err) == "" {
				t.Errorf("%v, want that the Cloud is unusable", err)
			}
			h.dialed[0].wantClosed(t)
			if h.InUse("home", first) {
				t.Error("withdrawn credentials are in use")
			}
		})
	}
}

func deleting(c *pcapi.Cloud) {
	c.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)}
}

// TestDeletedSecretOfADeletedCloud is about what may be made of a Secret that does not exist any more.
func TestDeletedSecretOfADeletedCloud(t *testing.T) {
	label := func(h *harness, _ *pcapi.Cloud) {
		secret := secretOf(map[string]string{"token": "old"})
		secret.Labels = nil
		if err := h.client.Update(h.t.Context(), secret); err != nil {
			h.t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		// before is done before the Secret is deleted, and after it after that.
		before, after func(*harness, *pcapi.Cloud)
		used          bool
	}{
		"the Cloud is deleted first": {before: func(_ *harness, c *pcapi.Cloud) { deleting(c) }, used: true},
		"the Cloud is deleted later": {after: func(_ *harness, c *pcapi.Cloud) { deleting(c) }, used: true},
		"the Cloud stays":            {},
		"the label was removed":      {before: label, after: func(_ *harness, c *pcapi.Cloud) { deleting(c) }},
		"the endpoint changed":       {after: func(_ *harness, c *pcapi.Cloud) { deleting(c); c.Spec.Endpoint = "https://other.test" }},
		"another Secret is named": {after: func(_ *harness, c *pcapi.Cloud) {
			deleting(c)
			c.Spec.CredentialsSecretRef = &pcapi.SecretReference{Name: "another"}
		}},
		"the Cloud is deleted long after its Secret": {after: func(h *harness, c *pcapi.Cloud) {
			h.now = h.now.Add(time.Hour)
			_, _ = h.Get(h.t.Context(), c)
			deleting(c)
		}},
		"it is another Cloud of the name": {after: func(_ *harness, c *pcapi.Cloud) { deleting(c); c.UID = "uid-2" }},
		"the Cloud was forgotten":         {after: func(h *harness, c *pcapi.Cloud) { deleting(c); h.Forget(h.t.Context(), c.Name) }},
	} {
		t.Run(name, func(t *testing.T) {
			h, c, first := connected(t)
			if tc.before != nil {
				tc.before(h, c)
				_, _ = h.Get(t.Context(), c)
			}
			if err := h.client.Delete(t.Context(), secretOf(nil)); err != nil {
				t.Fatal(err)
			}
			got, err := h.Get(t.Context(), c)
			if tc.after != nil {
				if reasonOf(err) != pcapi.SecretMissingReason {
					t.Errorf("%v before the Cloud is deleted, want SecretMissing", err)
				}
				h.dialed[0].wantClosed(t)
				tc.after(h, c)
				got, err = h.Get(t.Context(), c)
			}
			if used := err == nil && got != nil; used != tc.used || used && !h.SecretGone("home") {
				t.Errorf("%v, want that the Secret is used: %t", err, tc.used)
			}
			if tc.used && tc.before != nil && got != first {
				t.Error("another client was made")
			}
		})
	}
}

// TestWithdrawnSecretEndsTheClientOfAStandby is about the clients that GetShared makes.
func TestWithdrawnSecretEndsTheClientOfAStandby(t *testing.T) {
	for name, change := range map[string]func(*harness, *pcapi.Cloud){
		"the label of the Secret is removed": func(h *harness, _ *pcapi.Cloud) {
			secret := secretOf(map[string]string{"token": "t"})
			secret.Labels = nil
			if err := h.client.Update(h.t.Context(), secret); err != nil {
				h.t.Fatal(err)
			}
		},
		"the endpoint changes, and the Secret is invalid": func(h *harness, c *pcapi.Cloud) {
			h.rotate(map[string]string{"password": "p"})
			c.Spec.Endpoint, c.Generation = "https://other.test", 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, c := newHarness(t, secretOf(map[string]string{"token": "t"})), home(withSecret)
			h.getShared(c)
			h.now = h.now.Add(pollInterval)
			change(h, c)
			if _, err := h.GetShared(t.Context(), c); reasonOf(err) != pcapi.InvalidConfigurationReason {
				t.Errorf("GetShared: %v, want InvalidConfiguration", err)
			}
			h.dialed[0].wantClosed(t)
		})
	}
}

func TestForgetClosesTheCandidate(t *testing.T) {
	h, c, _ := connected(t)
	h.rotateToken("new")
	h.get(c)
	h.Forget(t.Context(), "home")
	h.dialed[0].wantClosed(t)
	h.dialed[1].wantClosed(t)
}

func TestNothingIsKeptForCloudsWithoutAClient(t *testing.T) {
	h := newHarness(t)
	named := func(name string) *pcapi.Cloud {
		return home(func(c *pcapi.Cloud) { c.Name, c.Spec.Type = name, "Unknown" })
	}
	for i := range 100 {
		c := named(fmt.Sprintf("unknown-%d", i))
		if _, err := h.GetShared(t.Context(), c); err == nil {
			t.Fatal("a client of an unknown type")
		}
		if _, err := h.Get(t.Context(), c); err == nil {
			t.Fatal("a client of an unknown type")
		}
		h.Drop(t.Context(), c.Name)
		h.Forget(t.Context(), c.Name)
		h.Commit(c.Name, nil)
	}
	h.connect(home())
	h.Forget(t.Context(), "home")
	if len(h.entries) != 0 {
		t.Errorf("%d entries are kept, want none", len(h.entries))
	}
}

func TestUnusedClientOfAStandbyIsClosed(t *testing.T) {
	h, c := newHarness(t), home()
	other := func(name string) *pcapi.Cloud { return home(func(c *pcapi.Cloud) { c.Name = name }) }
	h.getShared(c)
	h.connect(other("kept"))
	h.now = h.now.Add(unusedTimeout)
	h.getShared(other("used"))
	h.dialed[0].wantOpen(t)
	h.now = h.now.Add(time.Second)
	h.getShared(other("third"))
	h.dialed[0].wantClosed(t)
	h.Close(t.Context())
	if diff := cmp.Diff([]string{"home"}, h.forgotten); diff != "" {
		t.Errorf("Clouds that were forgotten (-want +got):\n%s", diff)
	}
}

func TestCloseClosesEachClientOnce(t *testing.T) {
	h, c, current := connected(t)
	h.rotateToken("new")
	candidate := h.get(c)
	shared := h.getShared(home(func(c *pcapi.Cloud) { c.Name = "shared" }))
	h.Close(t.Context())
	for _, client := range []cloud.Client{current, candidate, shared} {
		if got := client.(*recordedClient).Closes(); got != 1 {
			t.Errorf("a client was closed %d times, want once", got)
		}
	}
	if _, err := h.Get(t.Context(), c); !errors.Is(err, errClosed) {
		t.Errorf("Get: %v, want %v", err, errClosed)
	}
	if _, err := h.GetShared(t.Context(), c); !errors.Is(err, errClosed) {
		t.Errorf("GetShared: %v, want %v", err, errClosed)
	}
	h.Commit("home", candidate)
	h.Drop(t.Context(), "home")
	h.Forget(t.Context(), "home")
	h.Close(t.Context())
	if h.InUse("home", current) || len(h.dialed) != 3 {
		t.Errorf("%d clients were made, want 3, and none in use", len(h.dialed))
	}
}

func TestClientThatIsMadeWhileClosingIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHarness(t), home()
		h.blocked = make(chan struct{})
		failed := make(chan error, 2)
		go func() { _, err := h.Get(t.Context(), c); failed <- err }()
		go func() {
			_, err := h.GetShared(t.Context(), home(func(c *pcapi.Cloud) { c.Name = "other" }))
			failed <- err
		}()
		synctest.Wait()
		h.Close(t.Context())
		close(h.blocked)
		for range 2 {
			if err := <-failed; !errors.Is(err, errClosed) {
				t.Errorf("%v, want %v", err, errClosed)
			}
		}
		synctest.Wait()
		for _, client := range h.dialed {
			if client.Closes() != 1 {
				t.Error("a client outlives Close")
			}
		}
	})
}

func TestCloseWaitsForReplacedClients(t *testing.T) {
	for name, tc := range map[string]struct{ slow, deadline, took time.Duration }{
		"it closes in time: awaited":             {time.Second, time.Hour, time.Second},
		"it takes too long: its context ends it": {time.Minute, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, c, _ := connected(t)
				h.dialed[0].slow = tc.slow
				h.rotateToken("new")
				h.connect(c)
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				defer cancel()
				begun := time.Now()
				h.Close(ctx)
				if took := time.Since(begun); took != tc.took {
					t.Errorf("Close returned after %s, want %s", took, tc.took)
				}
				if closed := h.dialed[0].Closes() == 1; closed != (tc.slow < tc.deadline) {
					t.Errorf("the replaced client was closed: %t", closed)
				}
				<-h.dialed[0].Closed()
			})
		})
	}
}
