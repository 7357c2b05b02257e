package mockcloud

import (
	"testing"
	"time"
)

const credentials = `{"username":"u","password":"p"}`

func (h *harness) login() string {
	h.t.Helper()
	return "Bearer " + decodeInto[session](h.t, h.call(201, "POST", "/sessions", credentials).body).Token
}

func TestSessionExpires(t *testing.T) {
	h := start(t, Options{Username: "u", Password: "p", SessionTTL: Duration(time.Minute)})
	h.call(401, "GET", "/servers", "")
	h.call(401, "POST", "/sessions", `{"username":"u","password":"x"}`)
	h.call(400, "POST", "/sessions", `{}`)
	token := h.login()
	h.clock.Advance(time.Minute - 1)
	h.call(200, "GET", "/servers", "", "Authorization", token)
	h.clock.Advance(1)
	if got := h.call(401, "GET", "/servers", "", "Authorization", token); got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("got the header %q, want Bearer", got.header.Get("WWW-Authenticate"))
	}
	h.clock.Advance(48 * time.Hour)
	h.login()
	if got := len(h.cloud.access.sessions); got != 1 {
		t.Errorf("%d sessions are kept, want 1", got)
	}
}

func TestSessionEnds(t *testing.T) {
	h := start(t, Options{Username: "u", Password: "p"})
	first, second := h.login(), h.login()
	h.call(204, "DELETE", "/sessions", "", "Authorization", first)
	h.call(401, "GET", "/servers", "", "Authorization", first)
	h.call(200, "GET", "/servers", "", "Authorization", second)
	h.call(204, "DELETE", "/admin/sessions", "")
	h.call(401, "GET", "/servers", "", "Authorization", second)
}

func TestTokenCanBeRotated(t *testing.T) {
	h := start(t, Options{Token: "one"})
	h.call(200, "GET", "/servers", "", "Authorization", "bearer one")
	h.call(401, "GET", "/servers", "", "Authorization", "Basic one")
	h.call(401, "POST", "/sessions", credentials)
	h.call(401, "GET", "/capabilities", "")
	h.cloud.SetToken("two")
	h.call(401, "GET", "/servers", "", "Authorization", "Bearer one")
	h.call(200, "GET", "/servers", "", "Authorization", "Bearer two")
	h.call(401, "DELETE", "/sessions", "", "Authorization", "Bearer two")
	h.call(204, "PUT", "/admin/auth", `{"username":"u","password":"p","sessionTTL":"5s"}`)
	h.call(401, "GET", "/servers", "", "Authorization", "Bearer two")
	h.call(200, "GET", "/servers", "", "Authorization", h.login())
	h.call(204, "PUT", "/admin/auth", `{}`)
	h.call(200, "GET", "/servers", "")
}

func TestCallsAndLoginNeedNoCredentialsByDefault(t *testing.T) {
	h := start(t, Options{})
	h.call(200, "GET", "/servers", "", "Authorization", "Bearer whatever")
	h.login()
}
