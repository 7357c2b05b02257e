package mockcloud

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestContentTypeOfJSONBodies(t *testing.T) {
	for contentType, want := range map[string][]string{
		"text/json": {"text/json"}, "application/octet-stream": {"application/octet-stream"}, "none": nil,
	} {
		t.Run(contentType, func(t *testing.T) {
			h := start(t, Options{Quirks: Quirks{ContentType: contentType}})
			for path, status := range map[string]int{"/servers": 200, "/capabilities": 200, "/servers/none": 404} {
				got := h.call(status, "GET", path, "")
				if diff := cmp.Diff(want, got.header["Content-Type"]); diff != "" || !json.Valid([]byte(got.body)) {
					t.Errorf("GET %s: got the body %s with the content type (-want +got):\n%s", path, got.body, diff)
				}
			}
			s := h.create("web")
			if got := h.call(204, "DELETE", "/servers/"+s.ID, "").header["Content-Type"]; got != nil {
				t.Errorf("an answer without a body has the content type %q", got)
			}
		})
	}
}

func TestPlain404(t *testing.T) {
	for kind, want := range map[string][2]string{
		"empty": {"", ""},
		"json":  {"application/json", `{"message":"Not Found"}` + "\n"},
		"html":  {"text/html; charset=utf-8", "<!DOCTYPE html><html><head><title>404</title></head><body><h1>404 Not Found</h1></body></html>\n"},
		"text":  {"text/plain; charset=utf-8", "404 page not found\n"},
	} {
		t.Run(kind, func(t *testing.T) {
			h := start(t, Options{Profile: Core, Quirks: Quirks{Plain404: kind}})
			for _, call := range [][2]string{{"GET", "/servers/none"}, {"DELETE", "/servers/none"}, {"GET", "/capabilities"}} {
				got := h.call(404, call[0], call[1], "")
				if diff := cmp.Diff(want, [2]string{got.header.Get("Content-Type"), got.body}); diff != "" {
					t.Errorf("%s %s: content type and body (-want +got):\n%s", call[0], call[1], diff)
				}
			}
			h.create("web")
			if got := codeIn(t, h.call(409, "POST", "/servers", `{"name":"web"}`)); got != CodeNameTaken {
				t.Errorf("another refusal has the code %s, want %s", got, CodeNameTaken)
			}
		})
	}
}

func TestNoCodesLeavesNoTraceOfACode(t *testing.T) {
	h := start(t, Options{Token: "x", Quirks: Quirks{NoCodes: true}})
	for path, want := range map[string]struct {
		status int
		header []string
	}{
		"/servers/none":    {404, []string{"Authorization", "Bearer x"}},
		"/check/forbidden": {403, []string{"Authorization", "Bearer x"}},
		"/servers":         {401, nil},
	} {
		got := h.call(want.status, "GET", path, "", want.header...)
		var p Problem
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || p.Code != "" || p.Type != "about:blank" ||
			p.Status != want.status || p.Detail == "" || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("GET %s: got %s %s, want a problem without a code", path, got.header.Get("Content-Type"), got.body)
		}
	}
}

func TestAnswersToCapabilities(t *testing.T) {
	for _, profile := range []Profile{Core, Extended} {
		for _, status := range []int{400, 401, 403, 405, 500, 501} {
			t.Run(fmt.Sprint(profile, " ", status), func(t *testing.T) {
				h := start(t, Options{Profile: profile, Quirks: Quirks{Capabilities: fmt.Sprint(status)}})
				h.call(status, "GET", "/capabilities", "")
				h.call(200, "GET", "/servers", "")
			})
		}
		for value, want := range map[string]string{"html": "<!DOCTYPE html>", "empty": "{}\n"} {
			t.Run(fmt.Sprint(profile, " ", value), func(t *testing.T) {
				h := start(t, Options{Profile: profile, Quirks: Quirks{Capabilities: value}})
				if got := h.call(200, "GET", "/capabilities", "").body; !strings.HasPrefix(got, want) {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

func TestRetryAfterDateOfEachTenthCall(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{RetryAfterDate: Duration(10 * time.Minute)}})
	refused := 0
	for range 20 {
		got := h.send("GET", "/servers", "")
		if got.status != 429 {
			continue
		}
		refused++
		if want := epoch.Add(10 * time.Minute).Format(http.TimeFormat); got.header.Get("Retry-After") != want || got.header["Date"] != nil {
			t.Errorf("got Retry-After %s and Date %s, want %s and none", got.header.Get("Retry-After"), got.header["Date"], want)
		}
	}
	if refused != 2 {
		t.Errorf("%d of 20 calls were refused, want 2", refused)
	}
}

func TestReplayResetsAReusedConnectionAfterAPost(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ReplayResets: true}, Capabilities: map[Capability]bool{UniqueNames: false}})
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	post := func(name string) error {
		body := `{"name":"` + name + `"}`
		if _, err := fmt.Fprintf(conn, "POST /servers HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	if err := post("first"); err != nil {
		t.Errorf("the first call of a connection: %v", err)
	}
	if err := post("second"); err == nil {
		t.Error("the second call of a connection got an answer")
	}
	if diff := cmp.Diff([]string{"create first by client", "create second by client"}, ops(h.cloud.Ledger())); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}

	// Go's client repeats a POST with a key on a new connection.
	client := &http.Client{Transport: &http.Transport{}}
	send := func(method, body string) (status int, err error) {
		r, err := http.NewRequest(method, h.url+"/servers", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err
	}
	if _, err := send("GET", ""); err != nil {
		t.Fatal(err)
	}
	before := h.cloud.CountCalls("POST", "/servers")
	if status, err := send("POST", `{"name":"third"}`); err != nil || status != http.StatusCreated {
		t.Errorf("got %d, %v, want the answer to the repetition", status, err)
	}
	if got := h.cloud.CountCalls("POST", "/servers") - before; got != 2 {
		t.Errorf("the cloud got %d calls, want the first and its repetition", got)
	}
}

func TestHugeListing(t *testing.T) {
	const made = 20_000
	for _, seeds := range []int{0, 2} {
		extended := start(t, Options{SeedServers: seeds, Quirks: Quirks{HugeListing: made}})
		got := decodeInto[page](t, extended.call(200, "GET", "/servers?limit=1", "").body)
		if want := made + min(seeds, 1); len(got.Servers) != want {
			t.Errorf("got %d servers, want %d", len(got.Servers), want)
		}
		core := start(t, Options{Profile: Core, SeedServers: seeds, Quirks: Quirks{HugeListing: made}})
		if got := decodeInto[[]Server](t, core.call(200, "GET", "/servers", "").body); len(got) != made+seeds {
			t.Errorf("core: got %d servers, want %d", len(got), made+seeds)
		}
	}
}

func TestGzipBombIsSmallOnTheWire(t *testing.T) {
	const size = 8 << 20
	for _, profile := range []Profile{Core, Extended} {
		t.Run(string(profile), func(t *testing.T) {
			h := start(t, Options{Profile: profile, Quirks: Quirks{GzipBomb: size}})
			// A header of the caller keeps the client from decompressing the body.
			got := h.call(200, "GET", "/servers", "", "Accept-Encoding", "gzip")
			if len(got.body) > size/500 || got.header.Get("Content-Encoding") != "gzip" {
				t.Errorf("got %d bytes with the encoding %q", len(got.body), got.header.Get("Content-Encoding"))
			}
			packed, err := gzip.NewReader(strings.NewReader(got.body))
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(packed)
			if err != nil || !json.Valid(data) || len(data) < size-10 || len(data) > size+10 {
				t.Errorf("got %d bytes after decompression, valid %t, %v, want %d", len(data), json.Valid(data), err, size)
			}
		})
	}
}
