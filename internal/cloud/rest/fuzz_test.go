package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// The targets of this file cover every parser of what a cloud sends in a body.
// Besides f.Add, testdata/fuzz has the seeds. Retry-After is fuzzed in package
// transport.

// wantReadable checks an error's text, which becomes the message of a condition.
func wantReadable(t *testing.T, err *cloud.Error) {
	t.Helper()
	if err.Kind != cloud.Unreadable || err.Detail == "" || len(err.Detail) > 300 || !utf8.ValidString(err.Detail) || strings.ContainsAny(err.Detail, "\n\r\x00") {
		t.Errorf("kind %s, text %q; want Unreadable and one short line", err.Kind, err.Detail)
	}
}

// wantValid checks that s fits into the status of a VM.
func wantValid(t *testing.T, s cloud.Server) {
	t.Helper()
	bad := checkID(s.ID) != nil || s.Name == "" || utf8.RuneCountInString(s.Name) > maxName ||
		utf8.RuneCountInString(s.Host) > maxName || utf8.RuneCountInString(s.Image.Name) > maxName || utf8.RuneCountInString(s.Folder) > maxName ||
		s.NetworkID != "" && checkID(s.NetworkID) != nil ||
		min(s.CPU, s.MemoryMiB, s.CPUUsageMHz, s.MemoryUsageMB) < 0 || len(s.Labels) > 2*maxLabels ||
		s.State != cloud.StateUnknown && !slices.Contains(states, s.State) ||
		s.CPUUtilization != nil && (*s.CPUUtilization < 0 || *s.CPUUtilization > 100)
	if bad {
		t.Errorf("invalid server %+v", s)
	}
}

// wantSmall checks that what is kept of a body is not much larger than the body: a
// byte that is not UTF-8 becomes three.
func wantSmall(t *testing.T, body []byte, kept int) {
	t.Helper()
	if kept > 3*len(body) {
		t.Errorf("%d bytes kept of %d", kept, len(body))
	}
}

func textsOf(s cloud.Server) int {
	n := len(s.ID) + len(s.Name) + len(s.Image.Name) + len(s.Folder) + len(s.NetworkID) + len(s.Host)
	for key, value := range s.Labels {
		n += len(key) + len(value)
	}
	return n
}

// wantBoundedTexts checks what Ignored would return.
func wantBoundedTexts(t *testing.T, into *ignored) {
	t.Helper()
	texts := into.take()
	if len(texts) > maxIgnored || !slices.IsSorted(texts) || slices.ContainsFunc(texts, func(s string) bool { return len(s) > 80 }) {
		t.Errorf("ignored %q", texts)
	}
}

func FuzzServerPage(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `[{"id":"a","name":"b"}]`, `{"servers":[{"id":"a","name":"b","cpuUtilization":1e400,"state":"X"}],"next":"m"}`,
		`[{"id":"\u0000","name":"b"}]`, `{"servers":[null]}`, `[[[[`, `{"next":7,"servers":[{"id":7,"name":"\ud800"}],"x":[{}]}`, "\uFEFF[]", `[] []`,
		`[{"id":"a","name":"b","labels":{"x":null,"y":1,"samplecontroller.k8s.io/uid":"u"},"createdAt":1700000000,"host":{},"memory":"4GB"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := pageOfType(string(body), "application/json", &into)
		wantBoundedTexts(t, &into)
		if err != nil {
			wantReadable(t, err)
			return
		}
		kept := len(got.Next)
		for _, s := range got.Servers {
			wantValid(t, s)
			kept += textsOf(s)
		}
		wantSmall(t, body, kept)
		if len(got.Servers) > maxElements || len(got.Next) > maxMarker {
			t.Errorf("%d servers, a marker of %d bytes", len(got.Servers), len(got.Next))
		}
	})
}

// A listing of one server and that server alone are read alike.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"id":"a","name":"b"}`, `{"id":12345678901234567890,"name":"b","networkId":-1}`, `{"ID":"a","id":"b","name":"c","Name":"d"}`,
		`{"id":"a","name":"b","labels":["web"],"host":{},"cpu":1.5,"cpuUtilization":"12%","state":"active"}`, `{"id":"..","name":"b"}`, `{"\u0069d":"a","name":"\"\\\u0041"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := decodeServer(listing(), jsonAnswer(string(body)), &into)
		wantBoundedTexts(t, &into)
		if err != nil {
			wantReadable(t, err)
			return
		}
		wantValid(t, got)
		wantSmall(t, body, textsOf(got))
		if len(body) > maxElement/2 || strings.HasPrefix(string(body), string(byteOrderMark)) {
			return
		}
		page, err := pageOf("[" + string(body) + "]")
		if err != nil || len(page.Servers) != 1 || page.Servers[0].ID != got.ID || page.Servers[0].Name != got.Name {
			t.Errorf("alone %+v, in a page %+v, %v", got, page.Servers, err)
		}
	})
}

func FuzzStatus(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"cpuUtilization":49.6}`, `{"cpuUtilization":"12%"}`, `{"cpuUtilization":1e400}`, `{"cpuUtilization":-0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeStatus(listing(), jsonAnswer(string(body)), nil)
		switch {
		case err != nil:
			wantReadable(t, err)
		case got.CPUUtilization == nil || *got.CPUUtilization < 0 || *got.CPUUtilization > 100:
			t.Errorf("status %+v", got)
		}
	})
}

// However its text is written, a state is one that the operator knows.
func FuzzState(f *testing.F) {
	for _, seed := range []string{"", "ACTIVE", "active", " Building\t", "hibernating", "\u017fTOPPED", "\xff", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := stateOf([]byte(text))
		if got != cloud.StateUnknown && !slices.Contains(states, got) {
			t.Errorf("%q: state %q", text, got)
		}
		if upper := stateOf([]byte(strings.ToUpper(text))); got != cloud.StateUnknown && upper != got {
			t.Errorf("%q: state %q, in capitals %q", text, got, upper)
		}
	})
}

func FuzzProblem(f *testing.F) {
	for _, seed := range []string{
		``, `{"code":"notFound","title":"t","detail":"d"}`, `{"code":["notFound"],"detail":7}`, `{"Code":"notFound"}`, `{"code":"notFound","code":"x"}`,
		`{"detail":"\u001b[31m of 2026-01-02T03:04:05.678Z\u202e"}`, `[]`, "\uFEFF{}", `{"code":"<script>"}`,
	} {
		f.Add(404, "application/problem+json", []byte(seed))
		f.Add(409, "text/plain", []byte(seed))
		f.Add(404, "text/html", []byte(seed))
	}
	c, err := New(Config{Name: "fuzz", Endpoint: "https://cloud.test", Credentials: Credentials{Token: "of-the-fuzz-test"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		if status < 300 || status > 599 {
			status = http.StatusNotFound
		}
		got := &answer{status: status, header: http.Header{"Content-Type": {media}}, body: body}
		problem := got.problem()
		if problem.Code != "" && (!wordPattern.MatchString(problem.Code) || got.html()) {
			t.Errorf("code %q", problem.Code)
		}
		for _, about := range []subject{aboutCloud, aboutName, aboutCreate, aboutServer, aboutNetwork} {
			call := &call{about: about, method: http.MethodDelete, op: "fuzz", id: "of-the-request"}
			err := c.exchange.classifier.classify(call, got, "")
			switch {
			case err == nil || err.Kind == "":
				t.Errorf("status %d: %v, want a kind", status, err)
			case err.Kind == cloud.NotFound && problem.Code != "notFound":
				t.Errorf("NotFound from the code %q", problem.Code)
			case utf8.RuneCountInString(err.Detail) > 2*maxDetail || !utf8.ValidString(err.Detail) || strings.ContainsAny(err.Detail, "\n\r\x00\x1b"):
				t.Errorf("text %q", err.Detail)
			}
		}
	})
}

func FuzzCapabilities(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"capabilities":[]}`, `{"capabilities":["labels","teleport",7,null,"labels"]}`, `{"Capabilities":["labels"]}`, `{"capabilities":{"labels":true}}`,
		`{"capabilities":["exclusiveNames","sizing"]}`, `["labels"]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := decodeCapabilities(listing(), jsonAnswer(string(body)), &into)
		wantBoundedTexts(t, &into)
		if err != nil {
			wantReadable(t, err)
			return
		}
		if slices.ContainsFunc(got, func(name cloud.Capability) bool { return !listed.Has(name) }) || len(got) > len(listed) {
			t.Errorf("capabilities %v", got)
		}
	})
}

func FuzzNetworks(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{"networks":[]}`, `{"networks":[{"id":"n","name":"n","cidr":"10.0.0.0/24","gateway":"10.0.0.1","createdAt":1}]}`, `{"networks":[null]}`,
		`{"networks":null,"networks":[{"id":7,"name":"n","cidr":"c","gateway":"g"}],"next":"m"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := decodeNetworks(listing(), jsonAnswer(""), newStream(strings.NewReader(string(body))), &into)
		wantBoundedTexts(t, &into)
		if err != nil {
			wantReadable(t, err)
			return
		}
		kept := 0
		for _, n := range got {
			if checkID(n.ID) != nil || n.Name == "" || utf8.RuneCountInString(n.Name) > maxName ||
				utf8.RuneCountInString(n.CIDR) > maxRange || utf8.RuneCountInString(n.Gateway) > maxRange {
				t.Errorf("invalid network %+v", n)
			}
			kept += len(n.ID) + len(n.Name) + len(n.CIDR) + len(n.Gateway)
		}
		wantSmall(t, body, kept)
	})
}

func FuzzHosts(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `[{"name":"h","gpu":true,"availableHours":3}]`, `[{"name":"h","gpu":false,"availableHours":"many"},{"name":"h","gpu":true}]`, `[{"name":7,"gpu":"yes"}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := decodeHosts(listing(), jsonAnswer(""), newStream(strings.NewReader(string(body))), &into)
		wantBoundedTexts(t, &into)
		if err != nil {
			wantReadable(t, err)
			return
		}
		names, kept := map[string]bool{}, 0
		for _, h := range got {
			if names[h.Name] || !validHostName(h.Name) || h.AvailableHours < 0 {
				t.Errorf("invalid host %+v", h)
			}
			names[h.Name] = true
			kept += len(h.Name)
		}
		wantSmall(t, body, kept)
	})
}

func FuzzSession(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"token":"t","expiresAt":"2026-01-02T03:04:05Z"}`, `{"token":"a b","expiresAt":7}`, `{"token":"\u0000"}`, `{"Token":"t"}`, `{"token":"t","token":7}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var into ignored
		got, err := decodeSession(listing(), jsonAnswer(string(body)), &into)
		wantBoundedTexts(t, &into)
		switch {
		case err != nil:
			wantReadable(t, err)
		case got.token == "" || !sendable(got.token):
			t.Errorf("token %q", got.token)
		}
	})
}

// The marker that a cloud gave comes back to it as it was.
func FuzzPagination(f *testing.F) {
	for _, seed := range []string{"", "m", "a+b/ c&limit=1", "é", "\x00", `"`, "%2F", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, marker string) {
		body := string(encode(map[string]any{"servers": []string{}, "next": marker}))
		got, err := pageOf(body)
		if err != nil {
			if len(marker) < maxMarker/6 {
				t.Errorf("marker %q: %v", marker, err)
			}
			return
		}
		query, err := listQuery("fuzz", cloud.NewCapabilities(cloud.Sizing), cloud.ListServers{Marker: got.Next})
		if err != nil {
			t.Fatalf("marker %q: %v", marker, err)
		}
		sent, parsing := url.ParseQuery(query.Encode())
		if parsing != nil || sent.Get("marker") != got.Next || len(sent) > 1 {
			t.Errorf("marker %q is sent as %v, %v", got.Next, sent, parsing)
		}
	})
}

// The walker and encoding/json agree about the fields of an object.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[{"c":"]}"}],"d":"\"}"}`, ` { "a" : null , "a" : -1.5e+3 } `, `{"\u0061":{}}`, `[]`, `"a"`, `7`, `{"":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(body, &want) != nil || want == nil {
			if json.Valid(body) && fields(body, func(_, _ []byte) {}) {
				t.Errorf("%q is no object", body)
			}
			return
		}
		got := map[string]json.RawMessage{}
		fields(body, func(name, value []byte) { got[string(name)] = value })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-encoding/json +fields):\n%s", body, diff)
		}
	})
}
