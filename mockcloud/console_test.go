package mockcloud

import (
	"strings"
	"testing"
	"time"
)

// console returns what the console of a server printed.
func (h *harness) console(id, query string) string {
	h.t.Helper()
	return decodeInto[struct{ Output string }](h.t, h.call(200, "GET", "/servers/"+id+"/console"+query, "").body).Output
}

func TestConsoleShowsEachBoot(t *testing.T) {
	h := start(t, Options{})
	made := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"web","powerState":"Off","userData":"c2VjcmV0"}`).body)
	if got := h.console(made.ID, ""); got != "" {
		t.Errorf("before its first start: %q, want nothing", got)
	}
	switchTo := func(power string) string {
		h.call(200, "PATCH", "/servers/"+made.ID, `{"powerState":"`+power+`"}`)
		return h.console(made.ID, "")
	}
	const kernel = "Linux version"
	first := switchTo(PowerOn)
	if strings.Count(first, kernel) != 1 || !strings.Contains(first, "Hostname set to <web>") || !strings.HasSuffix(first, "\nweb login: ") {
		t.Errorf("the first boot: %q", first)
	}
	if got := h.console(made.ID, "?lines=1"); got != "web login: " {
		t.Errorf("one line: %q", got)
	}
	off := switchTo(PowerOff)
	if !strings.HasPrefix(off, first+"\n") || !strings.HasSuffix(off, "reboot: Power down\n") {
		t.Errorf("powered off: %q", off)
	}
	if got := switchTo(PowerOn); got != off+first {
		t.Errorf("the second boot: %q", got)
	}
	if got := switchTo(PowerSuspended); got != off+first {
		t.Errorf("suspended: %q", got)
	}
	if got := switchTo(PowerOn); got != off+first {
		t.Errorf("resumed: %q", got)
	}
	for range 100 {
		h.call(200, "PATCH", "/servers/"+made.ID, `{"powerState":"Off"}`)
		h.call(200, "PATCH", "/servers/"+made.ID, `{"powerState":"On"}`)
	}
	if got := h.console(made.ID, ""); strings.Count(got, "\n") != maxConsoleLines-1 || !strings.HasSuffix(got, off+first) {
		t.Errorf("after 102 boots: %d lines, %d boots", strings.Count(got, "\n")+1, strings.Count(got, kernel))
	}
}

func TestConsoleOfAServerThatIsBuilt(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute)}})
	made := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"web"}`).body)
	if got := codeIn(t, h.send("GET", "/servers/"+made.ID+"/console?lines=5", "")); got != CodeInvalidState {
		t.Errorf("got %q, want %s", got, CodeInvalidState)
	}
	for _, query := range []string{"?lines=0", "?lines=-1", "?lines=1001", "?lines=all"} {
		if got := codeIn(t, h.send("GET", "/servers/"+made.ID+"/console"+query, "")); got != CodeInvalid {
			t.Errorf("%s: got %q, want %s", query, got, CodeInvalid)
		}
	}
	if got := codeIn(t, h.send("GET", "/servers/none/console", "")); got != CodeNotFound {
		t.Errorf("got %q, want %s", got, CodeNotFound)
	}
}
