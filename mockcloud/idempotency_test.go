package mockcloud

import (
	"sync"
	"testing"
	"time"
)

func TestKeyCreatesOneServer(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute)}})
	first := h.call(202, "POST", "/servers", `{"name":"web","cpu":2}`, "Idempotency-Key", "k")
	id := decodeInto[Server](t, first.body).ID

	h.clock.Advance(time.Minute)
	again := h.call(202, "POST", "/servers", ` { "cpu": 2, "name": "web" } `, "Idempotency-Key", "k")
	if got := decodeInto[Server](t, again.body); got.ID != id || got.State != StateActive {
		t.Errorf("same body in another order: got %s %s, want %s as it is now, ACTIVE", got.ID, got.State, id)
	}
	other := h.call(422, "POST", "/servers", `{"name":"web","cpu":3}`, "Idempotency-Key", "k")
	if got := codeIn(t, other); got != CodeKeyReused {
		t.Errorf("another body: got %s, want keyReused", got)
	}

	h.call(204, "DELETE", "/servers/"+id, "")
	h.clock.Advance(24*time.Hour - time.Second)
	gone := h.call(202, "POST", "/servers", `{"name":"web","cpu":2}`, "Idempotency-Key", "k")
	if gone.body != first.body {
		t.Errorf("after the server is deleted: got %s, want the first answer %s", gone.body, first.body)
	}
	h.clock.Advance(time.Second)
	fresh := h.call(202, "POST", "/servers", `{"name":"web","cpu":2}`, "Idempotency-Key", "k")
	if got := decodeInto[Server](t, fresh.body).ID; got == id {
		t.Errorf("a day after: got %s again, want a new server", got)
	}
}

func TestRejectedCreateDoesNotUseItsKey(t *testing.T) {
	h := start(t, Options{})
	s := h.create("web")
	h.call(409, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	h.call(204, "DELETE", "/servers/"+s.ID, "")
	h.call(201, "POST", "/servers", `{"name":"web2"}`, "Idempotency-Key", "k")
}

func TestConcurrentCreatesWithOneKeyCreateOneServer(t *testing.T) {
	h := start(t, Options{Capabilities: map[Capability]bool{UniqueNames: false}})
	replies := make([]reply, 16)
	var group sync.WaitGroup
	for i := range replies {
		group.Go(func() { replies[i] = h.send("POST", "/servers", `{"name":"one"}`, "Idempotency-Key", "k") })
	}
	group.Wait()
	for _, got := range replies {
		if got.status != 201 || got.body != replies[0].body {
			t.Errorf("got %d %s, want 201 %s", got.status, got.body, replies[0].body)
		}
	}
	if got := len(h.cloud.Servers()); got != 1 {
		t.Errorf("got %d servers, want 1", got)
	}
}

func TestKeyIsIgnoredWithoutTheCapability(t *testing.T) {
	h := start(t, Options{Capabilities: map[Capability]bool{Idempotency: false, UniqueNames: false}})
	for range 2 {
		h.call(201, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	}
	if got := len(h.cloud.Servers()); got != 2 {
		t.Errorf("got %d servers, want 2", got)
	}
}

func TestKeyIsKeptAfterItsNetworkIsDeleted(t *testing.T) {
	h := start(t, Options{})
	body := `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`
	first := h.call(201, "POST", "/networks", body, "Idempotency-Key", "k")
	h.call(409, "POST", "/networks", body)
	h.call(204, "DELETE", "/networks/"+decodeInto[Network](t, first.body).ID, "")
	again := h.call(201, "POST", "/networks", body, "Idempotency-Key", "k")
	if again.body != first.body {
		t.Errorf("got %s, want the first answer %s", again.body, first.body)
	}
}
