package mockcloud

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRepeatedBody(t *testing.T) {
	servers := Repetition{
		Start: `{"servers":[{"id":"first","name":"a"}`, Part: `,{"id":"i-{call}-{n}","name":"web-{n}"}`, Times: 2, End: `],"next":"{call}"}`,
	}
	for name, tc := range map[string]struct {
		fault  Fault
		status int
		bodies []string
	}{
		"a listing: parts and bodies are numbered": {
			fault: Fault{Repeat: &servers}, status: 200,
			bodies: []string{
				`{"servers":[{"id":"first","name":"a"},{"id":"i-1-1","name":"web-1"},{"id":"i-1-2","name":"web-2"}],"next":"1"}`,
				`{"servers":[{"id":"first","name":"a"},{"id":"i-2-1","name":"web-1"},{"id":"i-2-2","name":"web-2"}],"next":"2"}`,
			},
		},
		"an error: its body is replaced": {
			fault: Fault{Status: 500, Repeat: &Repetition{Start: `{"detail":"`, Part: "x", Times: 3, End: `"}`}}, status: 500,
			bodies: []string{`{"detail":"xxx"}`},
		},
		"more than one buffer: nothing is lost": {
			fault: Fault{Repeat: &Repetition{Part: "0123456789", Times: 20_000}}, status: 200,
			bodies: []string{strings.Repeat("0123456789", 20_000)},
		},
	} {
		for _, packed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gzip %t", name, packed), func(t *testing.T) {
				h := start(t, Options{})
				tc.fault.Gzip = packed
				h.fault(tc.fault)
				for _, want := range tc.bodies {
					// A header of the caller keeps the client from decompressing the body.
					got := h.call(tc.status, "GET", "/servers", "", "Accept-Encoding", "identity")
					if body := unpacked(t, got); body != want {
						t.Errorf("got the body %.200s, want %.200s", body, want)
					}
				}
			})
		}
	}
}

// unpacked returns the body of an answer, decompressed if it says so.
func unpacked(t *testing.T, got reply) string {
	t.Helper()
	if got.header.Get("Content-Encoding") != "gzip" {
		return got.body
	}
	packed, err := gzip.NewReader(strings.NewReader(got.body))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestGzipCompressesAnyBody(t *testing.T) {
	h := start(t, Options{})
	h.fault(Fault{Gzip: true, Match: Match{Method: "POST"}})
	h.fault(Fault{Gzip: true, HugeBytes: 8 << 20, Match: Match{Path: "/capabilities"}})
	created := h.call(201, "POST", "/servers", `{"name":"web"}`, "Accept-Encoding", "identity")
	if s := decodeInto[Server](t, unpacked(t, created)); created.header.Get("Content-Encoding") != "gzip" || s.Name != "web" {
		t.Errorf("the create answers %+v with the encoding %q, want web with gzip", s, created.header.Get("Content-Encoding"))
	}
	huge := h.call(200, "GET", "/capabilities", "", "Accept-Encoding", "identity")
	if body := unpacked(t, huge); len(huge.body) > 1<<20 || len(body) < 8<<20 || !json.Valid([]byte(body)) {
		t.Errorf("%d bytes unpack to %d, want less than 1 MiB for valid JSON of 8 MiB", len(huge.body), len(body))
	}
}

func TestEndlessBodyEndsWithItsClient(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprintf("gzip %t", packed), func(t *testing.T) {
			h := start(t, Options{})
			h.fault(Fault{Gzip: packed, Repeat: &Repetition{Part: "{n},"}})
			answer, err := http.Get(h.url + "/servers")
			if err != nil {
				t.Fatal(err)
			}
			const want = "1,2,3,4,5,"
			got, err := bufio.NewReader(answer.Body).Peek(len(want))
			if err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			// The cleanup of the server waits for the end of the call.
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
