package clouds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestClientIsReplacedWhenInputsChange(t *testing.T) {
	rotate := func(data map[string]string) func(*harness, *pcapi.Cloud) {
		return func(h *harness, _ *pcapi.Cloud) { h.rotate(data) }
	}
	edit := func(change func(*pcapi.Cloud)) func(*harness, *pcapi.Cloud) {
		return func(_ *harness, c *pcapi.Cloud) {
			change(c)
			c.Generation++
		}
	}
	tests := []struct {
		name   string
		change func(*harness, *pcapi.Cloud)
		// replaced is whether a new client is made; atOnce is whether the old one is
		// closed before the new one has answered.
		replaced, atOnce bool
	}{
		{name: "nothing changes: same client", change: func(*harness, *pcapi.Cloud) {}},
		{name: "fields that do not concern the client change: same client", change: edit(func(c *pcapi.Cloud) {
			c.Spec.PollInterval.Duration = time.Hour
			c.Labels = map[string]string{"a": "b"}
		})},
		{name: "token changes: new client", change: rotate(map[string]string{"token": "new"}), replaced: true},
		{name: "kind of credentials changes: new client", change: rotate(map[string]string{"username": "u", "password": "old"}), replaced: true},
		{name: "CA changes: new client", change: rotate(map[string]string{"token": "old", "ca.crt": "another"}), replaced: true},
		{name: "limits change: new client", change: edit(func(c *pcapi.Cloud) { c.Spec.Limits.Burst = 9 }), replaced: true},
		{name: "reconcile-requested-at changes: new client", change: func(_ *harness, c *pcapi.Cloud) {
			c.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"}
		}, replaced: true},
		{name: "endpoint changes: new client at once", change: edit(func(c *pcapi.Cloud) { c.Spec.Endpoint += "/v2" }), replaced: true, atOnce: true},
		{
			name: "endpoint and token change: new client at once", replaced: true, atOnce: true,
			change: func(h *harness, c *pcapi.Cloud) {
				c.Spec.Endpoint, c.Generation = "https://other.test", 2
				h.rotateToken("new")
			},
		},
		{name: "insecureSkipTLSVerify changes: new client at once", change: edit(func(c *pcapi.Cloud) { c.Spec.InsecureSkipTLSVerify = true }), replaced: true, atOnce: true},
		{name: "rest.uniqueNames changes: new client at once", change: edit(func(c *pcapi.Cloud) { c.Spec.REST = &pcapi.RESTCloud{UniqueNames: new(false)} }), replaced: true, atOnce: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h, c, first := connected(t)
			tc.change(h, c)
			second := h.get(c)
			if replaced := second != first; replaced != tc.replaced {
				t.Fatalf("replaced: %t, want %t", replaced, tc.replaced)
			}
			if !tc.replaced {
				h.dialed[0].wantOpen(t)
				return
			}
			if tc.atOnce {
				h.dialed[0].wantClosed(t)
			} else {
				h.dialed[0].wantOpen(t)
				if h.getShared(c) != first || !h.InUse("home", first) {
					t.Error("others use the new client before it has answered")
				}
			}
			if h.get(c) != second {
				t.Error("a second candidate was made")
			}
			h.Commit("home", second)
			h.dialed[0].wantClosed(t)
			if h.get(c) != second || h.getShared(c) != second || !h.InUse("home", second) || h.InUse("home", first) {
				t.Error("the new client is not used by later calls")
			}
			h.dialed[1].wantOpen(t)
		})
	}
}

func TestRefusedCandidateLeavesTheCurrentClient(t *testing.T) {
	h, c, first := connected(t)
	h.rotateToken("wrong")
	for i := range 3 {
		if h.get(c) == first {
			t.Fatal("the changed Secret is not used")
		}
		h.Drop(t.Context(), "home")
		h.dialed[i+1].wantClosed(t)
		if h.getShared(c) != first || !h.InUse("home", first) {
			t.Fatal("the current client is not used on")
		}
	}
	h.rotateToken("old")
	if h.get(c) != first {
		t.Error("the client of the Secret as it was is not used")
	}
	h.dialed[0].wantOpen(t)
}

func TestCandidateIsReplacedByTheNextChange(t *testing.T) {
	h, c, first := connected(t)
	h.rotateToken("second")
	second := h.get(c)
	h.rotateToken("third")
	third := h.get(c)
	h.dialed[1].wantClosed(t)
	h.Commit("home", second)
	if h.getShared(c) != first {
		t.Error("a closed candidate became the current client")
	}
	h.rotateToken("old")
	if h.get(c) != first {
		t.Error("the current client is not used although it fits again")
	}
	h.dialed[2].wantClosed(t)
	h.Commit("home", third)
	h.dialed[0].wantOpen(t)
}

func TestEndpointChangeEndsTheClientAlthoughNoOtherCanBeMade(t *testing.T) {
	for name, data := range map[string]map[string]string{"the Secret is missing": nil, "the Secret is invalid": {"password": "p"}} {
		t.Run(name, func(t *testing.T) {
			h, c, first := connected(t)
			if data == nil {
				c.Spec.CredentialsSecretRef.Name = "another"
			} else {
				h.rotate(data)
			}
			c.Spec.Endpoint, c.Generation = "https://other.test", 2
			if _, err := h.Get(t.Context(), c); err == nil {
				t.Fatal("Get succeeded")
			}
			h.dialed[0].wantClosed(t)
			if h.InUse("home", first) {
				t.Error("the client of another endpoint is in use")
			}
		})
	}
}

func TestGetKeepsClientWhenInputsBecomeInvalid(t *testing.T) {
	h, c, old := connected(t)
	h.rotate(map[string]string{"password": "p"})
	if _, err := h.Get(t.Context(), c); reasonOf(err) != pcapi.InvalidConfigurationReason {
		t.Errorf("Get: %v, want InvalidConfiguration", err)
	}
	if h.getShared(c) != old {
		t.Error("the old client was dropped")
	}
	h.dialed[0].wantOpen(t)
}

func TestGetSharedReturnsTheClientThatGetKeeps(t *testing.T) {
	h, c, kept := connected(t)
	h.now = h.now.Add(time.Hour)
	h.rotateToken("new")
	changed := c.DeepCopy()
	changed.Generation++
	if h.getShared(changed) != kept || h.reads != 1 {
		t.Errorf("another client, or %d reads of the Secret; want the kept client, and the one read by Get", h.reads)
	}
	h.dialed[0].wantOpen(t)
}

func TestGetTakesOverTheClientThatGetSharedMade(t *testing.T) {
	h, c := newHarness(t), home()
	shared := h.getShared(c)
	if h.get(c) != shared {
		t.Error("a new leader made a second client")
	}
	h.now = h.now.Add(time.Hour)
	if h.getShared(c) != shared {
		t.Error("a third client was made")
	}
}

func TestGetSharedReadsTheSecretOncePerPollInterval(t *testing.T) {
	h, c := newHarness(t, secretOf(map[string]string{"token": "old"})), home(withSecret)
	first := h.getShared(c)
	for range 100 {
		if h.getShared(c) != first {
			t.Fatal("a second client was made")
		}
	}
	if h.reads != 1 {
		t.Errorf("%d reads of the Secret for 101 calls, want 1", h.reads)
	}
	h.rotateToken("new")
	h.now = h.now.Add(pollInterval)
	second := h.getShared(c)
	if second == first || h.reads != 2 {
		t.Errorf("the rotated Secret was not read after a pollInterval; %d reads", h.reads)
	}
	h.dialed[0].wantClosed(t)

	c.Spec.Endpoint, c.Generation = "https://other.test", 2
	if h.getShared(c) == second {
		t.Error("an edited Cloud is called at its old endpoint")
	}
}

func TestForgetClosesTheClient(t *testing.T) {
	h, c := newHarness(t), home()
	h.Drop(t.Context(), "home")
	first := h.connect(c)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	h.Forget(canceled, "home")
	h.dialed[0].wantClosed(t)
	if h.getShared(c) == first {
		t.Error("a closed client is used")
	}
}

func TestForgetReachesTheDialersAndDropDoesNot(t *testing.T) {
	h, c := newHarness(t), home()
	h.get(c)
	h.Drop(t.Context(), "home")
	if len(h.forgotten) > 0 {
		t.Errorf("Drop: the Dialer forgot %v, want nothing", h.forgotten)
	}
	h.Forget(t.Context(), "home")
	if diff := cmp.Diff([]string{"home"}, h.forgotten); diff != "" {
		t.Errorf("Forget: Clouds that the Dialer forgot (-want +got):\n%s", diff)
	}
}

func TestConcurrentCallersShareOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHarness(t), home()
		h.blocked = make(chan struct{})
		got := make(chan cloud.Client)
		for range 10 {
			go func() {
				shared, _ := h.GetShared(t.Context(), c)
				got <- shared
			}()
			go func() {
				kept, _ := h.Get(t.Context(), c)
				got <- kept
			}()
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.GetShared(short, c); err == nil {
			t.Error("a caller waits beyond the end of its context")
		}
		close(h.blocked)
		first := <-got
		for range 19 {
			if other := <-got; other != first {
				t.Error("two clients are in use")
			}
		}
		if len(h.dialed) != 1 {
			t.Errorf("%d clients were made, want 1", len(h.dialed))
		}
	})
}

func TestConcurrentGetSharedReadsTheSecretOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHarness(t, secretOf(map[string]string{"token": "t"})), home(withSecret)
		h.blocked = make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := h.GetShared(t.Context(), c); err != nil {
					t.Errorf("GetShared: %v", err)
				}
			})
		}
		synctest.Wait()
		close(h.blocked)
		all.Wait()
		if h.reads != 1 {
			t.Errorf("%d reads of the Secret, want 1", h.reads)
		}
	})
}

func TestDropAllClosesTheCurrentClient(t *testing.T) {
	h, c, first := connected(t)
	h.rotateToken("new")
	h.get(c)
	h.DropAll(t.Context(), "home")
	h.dialed[0].wantClosed(t)
	h.dialed[1].wantClosed(t)
	if h.InUse("home", first) || len(h.forgotten) > 0 {
		t.Errorf("a closed client is in use, or the Dialer forgot %v", h.forgotten)
	}
}

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
