package mockcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultOnCreate(t *testing.T) {
	post := Match{Method: "POST", Path: "/servers"}
	cases := map[string]struct {
		fault   Fault
		status  int
		body    string
		header  map[string]string
		created int
	}{
		"an error before the effect": {
			fault: Fault{Status: 500}, status: 500, body: `"code":"internal"`, created: 0},
		"an error after the create": {
			fault: Fault{Status: 500, Answer: After}, status: 500, body: `"code":"internal"`, created: 1},
		"an expired token": {
			fault: Fault{Status: 401}, status: 401, body: `"code":"unauthorized"`},
		"too many calls, with seconds": {
			fault: Fault{Status: 429, RetryAfter: "7"}, status: 429, body: `"code":"rateLimited"`,
			header: map[string]string{"Retry-After": "7"}},
		"unavailable, with a date": {
			fault: Fault{Status: 503, RetryAfter: "Fri, 02 Jan 2026 03:05:05 GMT"}, status: 503, body: `"code":"unavailable"`,
			header: map[string]string{"Retry-After": "Fri, 02 Jan 2026 03:05:05 GMT"}},
		"unavailable, with an invalid Retry-After": {
			fault: Fault{Status: 503, RetryAfter: "soon"}, status: 503, header: map[string]string{"Retry-After": "soon"}},
		"the page of a proxy": {
			fault: Fault{Status: 502, Body: "<html>", ContentType: "text/html"}, status: 502, body: "<html>",
			header: map[string]string{"Content-Type": "text/html"}},
		"a redirect to another host": {
			fault: Fault{Redirect: "http://other.example/servers"}, status: 307,
			header: map[string]string{"Location": "http://other.example/servers"}},
		"a redirect with another status": {
			fault: Fault{Redirect: "/x", Status: 302}, status: 302, header: map[string]string{"Location": "/x"}},
		"additional headers": {
			fault: Fault{Headers: map[string]string{"X-Odd": "1"}}, status: 201, body: `"name":"web"`,
			header: map[string]string{"X-Odd": "1"}, created: 1},
		"another body": {
			fault: Fault{Body: `{"id":"1","name":"other"}`}, status: 201, body: `{"id":"1","name":"other"}`, created: 1},
		"an empty body": {
			fault: Fault{EmptyBody: true}, status: 201, created: 1},
		"nulls": {
			fault: Fault{Corrupt: CorruptNulls}, status: 201, body: `"id":null`, created: 1},
		"wrong types": {
			fault: Fault{Corrupt: CorruptTypes}, status: 201, body: `"id":12345`, created: 1},
		"another content type": {
			fault: Fault{ContentType: "text/plain"}, status: 201, body: `"name":"web"`,
			header: map[string]string{"Content-Type": "text/plain"}, created: 1},
		"a truncated body with its own length": {
			fault: Fault{Truncate: &Truncation{Keep: 6, Clean: true}}, status: 201, body: `{"id":`, created: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{})
			tc.fault.Match = post
			h.fault(tc.fault)
			got := h.call(tc.status, "POST", "/servers", `{"name":"web"}`)
			if !strings.Contains(got.body, tc.body) || (tc.fault.EmptyBody && got.body != "") {
				t.Errorf("got the body %q, want %q in it", got.body, tc.body)
			}
			for name, want := range tc.header {
				if have := got.header.Get(name); have != want {
					t.Errorf("header %s: got %q, want %q", name, have, want)
				}
			}
			if got.header.Get("X-Request-Id") == "" {
				t.Error("the answer has no X-Request-Id")
			}
			if got := len(h.cloud.Ledger()); got != tc.created {
				t.Errorf("the ledger has %d creates, want %d", got, tc.created)
			}
		})
	}
}

func TestResetLosesTheAnswer(t *testing.T) {
	for answer, created := range map[string]int{Before: 0, After: 1} {
		t.Run(answer, func(t *testing.T) {
			h := start(t, Options{})
			h.fault(Fault{Reset: true, Answer: answer})
			got := h.send("POST", "/servers", `{"name":"web"}`)
			if !errors.Is(got.err, syscall.ECONNRESET) && !errors.Is(got.err, io.EOF) {
				t.Errorf("got %d and %v, want a reset", got.status, got.err)
			}
			if got := len(h.cloud.Servers()); got != created {
				t.Errorf("got %d servers, want %d", got, created)
			}
			if calls := h.cloud.Calls(); len(calls) != 1 || calls[0].Status != 0 {
				t.Errorf("got the calls %+v, want one without a status", calls)
			}
		})
	}
}

func TestTruncatedBodyClosesTheConnection(t *testing.T) {
	for name, keep := range map[string]int{"so many bytes": 10, "all but so many": -5, "nothing": 0} {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{})
			h.fault(Fault{Truncate: &Truncation{Keep: keep}})
			got := h.send("POST", "/servers", `{"name":"web"}`)
			if got.err == nil {
				t.Errorf("got %d %q, want a truncated body", got.status, got.body)
			}
			if got := len(h.cloud.Servers()); got != 1 {
				t.Errorf("got %d servers, want 1", got)
			}
		})
	}
}

func TestHugeAndDeepBodiesAreJSON(t *testing.T) {
	h := start(t, Options{})
	id := h.fault(Fault{HugeBytes: 3 << 20})
	got := h.call(200, "GET", "/servers", "")
	if len(got.body) < 3<<20 || !json.Valid([]byte(got.body)) {
		t.Errorf("got %d bytes, want valid JSON of more than 3 MiB", len(got.body))
	}
	if err := h.cloud.RemoveFault(id); err != nil {
		t.Fatal(err)
	}
	h.fault(Fault{Depth: 9000})
	if got := h.call(200, "GET", "/servers", ""); !json.Valid([]byte(got.body)) || strings.Count(got.body, "[") != 9000 {
		t.Errorf("got %d brackets, want 9000 in valid JSON", strings.Count(got.body, "["))
	}
}

func TestListFaults(t *testing.T) {
	cases := map[string]struct {
		list  ListFault
		query string
		want  string
	}{
		"without young servers":   {ListFault{HideYounger: Duration(3 * time.Second)}, "", "s0 s1 s2"},
		"empty":                   {ListFault{Empty: true}, "", ""},
		"everything dropped":      {ListFault{Drop: 1}, "", ""},
		"duplicates across pages": {ListFault{Duplicate: true}, "limit=2", "s0 s1 s1 s2 s2 s3 s3 s4"},
		"a duplicate on one page": {ListFault{Duplicate: true}, "", "s0 s1 s2 s3 s4 s0"},
		"skips across pages":      {ListFault{Skip: true}, "limit=2", "s0 s1 s3 s4"},
		"a skip on one page":      {ListFault{Skip: true}, "", "s0 s1 s3 s4"},
		"a repeated marker":       {ListFault{Loop: true}, "limit=2", "s0 s1 s0 s1 s0 s1 s0 s1 s0 s1 s0 s1 …"},
		"a loop on one page":      {ListFault{Loop: true}, "limit=5&name=s3", "s3 s3 s3 s3 s3 s3 …"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{})
			for i := range 5 {
				h.create(fmt.Sprintf("s%d", i))
				h.clock.Advance(time.Second)
			}
			h.fault(Fault{Match: Match{Method: "GET", Path: "/servers"}, List: &tc.list})
			if got := strings.Join(h.names(tc.query, 6), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDropHidesTheSameServersEachTime(t *testing.T) {
	h := start(t, Options{SeedServers: 100})
	hidden := h.cloud.Servers()[7]
	h.fault(Fault{List: &ListFault{Drop: 0.5, Seed: 3, HideIDs: []string{hidden.ID}}})
	first, second := h.names("limit=9", 100), h.names("limit=100", 100)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("two listings differ (-first +second):\n%s", diff)
	}
	if len(first) < 20 || len(first) > 80 || strings.Contains(strings.Join(first, " "), hidden.Name) {
		t.Errorf("got %d of 100 servers, want about half and not %s", len(first), hidden.Name)
	}
	h.call(200, "GET", "/servers/"+hidden.ID, "")
}

func TestListFaultsApplyToTheCoreProfile(t *testing.T) {
	h := start(t, Options{Profile: Core})
	a := h.create("a")
	h.clock.Advance(time.Second)
	b := h.create("b")
	id := h.fault(Fault{List: &ListFault{HideIDs: []string{a.ID}, Duplicate: true}})
	want := []Server{{ID: b.ID, Name: "b"}, {ID: b.ID, Name: "b"}}
	if diff := cmp.Diff(want, decodeInto[[]Server](t, h.call(200, "GET", "/servers", "").body)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if err := h.cloud.RemoveFault(id); err != nil {
		t.Fatal(err)
	}
	h.fault(Fault{List: &ListFault{Empty: true}})
	if got := h.call(200, "GET", "/servers", "").body; got != "[]\n" {
		t.Errorf("got %q, want an empty list", got)
	}
}

func TestFaultFiresForMatchingCalls(t *testing.T) {
	cases := map[string]struct {
		match Match
		want  string
	}{
		"always":                   {Match{}, "xxxxxx"},
		"by another method":        {Match{Method: "POST"}, "......"},
		"by method in lower case":  {Match{Method: "get"}, "xxxxxx"},
		"the third call":           {Match{Nth: 3}, "..x..."},
		"two from the third on":    {Match{Nth: 3, Count: 2}, "..xx.."},
		"the first two":            {Match{Count: 2}, "xx...."},
		"by route template":        {Match{Path: "/servers/{id}"}, "xxxxxx"},
		"by glob":                  {Match{Path: "/servers/*"}, "xxxxxx"},
		"a glob ends at a slash":   {Match{Path: "/*"}, "......"},
		"a glob over slashes":      {Match{Path: "/**"}, "xxxxxx"},
		"by regular expression":    {Match{PathRegexp: "^/servers/[0-9]$"}, "xxxxxx"},
		"by another path":          {Match{PathRegexp: "^/networks"}, "......"},
		"by query":                 {Match{Query: "marker=[45]"}, "....xx"},
		"by chance, the same each": {Match{Probability: 0.5, Seed: 1}, chance(0.5, 1, 6)},
		"by chance, once":          {Match{Probability: 1, Count: 1}, "x....."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{Faults: []Fault{{Match: tc.match, Status: 503}}})
			got := ""
			for i := range 6 {
				mark := "."
				if h.send("GET", fmt.Sprintf("/servers/%d?marker=%d", i, i), "").status == 503 {
					mark = "x"
				}
				got += mark
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// chance returns for which of n calls a fault of this probability and seed fires.
func chance(probability float64, seed uint64, n int) string {
	active, err := compile(Fault{Match: Match{Probability: probability, Seed: seed}})
	if err != nil {
		panic(err)
	}
	out := ""
	for range n {
		if active.fires() {
			out += "x"
		} else {
			out += "."
		}
	}
	return out
}

func TestInvalidFaultsAreRejected(t *testing.T) {
	for name, body := range map[string]string{
		"unknown time of the answer": `{"answer":"later"}`, "unknown status": `{"status":99}`,
		"negative number of a call": `{"match":{"nth":-1}}`, "probability above 1": `{"match":{"probability":1.5}}`,
		"unknown corruption": `{"corrupt":"all"}`, "share of servers above 1": `{"list":{"drop":2}}`,
		"invalid expression of a path": `{"match":{"pathRegexp":"("}}`, "invalid expression of a query": `{"match":{"query":"("}}`,
		"delay in words": `{"delay":"soon"}`, "delay without a unit": `{"delay":5}`, "negative delay": `{"delay":"-1s"}`,
		"redirect to no URL": `{"redirect":":"}`, "unknown field": `{"nonsense":1}`, "array": `[]`,
		"repeated part that is empty": `{"repeat":{"start":"["}}`, "negative number of parts": `{"repeat":{"part":"x","times":-1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{})
			if got := codeIn(t, h.call(400, "POST", "/faults", body)); got != CodeInvalid {
				t.Errorf("%s: got %s, want invalid", body, got)
			}
		})
	}
}

func TestFaultWithAnIDInUseIsRejected(t *testing.T) {
	h := start(t, Options{})
	h.call(201, "POST", "/faults", `{"id":"mine","status":500}`)
	h.call(400, "POST", "/faults", `{"id":"mine","status":501}`)
}
