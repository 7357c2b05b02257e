package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func jsonAnswer(body string) *answer {
	return &answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body: []byte(body)}
}

// The bodies are written as in the API's documentation, not encoded from our types.
func TestDecodePageReadsBothProfiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want page
	}{
		"core: a bare array": {
			"\n\t [{\"id\":\"i-1\",\"name\":\"web\"}]\n",
			page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{{ID: "i-1", Name: "web", State: cloud.StateActive}}}},
		},
		"core: no servers": {`[]`, page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{}}}},
		"extended: an object with a marker": {
			`{"servers":[{"id":"i-1","name":"web","labels":{"a":"b","gone":null},"state":"BUILDING","cpu":2,"memory":4,
			"template":"small","folder":"f","networkId":"n","powerState":"On","host":"h","cpuUtilization":37.5,"cpuUsageMHz":100,
			"memoryUsageMB":12,"createdAt":"2026-01-02T03:04:05+01:00","updatedAt":"2026-01-02T03:04:06.5Z","new":{"x":[1]}}],"next":"m"}`,
			page{extended: true, ServerPage: cloud.ServerPage{Next: "m", Servers: []cloud.Server{{
				ID: "i-1", Name: "web", Labels: map[string]string{"a": "b"}, State: cloud.StateBuilding, CPU: 2, MemoryGiB: 4,
				Template: "small", Folder: "f", NetworkID: "n", Host: "h", CPUUtilization: new(38),
				CPUUsageMHz: 100, MemoryUsageMB: 12,
				CreatedAt: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC), UpdatedAt: time.Date(2026, 1, 2, 3, 4, 6, 5e8, time.UTC),
			}}}},
		},
		"extended: the last page": {`{"servers":[],"next":null}`, page{extended: true, ServerPage: cloud.ServerPage{Servers: []cloud.Server{}}}},
		"values out of range count as absent": {
			`[{"id":"i-1","name":"web","state":"HIBERNATING","cpu":-1,"memory":1e308,"cpuUtilization":101,"cpuUsageMHz":-1,"memoryUsageMB":0.5,"createdAt":"yesterday"}]`,
			page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{{ID: "i-1", Name: "web", State: cloud.StateUnknown}}}},
		},
		"nulls count as absent": {
			`[{"id":"i-1","name":"web","state":null,"cpu":null,"labels":null,"cpuUtilization":null,"cpuUsageMHz":null,"createdAt":null,"host":null}]`,
			page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{{ID: "i-1", Name: "web", State: cloud.StateActive}}}},
		},
		"numbers beyond a float count as absent": {
			`[{"id":"i-1","name":"web","cpu":1e999,"cpuUtilization":-1e999}]`,
			page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{{ID: "i-1", Name: "web", State: cloud.StateActive}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodePage(listing(), jsonAnswer(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(page{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodePageRefusesUnusableListings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, want string }{
		"nothing":                        {``, "the answer is not valid JSON"},
		"null":                           {`null`, "the answer holds no list of servers"},
		"an object without a list":       {`{"items":[]}`, "the answer holds no list of servers"},
		"a list that is null":            {`{"servers":null}`, "the answer holds no list of servers"},
		"a text":                         {`"servers"`, "a value of the wrong type in the answer"},
		"cut short":                      {`[{"id":"i-1","name":"web"}`, "the answer is not valid JSON"},
		"data after the value":           {`[] []`, "the answer is not valid JSON"},
		"a server without an id":         {`[{"id":"a","name":"b"},{"name":"web"}]`, "server 2 of the page: it has no id"},
		"a server without a name":        {`[{"id":"i-1"}]`, "server 1 of the page: it has no name"},
		"a server that is null":          {`[null]`, "server 1 of the page: it has no id"},
		"an id that is a path":           {`[{"id":"..","name":"web"}]`, "server 1 of the page: its id is a path"},
		"an id with a line break":        {`[{"id":"a\nb","name":"web"}]`, "server 1 of the page: its id holds characters that cannot be printed"},
		"an id that is not UTF-8":        {"[{\"id\":\"a\xff\",\"name\":\"web\"}]", "server 1 of the page: its id holds characters that cannot be printed"},
		"an endless id":                  {`[{"id":"` + strings.Repeat("é", 129) + `","name":"web"}]`, "server 1 of the page: its id is longer than 128 characters"},
		"an id that is a number":         {`[{"id":7,"name":"web"}]`, `field "id" of the answer has the wrong type`},
		"a utilization that is a string": {`[{"id":"a","name":"b","cpuUtilization":"50"}]`, `field "cpuUtilization" of the answer has the wrong type`},
		"a size that is an object":       {`[{"id":"a","name":"b","cpu":{}}]`, `field "cpu" of the answer has the wrong type`},
		"a state that is a number":       {`[{"id":"a","name":"b","state":1}]`, `field "state" of the answer has the wrong type`},
		"labels that are a list":         {`[{"id":"a","name":"b","labels":["x"]}]`, `field "labels" of the answer has the wrong type`},
		"a marker that is a list":        {`{"servers":[],"next":[]}`, `field "next" of the answer has the wrong type`},
		"a deep nesting":                 {strings.Repeat("[", 1<<20), "the answer is not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := decodePage(listing(), jsonAnswer(test.body))
			if err == nil {
				t.Fatal("no error")
			}
			want := &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: test.want}
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeReadsOnlyJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		media string
		read  bool
	}{
		"JSON: read":                                 {"application/json", true},
		"a type that is based on JSON: read":         {"application/vnd.cloud.v1+json", true},
		"JSON in capitals, with its charset: read":   {"APPLICATION/JSON; charset=utf-8", true},
		"HTML: not read":                             {"text/html", false},
		"text: not read":                             {"text/plain", false},
		"no media type: not read":                    {"", false},
		"a media type that is not valid: not read":   {"application/json;;;", false},
		"a media type that begins as JSON: not read": {"application/jsonp", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := jsonAnswer(`[]`)
			got.header.Set("Content-Type", test.media)
			if _, err := decodePage(listing(), got); (err == nil) != test.read {
				t.Errorf("%q: %v, want it read: %t", test.media, err, test.read)
			}
		})
	}
}

func TestDecodeStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		body string
		want int
	}{
		"the least":           {`{"cpuUtilization":0}`, 0},
		"the most":            {`{"cpuUtilization":100}`, 100},
		"a fraction: rounded": {`{"cpuUtilization":49.6}`, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decodeStatus(listing(), jsonAnswer(test.body))
			if err != nil || got.CPUUtilization != test.want {
				t.Errorf("%s: %d, %v; want %d", test.body, got.CPUUtilization, err, test.want)
			}
		})
	}
}

func TestDecodeStatusRejectsOtherValues(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no utilization": `{}`, "null": `{"cpuUtilization":null}`, "less than 0": `{"cpuUtilization":-1}`,
		"more than 100": `{"cpuUtilization":100.1}`, "text": `{"cpuUtilization":"5"}`, "an array": `[]`, "a number alone": `7`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := decodeStatus(listing(), jsonAnswer(body)); err == nil || err.Kind != cloud.Unreadable {
				t.Errorf("%s: %v, want Unreadable", body, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `[{"id":"a","name":"b"}]`, `{"servers":[{"id":"a","name":"b","cpuUtilization":1e400,"state":"X"}],"next":"m"}`,
		`[{"id":"\u0000","name":"b"}]`, `{"servers":[null]}`, `[[[[`, `{"id":"a","name":"b","labels":{"x":null},"createdAt":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got, err := decodePage(listing(), jsonAnswer(string(body))); err == nil {
			for _, s := range got.Servers {
				wantValid(t, s)
			}
		} else if !json.Valid([]byte(`"`+strings.ReplaceAll(err.Detail, `"`, "")+`"`)) || len(err.Detail) > 300 {
			t.Errorf("text %q is not valid or too long", err.Detail)
		}
		if s, err := decodeServer(listing(), jsonAnswer(string(body))); err == nil {
			wantValid(t, s)
		}
		if s, err := decodeStatus(listing(), jsonAnswer(string(body))); err == nil && (s.CPUUtilization < 0 || s.CPUUtilization > 100) {
			t.Errorf("status %+v", s)
		}
	})
}

func wantValid(t *testing.T, s cloud.Server) {
	t.Helper()
	bad := s.ID == "" || s.Name == "" || len(s.ID) > 4*maxID || s.CPU < 0 || s.MemoryGiB < 0 || s.State == "" ||
		s.CPUUtilization != nil && (*s.CPUUtilization < 0 || *s.CPUUtilization > 100)
	if bad {
		t.Errorf("invalid server %+v", s)
	}
}
