package mockcloud

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// later starts a call that does not return at once.
func (h *harness) later(method, path, body string) <-chan reply {
	done := make(chan reply, 1)
	go func() { done <- h.send(method, path, body) }()
	return done
}

func (h *harness) awaitHeld(id string) {
	h.t.Helper()
	if err := h.cloud.WaitHeld(h.t.Context(), id, 1); err != nil {
		h.t.Fatal(err)
	}
}

func TestDelayAppliesBeforeOrAfterTheEffect(t *testing.T) {
	for answer, during := range map[string]int{Before: 0, After: 1} {
		t.Run(answer, func(t *testing.T) {
			h := start(t, Options{})
			h.fault(Fault{Match: Match{Method: "POST"}, Delay: Duration(time.Hour), Answer: answer})
			done := h.later("POST", "/servers", `{"name":"web"}`)
			h.clock.AwaitWaiters(1)
			if got := len(h.cloud.Servers()); got != during {
				t.Errorf("during the delay: got %d servers, want %d", got, during)
			}
			h.clock.Advance(time.Hour)
			if got := <-done; got.status != 201 {
				t.Errorf("got %d %s %v, want 201", got.status, got.body, got.err)
			}
		})
	}
}

func TestLatencyDelaysEveryCall(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{Latency: Duration(time.Minute)}})
	done := h.later("GET", "/servers", "")
	h.clock.AwaitWaiters(1)
	h.clock.Advance(time.Minute)
	if got := <-done; got.status != 200 {
		t.Errorf("got %d %v, want 200", got.status, got.err)
	}
	if took := h.cloud.Calls()[0].Took; time.Duration(took) != time.Minute {
		t.Errorf("the call took %s, want a minute", time.Duration(took))
	}
}

func TestHeldCall(t *testing.T) {
	release := func(c *Cloud, id string) error { return c.ReleaseFault(id) }
	remove := func(c *Cloud, id string) error { return c.RemoveFault(id) }
	drop := func(c *Cloud, id string) error { return c.DropFault(id) }
	cases := map[string]struct {
		answer        string
		end           func(*Cloud, string) error
		during, after int
		answered      bool
	}{
		"held before the effect, released": {Before, release, 0, 1, true},
		"held before the effect, removed":  {Before, remove, 0, 1, true},
		"held before the effect, dropped":  {Before, drop, 0, 0, false},
		"held after the effect, released":  {After, release, 1, 1, true},
		"held after the effect, dropped":   {After, drop, 1, 1, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{})
			id := h.fault(Fault{Match: Match{Method: "POST"}, Hold: true, Answer: tc.answer})
			done := h.later("POST", "/servers", `{"name":"web"}`)
			h.awaitHeld(id)
			if got := len(h.cloud.Servers()); got != tc.during {
				t.Errorf("while held: got %d servers, want %d", got, tc.during)
			}
			if err := tc.end(h.cloud, id); err != nil {
				t.Fatal(err)
			}
			if got := <-done; (got.err == nil) != tc.answered {
				t.Errorf("got %d %v, want an answer: %t", got.status, got.err, tc.answered)
			}
			if got := len(h.cloud.Servers()); got != tc.after {
				t.Errorf("at the end: got %d servers, want %d", got, tc.after)
			}
		})
	}
}

func TestHeldCallHasItsEffectAfterItsClientDisconnects(t *testing.T) {
	h := start(t, Options{})
	id := h.fault(Fault{Match: Match{Method: "POST"}, Hold: true})
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", h.url+"/servers", strings.NewReader(`{"name":"web"}`))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		done <- err
	}()
	h.awaitHeld(id)
	hangUp()
	if err := <-done; err == nil {
		t.Fatal("the client got a response")
	}
	events, err := h.cloud.events.resume("")
	if err != nil {
		t.Fatal(err)
	}
	_, created, _ := h.cloud.events.after(events)
	if err := h.cloud.ReleaseFault(id); err != nil {
		t.Fatal(err)
	}
	<-created
	if got := len(h.cloud.Servers()); got != 1 {
		t.Errorf("got %d servers, want 1", got)
	}
}

func TestReleaseHoldsLaterCallsAgain(t *testing.T) {
	h := start(t, Options{})
	id := h.fault(Fault{Match: Match{Path: "/check/*"}, Hold: true})
	for range 2 {
		done := h.later("GET", "/check/web", "")
		h.awaitHeld(id)
		h.call(204, "POST", "/faults/"+id+"/release", "")
		if got := <-done; got.status != 200 {
			t.Errorf("got %d %v, want 200", got.status, got.err)
		}
	}
	for _, path := range []string{"/faults/none/release", "/faults/none/drop"} {
		h.call(404, "POST", path, "")
	}
}

func TestCloseReleasesHeldCalls(t *testing.T) {
	h := start(t, Options{})
	id := h.fault(Fault{Hold: true})
	done := h.later("GET", "/servers", "")
	h.awaitHeld(id)
	if err := h.cloud.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
}

func TestWaitHeldEndsWithItsContext(t *testing.T) {
	h := start(t, Options{})
	id := h.fault(Fault{Hold: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.cloud.WaitHeld(ctx, id, 1); err == nil {
		t.Error("no call is held: got no error")
	}
	if err := h.cloud.WaitHeld(t.Context(), "none", 1); err == nil {
		t.Error("unknown fault: got no error")
	}
}

func TestBytesPerSecondLimitsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud, err := New(Options{Faults: []Fault{{Body: strings.Repeat("x", 60), BytesPerSecond: 20}}})
		if err != nil {
			t.Fatal(err)
		}
		defer cloud.Close()
		w := &written{}
		began := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://cloud/servers", nil)
		if err != nil {
			t.Fatal(err)
		}
		cloud.Handler().ServeHTTP(w, r)
		if took := time.Since(began); took != 3*time.Second || w.bytes != 60 {
			t.Errorf("%d bytes took %s, want 60 in 3s", w.bytes, took)
		}
	})
}

// written counts the bytes that are sent.
type written struct {
	header http.Header
	bytes  int
}

func (w *written) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (w *written) WriteHeader(int) {}
func (w *written) Write(data []byte) (int, error) {
	w.bytes += len(data)
	return len(data), nil
}

func TestFaultsCombine(t *testing.T) {
	h := start(t, Options{Faults: []Fault{
		{ID: "slow", Delay: Duration(time.Minute)},
		{ID: "down", Status: 503, RetryAfter: "1"},
		{ID: "second answer", Status: 500},
	}})
	done := h.later("GET", "/servers", "")
	h.clock.AwaitWaiters(1)
	h.clock.Advance(time.Minute)
	got := <-done
	if got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("got %d %v, want the first answer, 503, after the delay", got.status, got.header)
	}
	if fired := h.cloud.Calls()[0].Faults; strings.Join(fired, ",") != "slow,down,second answer" {
		t.Errorf("the faults in the call log are %q", fired)
	}
}

func TestAdminEndpointsWorkWhileUnavailable(t *testing.T) {
	h := start(t, Options{})
	h.cloud.SetUnavailable(true)
	h.cloud.SetUnavailable(true)
	h.call(503, "GET", "/servers", "")
	h.call(200, "GET", "/ledger", "")
	h.cloud.SetUnavailable(false)
	h.call(200, "GET", "/servers", "")
}

func TestCallPassesTheGateOfARemovedFault(t *testing.T) {
	h := start(t, Options{})
	h.fault(Fault{Hold: true})
	matched := h.cloud.faults.faults[0]
	h.cloud.ClearFaults()
	if h.cloud.faults.hold(matched, nil) {
		t.Error("the call was dropped")
	}
}
