package rest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The bodies and queries are compared as sent, since that is what clouds depend on.
func TestRequestsAsSent(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 200, body: `{"id":"i-1","name":"web","cpuUtilization":1,"servers":[]}`})
	c := serve(t, answers, func(cfg *Config) { cfg.Credentials = Credentials{Token: "t"} }).withCapabilities(allCapabilities()...)
	c.exchange.endpoint += "/base"
	ctx := t.Context()
	_, e1 := c.CreateServer(ctx, cloud.CreateServer{
		Name: "web", CPU: 2, MemoryMiB: 4096, Template: "small", Folder: "f", NetworkID: "n", PowerState: cloud.PowerOff,
		Labels: map[string]string{"a": "<b>"}, IdempotencyKey: "k",
	})
	_, e2 := c.UpdateServer(ctx, "i-1", cloud.Update{cloud.SetCPU(1), cloud.SetMemory(2048), cloud.SetPower{State: cloud.PowerOn}, cloud.RemoveLabel("a")})
	_, e3 := c.ListServers(ctx, cloud.ListServers{Limit: 10, Marker: "a+b/", Labels: map[string]string{"b": "2", "a": "1=1"}})
	_, e4 := c.ServerStatus(ctx, "i-1")
	_, e5 := c.DeleteServer(ctx, "i-1")
	e6 := c.CheckName(ctx, cloud.Name{Name: "web", Folder: "f"})
	for i, err := range []error{e1, e2, e3, e4, e5, e6} {
		if err != nil {
			t.Errorf("call %d: %v", i+1, err)
		}
	}
	want := []received{
		{"POST", "/base/servers", "Bearer t", "k", `{"name":"web","cpu":2,"memory":4,"template":"small","folder":"f","networkId":"n","powerState":"Off","labels":{"a":"\u003cb\u003e"}}`},
		{"PATCH", "/base/servers/i-1", "Bearer t", "", `{"cpu":1,"memory":2,"powerState":"On","labels":{"a":null}}`},
		{"GET", "/base/servers?label=a%3D1%3D1&label=b%3D2&limit=10&marker=a%2Bb%2F", "Bearer t", "", ""},
		{"GET", "/base/servers/i-1/status", "Bearer t", "", ""},
		{"DELETE", "/base/servers/i-1", "Bearer t", "", ""},
		{"GET", "/base/check/web?folder=f", "Bearer t", "", ""},
	}
	if diff := cmp.Diff(want, answers.sent(), cmp.AllowUnexported(received{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestProfileDetection(t *testing.T) {
	t.Parallel()
	page := reply{status: 404, media: "text/html", body: "<h1>Cannot GET /capabilities</h1>"}
	mesh := reply{status: 404}
	array, object := reply{status: 200, body: `[]`}, reply{status: 200, body: `{"servers":[]}`}
	extended := reply{status: 200, body: `{"capabilities":["labels","teleport","labels","sizing","power"]}`}
	for name, test := range map[string]struct {
		known   cloud.Capabilities
		replies []reply
		want    cloud.Capabilities
		kind    cloud.Kind
	}{
		"extended: unknown names are ignored":                        {nil, []reply{extended}, cloud.NewCapabilities(cloud.Sizing, cloud.Labels, cloud.Power, cloud.PowerAtCreate), ""},
		"extended without any":                                       {nil, []reply{{status: 200, body: `{"capabilities":[]}`}}, cloud.NewCapabilities(cloud.Sizing), ""},
		"core: 404 with a code":                                      {nil, []reply{problemReply(404, "notFound")}, cloud.NewCapabilities(cloud.UniqueNames), ""},
		"core: 404 with a page of its framework and a bare array":    {nil, []reply{page, array}, cloud.NewCapabilities(cloud.UniqueNames), ""},
		"core: empty 404 and a bare array":                           {nil, []reply{mesh, array}, cloud.NewCapabilities(cloud.UniqueNames), ""},
		"a proxy without a backend: no profile":                      {nil, []reply{page, page}, nil, cloud.Unreadable},
		"a service mesh without a backend: no profile":               {nil, []reply{mesh, mesh}, nil, cloud.Unreadable},
		"an extended cloud without this path: no profile":            {nil, []reply{page, object}, nil, cloud.Unreadable},
		"an extended cloud that answers like a core one: no profile": {cloud.NewCapabilities(cloud.Sizing, cloud.Idempotency), []reply{problemReply(404, "notFound"), object}, nil, cloud.Unreadable},
		"no list":   {nil, []reply{{status: 200, body: `{}`}}, nil, cloud.Unreadable},
		"a portal":  {nil, []reply{{status: 200, media: "text/html", body: "<html>"}}, nil, cloud.Unreadable},
		"an outage": {nil, []reply{{status: 503}}, nil, cloud.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(test.replies...), func(cfg *Config) { cfg.UniqueNames = true })
			if test.known != nil {
				c.withCapabilities(test.known...)
			}
			got, err := c.Capabilities(t.Context())
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || cloud.KindOf(err) != test.kind {
				t.Errorf("%v, want kind %q; capabilities (-want +got):\n%s", err, test.kind, diff)
			}
			if diff := cmp.Diff(test.known, c.capabilities.cached()); test.want == nil && diff != "" {
				t.Errorf("a failure changed the cache (-want +got):\n%s", diff)
			}
		})
	}
}

// A create before the first Capabilities must be sent with its key.
func TestCreateServerAsksForCapabilitiesFirst(t *testing.T) {
	t.Parallel()
	answers := answering(reply{status: 200, body: `{"capabilities":["idempotency"]}`}, reply{status: 201, body: `{"id":"i-1","name":"web"}`})
	c := serve(t, answers)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1, IdempotencyKey: "k"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var targets, keys []string
	for _, r := range answers.sent() {
		targets, keys = append(targets, r.target), append(keys, r.key)
	}
	want := append([]string{"/capabilities"}, slices.Repeat([]string{"/servers"}, 8)...)
	if diff := cmp.Diff(want, targets); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append([]string{""}, slices.Repeat([]string{"k"}, 8)...), keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func TestListServersAsksAgainWhenCloudBecomesExtended(t *testing.T) {
	t.Parallel()
	answers := answering(
		reply{status: 200, body: `{"servers":[],"next":"m"}`},
		reply{status: 200, body: `{"capabilities":[]}`},
		reply{status: 200, body: `{"servers":[],"next":"m"}`},
	)
	c := serve(t, answers).withCapabilities()
	wantOutcome(t, verbs["list"](t.Context(), c), outcome{Kind: cloud.Unreadable})
	if err := verbs["list"](t.Context(), c); err != nil {
		t.Error(err)
	}
}

// The log at the highest verbosity, all errors and all metrics are searched after
// calls of every kind to a cloud that repeats what it receives.
func TestClientExposesNoSecret(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var exposed strings.Builder
	expose := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		exposed.WriteString(text + "\n")
	}
	reg := prometheus.NewPedanticRegistry()
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("X-Request-Id", "answer-id")
		if r.URL.Path == "/sessions" && r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprint(w, `{"token":"hunter3"}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"code":"hunter3","title":"hunter2","detail":"%s hunter2 %s"}`, r.Header.Get("Authorization"), strings.Repeat("x", 1000))
	})
	c := serve(t, echo, withPassword("hunter2"), func(cfg *Config) {
		cfg.Metrics = transport.NewMetrics(reg)
		cfg.Log = funcr.NewJSON(expose, funcr.Options{Verbosity: 10})
	}).withCapabilities(allCapabilities()...)
	for _, verb := range slices.Sorted(maps.Keys(verbs)) {
		if err := verbs[verb](t.Context(), c); err != nil {
			expose(fmt.Sprintf("%v %+v %#v", err, err, err))
		}
	}
	c.Close(t.Context())
	for _, part := range []any{c, c.session.credentials, c.exchange, c.exchange.classifier, c.exchange.scrubber, c.calls, c.capabilities, c.servers, c.watches} {
		expose(fmt.Sprintf("%v %+v %#v", part, part, part))
	}
	families, err := reg.Gather()
	expose(fmt.Sprint(families, err))
	if text := exposed.String(); strings.Contains(text, "hunter") || !strings.Contains(text, `"answerID":"answer-id"`) {
		t.Errorf("a secret, or no log:\n%s", text)
	}
}

func TestMetricsHaveRoutesWithoutIDs(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	metrics := transport.NewMetrics(reg)
	server := httptest.NewServer(answering(reply{drop: true}, reply{drop: true}, reply{drop: true}, reply{status: 200, body: `{"id":"i-1","name":"web"}`}, reply{status: 429}))
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, func(cfg *Config) { cfg.Metrics = metrics })
	for _, verb := range []string{"check", "get", "delete", "check"} {
		_ = verbs[verb](t.Context(), c)
	}
	want := []string{
		"DELETE /servers/{id} 429: 1", "GET /check/{name} none: 3", "GET /servers/{id} 200: 1",
	}
	if diff := cmp.Diff(want, requestCounts(t, reg)); diff != "" {
		t.Errorf("privatecloud_api_requests_total (-want +got):\n%s", diff)
	}
	metrics.Forget("test")
	if got := requestCounts(t, reg); len(got) != 0 {
		t.Errorf("after Forget: %v", got)
	}
}

func requestCounts(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		if family.GetName() != "privatecloud_api_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %s %s: %v", labels["method"], labels["route"], labels["code"], m.GetCounter().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}
