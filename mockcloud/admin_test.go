package mockcloud

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallsAreLoggedAndCounted(t *testing.T) {
	h := start(t, Options{CallLog: 3})
	h.create("web")
	h.call(404, "GET", "/servers/none", "", "X-Request-Id", "mine")
	h.call(404, "GET", "/servers/none/status", "")
	h.call(404, "GET", "/nowhere?x=1", "")
	h.call(405, "PUT", "/servers", "")
	h.call(200, "GET", "/ledger", "")
	h.call(404, "GET", "/servers/none", "", "X-Request-Id", "not fit to echo")

	var got []string
	for _, call := range h.cloud.Calls() {
		got = append(got, call.Method+" "+call.Path+" "+call.Route+" "+call.Query)
	}
	want := []string{"GET /nowhere none x=1", "PUT /servers /servers ", "GET /servers/none /servers/{id} "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the last calls (-want +got):\n%s", diff)
	}
	counts := map[string]int{
		"all": h.cloud.CountCalls("", ""), "one": h.cloud.CountCalls("GET", "/servers/{id}"),
		"get": h.cloud.CountCalls("GET", ""), "servers": h.cloud.CountCalls("", "/servers"),
	}
	if diff := cmp.Diff(map[string]int{"all": 6, "one": 2, "get": 4, "servers": 2}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	listed := decodeInto[struct {
		Calls  []Call
		Counts []CallCount
	}](t, h.call(200, "GET", "/calls", "").body)
	if len(listed.Calls) != 3 || len(listed.Counts) != 5 {
		t.Errorf("GET /calls has %d calls and %d counts, want 3 and 5", len(listed.Calls), len(listed.Counts))
	}
	h.call(204, "DELETE", "/calls", "")
	if got := h.cloud.CountCalls("", "") + len(h.cloud.Calls()); got != 0 {
		t.Errorf("after the reset: got %d, want 0", got)
	}
}

func TestRequestIDIsEchoed(t *testing.T) {
	h := start(t, Options{})
	if got := h.call(200, "GET", "/servers", "", "X-Request-Id", "mine").header.Get("X-Request-Id"); got != "mine" {
		t.Errorf("got %q, want the ID of the client", got)
	}
	if got := h.call(200, "GET", "/servers", "", "X-Request-Id", "a b").header.Get("X-Request-Id"); got == "a b" || got == "" {
		t.Errorf("got %q, want a generated ID", got)
	}
	h.call(201, "POST", "/servers", `{"name":"web"}`, "X-Request-Id", "mine", "Idempotency-Key", "k")
	want := []LedgerEntry{{
		Seq: 1, Time: epoch, Op: OpCreate, By: ByClient, ServerID: h.cloud.Servers()[0].ID,
		Name: "web", Key: "k", RequestID: "mine",
	}}
	if diff := cmp.Diff(want, h.cloud.Ledger()); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestServersCanBeChangedWithoutTheAPI(t *testing.T) {
	h := start(t, Options{})
	s := decodeInto[Server](t, h.call(201, "POST", "/admin/servers", `{"name":"stranger","labels":{"a":"b"}}`).body)
	h.call(409, "GET", "/check/stranger", "")
	got := decodeInto[Server](t, h.call(200, "PATCH", "/admin/servers/"+s.ID,
		`{"name":"renamed","state":"MELTING","cpuUtilization":100000}`).body)
	if got.Name != "renamed" || got.State != "MELTING" || *got.CPUUtilization != 100000 {
		t.Errorf("got %+v, want it renamed, MELTING and with the utilization that was set", got)
	}
	h.call(200, "GET", "/check/stranger", "")
	if err := h.cloud.ClearUtilisation(s.ID); err != nil {
		t.Fatal(err)
	}
	got.State, got.Name = StateActive, "again"
	if got, err := h.cloud.PutServer(got); err != nil || *got.CPUUtilization != 50 {
		t.Errorf("after PutServer with the same ID: got %+v %v, want 50 percent by the model", got, err)
	}
	if listed := decodeInto[[]Server](t, h.call(200, "GET", "/admin/servers", "").body); len(listed) != 1 || listed[0].Name != "again" {
		t.Errorf("got %+v, want the one server", listed)
	}
	h.call(204, "DELETE", "/admin/servers/"+s.ID, "")
	h.call(404, "DELETE", "/admin/servers/"+s.ID, "")
	h.call(404, "PATCH", "/admin/servers/"+s.ID, `{"name":"x"}`)
	want := []string{"create stranger by admin", "delete again by admin"}
	if diff := cmp.Diff(want, ops(h.cloud.Ledger())); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestHostsCanBeChangedWithoutTheAPI(t *testing.T) {
	given := []Host{{Name: "a", AvailableHours: 8}, {Name: "b"}}
	h := start(t, Options{Hosts: given})
	h.call(200, "PUT", "/admin/hosts/a", `{"gpu":true,"availableHours":4}`)
	h.call(200, "PUT", "/admin/hosts/c", `{"name":"c","availableHours":-1}`)
	h.call(204, "DELETE", "/admin/hosts/b", "")
	h.call(404, "DELETE", "/admin/hosts/b", "")
	h.call(400, "PUT", "/admin/hosts/c", `{"name":"d"}`)
	want := []Host{{Name: "a", GPU: true, AvailableHours: 4}, {Name: "c", AvailableHours: -1}}
	if diff := cmp.Diff(want, decodeInto[[]Host](t, h.call(200, "GET", "/hosts", "").body)); diff != "" {
		t.Errorf("GET /hosts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Host{{Name: "a", AvailableHours: 8}, {Name: "b"}}, given); diff != "" {
		t.Errorf("the options of the test (-want +got):\n%s", diff)
	}
	on := map[string]int{}
	for range 4 {
		s, err := h.cloud.PutServer(Server{Name: "worker"})
		if err != nil {
			t.Fatal(err)
		}
		on[s.Host]++
	}
	if diff := cmp.Diff(map[string]int{"a": 2, "c": 2}, on); diff != "" {
		t.Errorf("servers by host (-want +got):\n%s", diff)
	}
}

func TestSetServerStateStopsTransitions(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{DeleteTime: Duration(time.Minute)}})
	s := h.create("web")
	h.call(202, "DELETE", "/servers/"+s.ID, "")
	if err := h.cloud.SetServerState(s.ID, StateError); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour)
	if got, found := h.cloud.Server(s.ID); !found || got.State != StateError {
		t.Errorf("got %s, want ERROR", got.State)
	}
}

func TestBehaviourCanBeChangedWhileRunning(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{Quota: 1}})
	h.create("a")
	h.call(403, "POST", "/servers", `{"name":"b"}`)
	got := decodeInto[Behaviour](t, h.call(200, "PATCH", "/admin/behaviour", `{"quota":2,"buildTime":"1m"}`).body)
	want := Behaviour{Quota: 2, BuildTime: Duration(time.Minute), Utilisation: "fixed:50", ProhibitedNames: []string{"forbidden"}, SecurityGroups: []string{"ssh", "web"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("behaviour (-want +got):\n%s", diff)
	}
	h.call(202, "POST", "/servers", `{"name":"b"}`)
	h.call(400, "PATCH", "/admin/behaviour", `{"utilisation":"x"}`)
	if got := h.call(200, "GET", "/admin/behaviour", "").body; !strings.Contains(got, `"buildTime":"1m0s"`) {
		t.Errorf("got %s, want the build time in it", got)
	}
}

func TestFaultsCanBeListedAndRemoved(t *testing.T) {
	h := start(t, Options{})
	fault := `{"match":{"method":"GET","path":"/servers","count":1},"status":503,"retryAfter":"3","list":{"hideYounger":"5s"}}`
	id := decodeInto[struct{ ID string }](t, h.call(201, "POST", "/faults", fault).body).ID
	h.call(503, "GET", "/servers", "")
	h.call(200, "GET", "/servers", "")
	want := FaultStatus{Matched: 2, Fired: 1, Fault: Fault{
		ID: id, Match: Match{Method: "GET", Path: "/servers", Count: 1}, Status: 503, RetryAfter: "3",
		List: &ListFault{HideYounger: Duration(5 * time.Second)},
	}}
	if diff := cmp.Diff(want, decodeInto[FaultStatus](t, h.call(200, "GET", "/faults/"+id, "").body)); diff != "" {
		t.Errorf("fault (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]FaultStatus{want}, decodeInto[[]FaultStatus](t, h.call(200, "GET", "/faults", "").body)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	h.call(204, "DELETE", "/faults/"+id, "")
	h.call(404, "DELETE", "/faults/"+id, "")
	h.call(404, "GET", "/faults/"+id, "")
	h.call(201, "POST", "/faults", fault)
	h.call(204, "DELETE", "/faults", "")
	h.call(200, "GET", "/servers", "")
}

func TestProbesMetricsAndDocument(t *testing.T) {
	h := start(t, Options{
		Version: "v1.2.3", Token: "secret", SeedServers: 2, Faults: []Fault{{Match: Match{Path: "/hosts"}, Status: 503}},
	})
	h.call(503, "GET", "/hosts", "")
	h.call(200, "GET", "/healthz", "")
	h.call(200, "GET", "/readyz", "")
	metrics := h.call(200, "GET", "/metrics", "").body
	for _, want := range []string{
		`mockcloud_calls_total{method="GET",route="/hosts",status="503"} 1`,
		"mockcloud_servers 2", "mockcloud_faults_fired_total 1",
		fmt.Sprintf("privatecloud_build_info{goversion=%q,version=\"v1.2.3\"} 1", runtime.Version()),
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not contain %s:\n%s", want, metrics)
		}
	}
	if got := h.call(200, "GET", "/openapi.json", "").body; !json.Valid([]byte(got)) {
		t.Errorf("the document is not JSON: %.100s", got)
	}
	if err := h.cloud.Close(); err != nil {
		t.Fatal(err)
	}
	h.call(503, "GET", "/readyz", "")
}

func TestMostAliveCountsServersThatExistAtTheSameTime(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{DeleteTime: Duration(time.Minute)}, Capabilities: map[Capability]bool{UniqueNames: false}})
	create := func(owner string) string {
		body := `{"name":"x","labels":{"owner":"` + owner + `"}}`
		return decodeInto[Server](t, h.call(201, "POST", "/servers", body).body).ID
	}
	h.create("unlabelled")
	h.call(202, "DELETE", "/servers/"+create("replaced too early"), "")
	create("replaced too early")
	first := create("replaced in time")
	h.call(202, "DELETE", "/servers/"+first, "")
	h.clock.Advance(time.Minute)
	create("replaced in time")
	byHand := create("deleted by hand")
	if err := h.cloud.DeleteServer(byHand); err != nil {
		t.Fatal(err)
	}
	create("deleted by hand")
	want := map[string]int{"replaced too early": 2, "replaced in time": 1, "deleted by hand": 1}
	if diff := cmp.Diff(want, MostAlive(h.cloud.Ledger(), "owner")); diff != "" {
		t.Errorf("most alive (-want +got):\n%s", diff)
	}
	since := decodeInto[[]LedgerEntry](t, h.call(200, "GET", "/ledger?since=3", "").body)
	if len(since) == 0 || since[0].Seq != 4 {
		t.Errorf("since 3: got %+v, want it to start with 4", since)
	}
	h.call(200, "GET", "/ledger?since=9999", "")
	h.call(400, "GET", "/ledger?since=x", "")
}

func TestInvalidNetworksAreRejected(t *testing.T) {
	for name, body := range map[string]string{
		"no range":                       `{"name":"n","cidr":"10.0.0.0/33","gateway":"10.0.0.1"}`,
		"no address":                     `{"name":"n","cidr":"10.0.0.0/8","gateway":"x"}`,
		"a gateway outside of the range": `{"name":"n","cidr":"10.0.0.0/8","gateway":"11.0.0.1"}`,
		"no name":                        `{"name":"","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			start(t, Options{}).call(400, "POST", "/networks", body)
		})
	}
}

func TestNetworksAndHosts(t *testing.T) {
	h := start(t, Options{})
	n := decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`).body)
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"web","cpu":2,"networkId":"`+n.ID+`"}`).body)
	if got := codeIn(t, h.call(409, "DELETE", "/networks/"+n.ID, "")); got != CodeAttached {
		t.Errorf("got %s, want attached", got)
	}
	h.call(400, "PATCH", "/networks/"+n.ID, `{"cidr":"10.0.0.0/16"}`)
	h.clock.Advance(time.Second)
	n.Gateway, n.UpdatedAt = "10.0.0.2", epoch.Add(time.Second)
	h.call(200, "PATCH", "/networks/"+n.ID, `{"gateway":"10.0.0.2"}`)
	if diff := cmp.Diff([]Network{n}, h.cloud.Networks()); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	hosts := decodeInto[[]Host](t, h.call(200, "GET", "/hosts", "").body)
	if hosts[0].Name != s.Host || hosts[0].CPUUsageMHz != 2600 {
		t.Errorf("got %+v, want half of two cores in use on %s", hosts, s.Host)
	}
	h.call(204, "DELETE", "/servers/"+s.ID, "")
	h.call(204, "DELETE", "/networks/"+n.ID, "")
	for _, method := range []string{"GET", "DELETE"} {
		h.call(404, method, "/networks/"+n.ID, "")
	}
}
