package mockcloud

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// harness is a cloud with an HTTP server for each of its handlers.
type harness struct {
	t          *testing.T
	cloud      *Cloud
	url, admin string
	clock      *ManualClock
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// start starts a cloud with a manual clock.
func start(t *testing.T, opts Options) *harness {
	t.Helper()
	clock := NewManualClock(epoch)
	if opts.Clock == nil {
		opts.Clock = clock
	}
	cloud, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cloud.Handler())
	t.Cleanup(server.Close)
	admin := httptest.NewServer(cloud.AdminHandler())
	t.Cleanup(admin.Close)
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Errorf("closing the cloud: %v", err)
		}
	})
	return &harness{t: t, cloud: cloud, url: server.URL, admin: admin.URL, clock: clock}
}

// reply is a response or an error.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

// control reports whether a path is one of the admin handler.
func control(path string) bool {
	for _, prefix := range []string{"/admin", "/faults", "/calls", "/metrics"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// send makes a call with a connection of its own, to the admin handler for its
// paths. The call may fail.
func (h *harness) send(method, path, body string, header ...string) reply {
	h.t.Helper()
	if control(path) {
		return h.sendTo(h.admin, method, path, body, header...)
	}
	return h.sendTo(h.url, method, path, body, header...)
}

func (h *harness) sendTo(url, method, path, body string, header ...string) reply {
	h.t.Helper()
	r, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return reply{status: answer.StatusCode, header: answer.Header, body: string(data), err: err}
}

// call makes a call that must return the status want.
func (h *harness) call(want int, method, path, body string, header ...string) reply {
	h.t.Helper()
	got := h.send(method, path, body, header...)
	if got.err != nil || got.status != want {
		h.t.Fatalf("%s %s: got %d %s %v, want status %d", method, path, got.status, got.body, got.err, want)
	}
	return got
}

func decodeInto[T any](t *testing.T, body string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("decoding %q: %v", body, err)
	}
	return out
}

func (h *harness) create(name string) Server {
	h.t.Helper()
	return decodeInto[Server](h.t, h.call(201, "POST", "/servers", `{"name":"`+name+`"}`).body)
}

func (h *harness) fault(f Fault) string {
	h.t.Helper()
	id, err := h.cloud.AddFault(f)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

func codeIn(t *testing.T, r reply) string {
	t.Helper()
	return decodeInto[Problem](t, r.body).Code
}

type page struct {
	Servers []Server `json:"servers"`
	Next    string   `json:"next"`
}

// names returns the names of the servers of all pages, at most limit pages.
func (h *harness) names(query string, limit int) []string {
	h.t.Helper()
	var out []string
	marker := ""
	for range limit {
		got := decodeInto[page](h.t, h.call(200, "GET", "/servers?"+query+"&marker="+marker, "").body)
		for _, s := range got.Servers {
			out = append(out, s.Name)
		}
		if marker = got.Next; marker == "" {
			return out
		}
	}
	return append(out, "…")
}

func ops(ledger []LedgerEntry) []string {
	var out []string
	for _, e := range ledger {
		out = append(out, string(e.Op)+" "+e.Name+" by "+e.By)
	}
	return out
}
