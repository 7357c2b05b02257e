package openapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
	"github.com/privatecloud/operator/mockcloud/openapi"
)

// api calls a mock cloud through a transport that checks the calls.
type api struct {
	t      *testing.T
	client *http.Client
	url    string
}

func start(t *testing.T, opts mockcloud.Options) (*mockcloud.Cloud, *api) {
	t.Helper()
	cloud, err := mockcloud.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(openapi.Handler(cloud.Handler(), func(err error) { t.Errorf("server side: %v", err) }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = cloud.Close() })
	transport := openapi.Transport(nil, func(err error) { t.Errorf("client side: %v", err) })
	return cloud, &api{t: t, client: &http.Client{Transport: transport}, url: server.URL}
}

func (a *api) call(want int, method, path, body string, header ...string) map[string]any {
	a.t.Helper()
	r, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body == "" {
		r.Body = nil
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := a.client.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if answer.StatusCode != want {
		a.t.Fatalf("%s %s: got %d %s, want %d", method, path, answer.StatusCode, data, want)
	}
	if answer.Header.Get("X-Request-Id") == "" {
		a.t.Errorf("%s %s: the answer has no X-Request-Id", method, path)
	}
	out := map[string]any{}
	if bytes.HasPrefix(data, []byte("{")) {
		if err := json.Unmarshal(data, &out); err != nil {
			a.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return out
}

func TestCoreProfileConformsToTheDocument(t *testing.T) {
	_, api := start(t, mockcloud.Options{Profile: mockcloud.Core})
	api.call(200, "GET", "/check/web%2F1%20%C3%BC%25", "")
	api.call(403, "GET", "/check/forbidden", "")
	id := api.call(201, "POST", "/servers", `{"name":"web"}`)["id"].(string)
	api.call(409, "GET", "/check/web", "")
	api.call(409, "POST", "/servers", `{"name":"web"}`)
	api.call(400, "POST", "/servers", `{"name":"other","cpu":2}`)
	api.call(200, "GET", "/servers", "")
	api.call(200, "GET", "/servers/"+id, "")
	api.call(200, "GET", "/servers/"+id+"/status", "")
	api.call(404, "GET", "/capabilities", "")
	api.call(404, "GET", "/networks", "")
	api.call(204, "DELETE", "/servers/"+id, "")
	api.call(404, "DELETE", "/servers/"+id, "")
	api.call(404, "GET", "/servers/"+id, "")
}

func TestExtendedProfileConformsToTheDocument(t *testing.T) {
	cloud, api := start(t, mockcloud.Options{SeedServers: 3, Capabilities: map[mockcloud.Capability]bool{mockcloud.Events: true}, Behaviour: mockcloud.Behaviour{
		DeleteTime: mockcloud.Duration(1e12), Templates: []string{"linux"}, ProhibitedTemplates: []string{"old*"},
	}})
	api.call(200, "GET", "/capabilities", "")
	network := api.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/24","gateway":"10.0.0.1"}`)["id"].(string)
	api.call(200, "GET", "/networks", "")
	api.call(200, "GET", "/networks/"+network, "")
	api.call(200, "PATCH", "/networks/"+network, `{"gateway":"10.0.0.2"}`)
	api.call(400, "PATCH", "/networks/"+network, `{"gateway":"10.1.0.2"}`)
	full := `{"name":"web","cpu":2,"memory":4,"template":"linux","folder":"f","networkId":"` + network +
		`","powerState":"Off","labels":{"a/b":"c"}}`
	id := api.call(201, "POST", "/servers", full, "Idempotency-Key", "k")["id"].(string)
	api.call(201, "POST", "/servers", full, "Idempotency-Key", "k")
	api.call(422, "POST", "/servers", `{"name":"web2"}`, "Idempotency-Key", "k")
	api.call(422, "POST", "/servers", `{"name":"w","template":"old-1"}`)
	api.call(422, "POST", "/servers", `{"name":"w","template":"new"}`)
	api.call(200, "GET", "/servers?limit=2&label=a%2Fb%3Dc&name=web&updatedSince=2020-01-01T00:00:00Z", "")
	api.call(200, "GET", "/servers?limit=1", "")
	api.call(200, "GET", "/servers/"+id, "")
	api.call(200, "GET", "/servers/"+id+"/status", "")
	api.call(200, "PATCH", "/servers/"+id, `{"cpu":4,"memory":8,"powerState":"On","labels":{"a/b":null,"x":"y"}}`)
	api.call(409, "DELETE", "/networks/"+network, "")
	api.call(200, "GET", "/hosts", "")
	api.call(202, "DELETE", "/servers/"+id, "")
	api.call(409, "PATCH", "/servers/"+id, `{"cpu":8}`)
	if err := cloud.DeleteServer(id); err != nil {
		t.Fatal(err)
	}
	api.call(204, "DELETE", "/networks/"+network, "")
	api.call(404, "GET", "/networks/"+network, "")
	if err := cloud.SetBehaviour(mockcloud.Behaviour{BuildTime: mockcloud.Duration(1e12), Utilisation: "sine", Quota: 4}); err != nil {
		t.Fatal(err)
	}
	api.call(202, "POST", "/servers", `{"name":"slow"}`)
	api.call(403, "POST", "/servers", `{"name":"one too many"}`)
	api.call(410, "GET", "/events?since=old-1", "")
}

func TestSessionsConformToTheDocument(t *testing.T) {
	cloud, api := start(t, mockcloud.Options{Username: "u", Password: "p"})
	api.call(401, "GET", "/servers", "")
	api.call(401, "POST", "/sessions", `{"username":"u","password":"wrong"}`)
	token := api.call(201, "POST", "/sessions", `{"username":"u","password":"p"}`)["token"].(string)
	api.call(200, "GET", "/servers", "", "Authorization", "Bearer "+token)
	api.call(204, "DELETE", "/sessions", "", "Authorization", "Bearer "+token)
	api.call(401, "GET", "/servers", "", "Authorization", "Bearer "+token)
	cloud.SetUnavailable(true)
	api.call(503, "GET", "/servers", "")
	cloud.SetUnavailable(false)
}

func TestEventStreamConformsToTheDocument(t *testing.T) {
	_, api := start(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Events: true}})
	answer, err := api.client.Get(api.url + "/events")
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestViolationsAreReported(t *testing.T) {
	cases := map[string]struct {
		fault        mockcloud.Fault
		method, path string
		body         string
		want         string
	}{
		"unknown path":                     {method: "GET", path: "/nowhere", want: "no such path"},
		"unknown method":                   {method: "PUT", path: "/servers", want: "no such method"},
		"unknown field":                    {method: "POST", path: "/servers", body: `{"name":"a","x":1}`, want: "property \"x\""},
		"limit above the maximum":          {method: "GET", path: "/servers?limit=5000", want: "limit"},
		"unexpected body":                  {method: "DELETE", path: "/servers/x", body: `{}`, want: "body"},
		"response with nulls":              {fault: mockcloud.Fault{Corrupt: mockcloud.CorruptNulls}, method: "GET", path: "/servers", want: "answer 200"},
		"response of another content type": {fault: mockcloud.Fault{ContentType: "text/html"}, method: "GET", path: "/servers", want: "answer 200"},
		"undocumented status":              {fault: mockcloud.Fault{Status: 200, Body: "{}"}, method: "DELETE", path: "/servers/x", want: "answer 200"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cloud, err := mockcloud.New(mockcloud.Options{SeedServers: 1, Faults: []mockcloud.Fault{tc.fault}})
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(cloud.Handler())
			defer server.Close()
			defer cloud.Close()
			var got []string
			client := &http.Client{Transport: openapi.Transport(nil, func(err error) { got = append(got, err.Error()) })}
			r, err := http.NewRequest(tc.method, server.URL+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("got the reports %q, want one with %q", got, tc.want)
			}
		})
	}
}

func TestEveryRouteIsInTheDocument(t *testing.T) {
	doc, err := openapi.Document()
	if err != nil {
		t.Fatal(err)
	}
	cloud, err := mockcloud.New(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	got, want := map[string]bool{}, map[string]bool{}
	for _, route := range cloud.Routes() {
		got[route] = true
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			want[method+" "+path] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-document +mock):\n%s", diff)
	}
}
