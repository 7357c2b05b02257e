package rest

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func jsonAnswer(body string) *answer {
	return &answer{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body: []byte(body)}
}

// pageOf decodes a page of servers as the client does.
func pageOf(body string) (page, *cloud.Error) { return pageOfType(body, "application/json", nil) }

func pageOfType(body, media string, into *ignored, has ...cloud.Capability) (page, *cloud.Error) {
	got := &answer{status: http.StatusOK, header: http.Header{"Content-Type": {media}}}
	return decodePage(listing(), got, newStream(strings.NewReader(body)), into, cloud.NewCapabilities(has...))
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
				ID: "i-1", Name: "web", Labels: map[string]string{"a": "b"}, State: cloud.StateBuilding, CPU: 2, MemoryMiB: 4096,
				Image: cloud.Image{Name: "small"}, Folder: "f", NetworkID: "n", Host: "h", CPUUtilization: new(38),
				CPUUsageMHz: 100, MemoryUsageMB: 12,
				CreatedAt: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC), UpdatedAt: time.Date(2026, 1, 2, 3, 4, 6, 5e8, time.UTC),
			}}}},
		},
		"extended: the last page": {`{"servers":[],"next":null}`, page{extended: true, ServerPage: cloud.ServerPage{Servers: []cloud.Server{}}}},
		"values out of range count as absent": {
			`[{"id":"i-1","name":"web","state":"HIBERNATING","cpu":-1,"memory":1e308,"cpuUtilization":101,"cpuUsageMHz":-1,"memoryUsageMB":0.5,"createdAt":"yesterday"}]`,
			page{ServerPage: cloud.ServerPage{Servers: []cloud.Server{{ID: "i-1", Name: "web", State: cloud.StateUnknown, Fault: "HIBERNATING"}}}},
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
			got, err := pageOf(test.body)
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
		"nothing":                      {``, "the answer is empty"},
		"null":                         {`null`, "the answer holds no list of servers"},
		"an object without a list":     {`{"items":[]}`, "the answer holds no list of servers"},
		"a list that is null":          {`{"servers":null}`, "the answer holds no list of servers"},
		"a text":                       {`"servers"`, "a value of the wrong type in the answer"},
		"cut short":                    {`[{"id":"i-1","name":"web"}`, "the answer is not valid JSON: it ends too early"},
		"data after the value":         {`[] []`, "the answer is not valid JSON"},
		"a server without an id":       {`[{"id":"a","name":"b"},{"name":"web"}]`, "server 2 of the page: it has no id"},
		"a server without a name":      {`[{"id":"i-1"}]`, `server 1 of the page: it has no name, and its id is "i-1": give it a name in the cloud, since it may be that of an object of this operator`},
		"a server that is null":        {`[null]`, "server 1 of the page: it has no id"},
		"a server that is a text":      {`["a"]`, "server 1 of the page: it is not an object"},
		"names in capitals alone":      {`[{"ID":"a","Name":"b"}]`, "server 1 of the page: it has no id"},
		"two lists":                    {`{"servers":[],"servers":[]}`, "the answer holds two lists of servers"},
		"a list that is an object":     {`{"servers":{}}`, `field "servers" of the answer has the wrong type`},
		"an endless marker":            {`{"servers":[],"next":"` + strings.Repeat("m", 5000) + `"}`, "the marker of the next page is longer than 4096 bytes"},
		"an object that is cut short":  {`{"servers":[]`, "the answer is not valid JSON: it ends too early"},
		"an endless server":            {`[{"id":"a","name":"b","x":"` + strings.Repeat("x", 300<<10) + `"}]`, "a value in the answer is larger than 256 KiB"},
		"a deep field beside the list": {`{"x":` + strings.Repeat("[", 1<<20), "the answer is not valid JSON"},
		"an id that is a path":         {`[{"id":"..","name":"web"}]`, "server 1 of the page: its id is a path"},
		"an id with a line break":      {`[{"id":"a\nb","name":"web"}]`, "server 1 of the page: its id holds characters that cannot be printed"},
		"an id that is not UTF-8":      {"[{\"id\":\"a\xff\",\"name\":\"web\"}]", "server 1 of the page: its id holds characters that cannot be printed"},
		"a long marker of no UTF-8":    {`{"servers":[],"next":"` + strings.Repeat("\xd2", 2000) + `"}`, "the marker of the next page is longer than 4096 bytes"},
		"an endless id":                {`[{"id":"` + strings.Repeat("é", 129) + `","name":"web"}]`, "server 1 of the page: its id is longer than 128 characters"},
		"an id that is a fraction":     {`[{"id":7.5,"name":"web"}]`, "server 1 of the page: its id is neither a string nor an integer"},
		"an id with an exponent":       {`[{"id":1e3,"name":"web"}]`, "server 1 of the page: its id is neither a string nor an integer"},
		"an id that is an object":      {`[{"id":{},"name":"web"}]`, "server 1 of the page: its id is neither a string nor an integer"},
		"a name that is a number":      {`[{"id":"a","name":7}]`, `server 1 of the page: its name is not a string, and its id is "a": give it a name in the cloud, since it may be that of an object of this operator`},
		"a marker that is a list":      {`{"servers":[],"next":[]}`, `field "next" of the answer has the wrong type`},
		"a deep nesting":               {strings.Repeat("[", 1<<20), `the answer is not valid JSON: at byte 10001, near "` + strings.Repeat("[", 39) + `…"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pageOf(test.body)
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

func TestMediaTypeDecidesOnlyWhatIsHTML(t *testing.T) {
	t.Parallel()
	const array, object, text = `[]`, ` {"servers":[]}`, `servers`
	for name, test := range map[string]struct {
		media, body string
		read        bool
	}{
		"JSON: read":                                         {"application/json", array, true},
		"a type that is based on JSON: read":                 {"application/vnd.cloud.v1+json", array, true},
		"JSON in capitals, with its charset: read":           {"APPLICATION/JSON; charset=utf-8", array, true},
		"text/json: read":                                    {"text/json", array, true},
		"HTML: not read":                                     {"text/html", array, false},
		"XHTML: not read":                                    {"application/xhtml+xml", array, false},
		"text with a list: read":                             {"text/plain; charset=utf-8", array, true},
		"text with an object: read":                          {"text/plain", object, true},
		"text that is not JSON: not read":                    {"text/plain", text, false},
		"octets with a list: read":                           {"application/octet-stream", array, true},
		"octets that are not JSON: not read":                 {"application/octet-stream", text, false},
		"no media type, a list: read":                        {"", array, true},
		"no media type, not JSON: not read":                  {"", text, false},
		"a media type that is not valid, a list: read":       {"application/json;;;", array, true},
		"a media type that begins as JSON, a call: not read": {"application/jsonp", "f([])", false},
		"a byte order mark: read":                            {"application/json", "\uFEFF[]", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := pageOfType(test.body, test.media, nil); (err == nil) != test.read {
				t.Errorf("%q: the page: %v, want it read: %t", test.media, err, test.read)
			}
			got := jsonAnswer(test.body)
			got.header.Set("Content-Type", test.media)
			if _, err := document(listing(), got); (err == nil) != test.read {
				t.Errorf("%q: a document: %v, want it read: %t", test.media, err, test.read)
			}
		})
	}
}

func TestAnswerThatIsNotJSONNamesItsType(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ media, body, want string }{
		"text":           {"text/plain", "default backend - 404", `the answer is not JSON but text/plain, beginning with "default backend - 404"`},
		"a number":       {"text/plain", "404 page not found", `the answer is not JSON but text/plain, beginning with "404 page not found"`},
		"no type":        {"", "hello", `the answer is not JSON but without a content type, beginning with "hello"`},
		"nothing at all": {"", "", "the answer is not JSON but empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pageOfType(test.body, test.media, nil)
			wantText(t, asError(err), "list servers: "+test.want)
			got := jsonAnswer(test.body)
			got.header.Set("Content-Type", test.media)
			_, err = document(listing(), got)
			wantText(t, asError(err), "list servers: "+test.want)
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
			got, err := decodeStatus(listing(), jsonAnswer(test.body), nil)
			if err != nil || *got.CPUUtilization != test.want {
				t.Errorf("%s: %+v, %v; want %d", test.body, got, err, test.want)
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
			if _, err := decodeStatus(listing(), jsonAnswer(body), nil); err == nil || err.Kind != cloud.Unreadable {
				t.Errorf("%s: %v, want Unreadable", body, err)
			}
		})
	}
}

func TestDecodePageGivesEachServerItsOwnLabels(t *testing.T) {
	t.Parallel()
	got, err := pageOf(`[{"id":"1","name":"a","labels":{"k":"1","only":"a"}},{"id":"2","name":"b","labels":{"k":"2"}},{"id":"3","name":"c"}]`)
	if err != nil {
		t.Fatal(err)
	}
	var labels []map[string]string
	for _, s := range got.Servers {
		labels = append(labels, s.Labels)
	}
	if diff := cmp.Diff([]map[string]string{{"k": "1", "only": "a"}, {"k": "2"}, nil}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// nameless is a server without a name of which a cloud shows all, but for fields that replace those of the same name.
func nameless(id string, instead ...string) string {
	fields := []string{fmt.Sprintf(`"id":%q`, id), `"name":null`, `"state":"ACTIVE"`, `"labels":{}`}
	for _, field := range instead {
		key, _, _ := strings.Cut(field, ":")
		fields = slices.DeleteFunc(fields, func(f string) bool { return strings.HasPrefix(f, key+":") })
		fields = append(fields, field)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// TestServerWithoutANameIsListedIfItIsSomebodyElses lists it beside one of the operator, as on clouds with and without labels.
func TestServerWithoutANameIsListedIfItIsSomebodyElses(t *testing.T) {
	t.Parallel()
	const own, listed, refused = `{"id":"i-1","name":"web","labels":{"samplecontroller.k8s.io/uid":"u"}}`, true, false
	for name, test := range map[string]struct {
		server string
		labels bool
		want   bool
	}{
		"a name that is null":     {nameless("i-2", `"name":null`), true, listed},
		"an empty name":           {nameless("i-2", `"name":""`), true, listed},
		"labels of others":        {nameless("i-2", `"labels":{"team":"a"}`), true, listed},
		"stopped":                 {nameless("i-2", `"state":"STOPPED"`), true, listed},
		"suspended":               {nameless("i-2", `"state":"SUSPENDED"`), true, listed},
		"a cloud without labels":  {nameless("i-2"), false, refused},
		"only an id":              {`{"id":"i-2"}`, true, refused},
		"no name":                 {`{"id":"i-2","state":"ACTIVE","labels":{}}`, true, refused},
		"no state":                {`{"id":"i-2","name":null,"labels":{}}`, true, refused},
		"a state that is null":    {nameless("i-2", `"state":null`), true, refused},
		"no labels":               {`{"id":"i-2","name":null,"state":"ACTIVE"}`, true, refused},
		"labels that are null":    {nameless("i-2", `"labels":null`), true, refused},
		"a name that is a number": {nameless("i-2", `"name":7`), true, refused},
		"a label of the operator": {nameless("i-2", `"labels":{"samplecontroller.k8s.io/uid":"u"}`), true, refused},
		"a label of the operator that was altered": {nameless("i-2", `"labels":{"SampleController-k8s-io-uid":"u"}`), true, refused},
		"a label of the operator that is null":     {nameless("i-2", `"labels":{"samplecontroller.k8s.io/uid":null}`), true, refused},
		"labels that cannot be read":               {nameless("i-2", `"labels":["samplecontroller.k8s.io/uid=u"]`), true, refused},
		"a label that is not a string":             {nameless("i-2", `"labels":{"samplecontroller.k8s.io/uid":7}`), true, refused},
		"being built":                              {nameless("i-2", `"state":"BUILDING"`), true, refused},
		"being deleted":                            {nameless("i-2", `"state":"DELETING"`), true, refused},
		"in error":                                 {nameless("i-2", `"state":"ERROR"`), true, refused},
		"in an unknown state":                      {nameless("i-2", `"state":"CREATING"`), true, refused},
		"no id":                                    {`{"name":null,"state":"ACTIVE","labels":{}}`, true, refused},
		"an empty id":                              {nameless(""), true, refused},
		"no object":                                {`"i-2"`, true, refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var has []cloud.Capability
			if test.labels {
				has = append(has, cloud.Labels)
			}
			into := &ignored{}
			got, err := pageOfType(`{"servers":[`+test.server+`,`+own+`]}`, "application/json", into, has...)
			if (err == nil) != test.want {
				t.Fatalf("error %v, want the listing: %t", err, test.want)
			}
			if err != nil {
				return
			}
			var shown []string
			for _, s := range got.Servers {
				shown = append(shown, s.ID+" "+s.Name)
			}
			if diff := cmp.Diff([]string{"i-2 ", "i-1 web"}, shown); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"name: empty, of a server without labels of the operator"}, into.take()); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachTextOfAServerIsCounted(t *testing.T) {
	// State and PowerState are one of a few words; the others are not part of this API.
	uncounted := []string{"State", "PowerState", "Flavor", "Image.ID"}
	for field := range reflect.TypeFor[cloud.Server]().Fields() {
		at := [][]int{field.Index}
		names := []string{field.Name}
		if field.Name == "Image" {
			at, names = nil, nil
			for part := range field.Type.Fields() {
				at, names = append(at, slices.Concat(field.Index, part.Index)), append(names, "Image."+part.Name)
			}
		}
		for i, name := range names {
			var server cloud.Server
			switch value := reflect.ValueOf(&server).Elem().FieldByIndex(at[i]); {
			case name == "Labels":
				server.Labels = map[string]string{"key": "text"}
			case value.Kind() == reflect.String && !slices.Contains(uncounted, name):
				value.SetString("text")
			default:
				continue
			}
			if sizeOf(&server) <= sizeOf(&cloud.Server{}) {
				t.Errorf("sizeOf does not count %s", name)
			}
		}
	}
}
