package clouds

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
