package mockcloud

import "testing"

func TestRepeatedKeyIsRefusedWhileItsCreateIsInProgress(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{KeysInProgress: true}})
	id := h.fault(Fault{Match: Match{Method: "POST", Count: 1}, Hold: true})
	done := make(chan reply)
	go func() { done <- h.send("POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k") }()
	h.awaitHeld(id)
	refused := h.call(409, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	if got := codeIn(t, refused); got != CodeKeyInProgress {
		t.Errorf("got %s, want %s", got, CodeKeyInProgress)
	}
	h.call(201, "POST", "/servers", `{"name":"db"}`, "Idempotency-Key", "other")
	h.call(204, "POST", "/faults/"+id+"/release", "")
	first := <-done
	again := h.call(201, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	if again.body != first.body {
		t.Errorf("got %s, want the answer to the first create %s", again.body, first.body)
	}
}
