package mockcloud

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fieldsOf(t *testing.T, r reply) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(r.body))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		t.Fatalf("decoding %q: %v", r.body, err)
	}
	return fields
}

func pick(fields map[string]any, names ...string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		picked[name] = fields[name]
	}
	return picked
}

func TestNormalizeNames(t *testing.T) {
	for _, profile := range []Profile{Core, Extended} {
		t.Run(string(profile), func(t *testing.T) {
			h := start(t, Options{Profile: profile, Quirks: Quirks{NormalizeNames: true}})
			s := h.create(" Web ")
			if s.Name != "web" {
				t.Errorf("the answer to the create has the name %q, want web", s.Name)
			}
			if got := decodeInto[Server](t, h.call(200, "GET", "/servers/"+s.ID, "").body).Name; got != "web" {
				t.Errorf("GET shows the name %q, want web", got)
			}
			h.call(409, "POST", "/servers", `{"name":"WEB"}`)
			h.call(409, "GET", "/check/wEb", "")
			if got := h.cloud.Servers()[0].Name; got != " Web " {
				t.Errorf("tests read the name %q, want the one that was sent", got)
			}
		})
	}
	h := start(t, Options{Quirks: Quirks{NormalizeNames: true}})
	h.create("Web")
	if diff := cmp.Diff([]string{"web"}, h.names("name=WEB", 1)); diff != "" {
		t.Errorf("filtered by name (-want +got):\n%s", diff)
	}
	network := `{"name":"Net","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`
	if got := fieldsOf(t, h.call(201, "POST", "/networks", network))["name"]; got != "net" {
		t.Errorf("the network has the name %q, want net", got)
	}
	h.call(409, "POST", "/networks", strings.ToLower(network))
}

func TestDomainNames(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{DomainNames: true}})
	s := h.create("web")
	if s.Name != "web.cloud.example.com" {
		t.Errorf("the answer to the create has the name %q, want that with the domain", s.Name)
	}
	if diff := cmp.Diff([]string{"web.cloud.example.com"}, h.names("", 1)); diff != "" {
		t.Errorf("names of the listing (-want +got):\n%s", diff)
	}
	h.call(409, "GET", "/check/web", "")
	h.call(200, "GET", "/check/web.cloud.example.com", "")
	if got := h.cloud.Servers()[0].Name; got != "web" {
		t.Errorf("tests read the name %q, want the one that was sent", got)
	}
}

func TestNamesThatTheCloudCutsOrDecomposes(t *testing.T) {
	for text, want := range map[string]string{"cutNames=4": "Web-", "decomposedNames": "Web-cafe\u0301", "domainNames,cutNames=10": "Web-caf\u00e9.c"} {
		quirks, err := ParseQuirks(text)
		if err != nil {
			t.Fatal(err)
		}
		h := start(t, Options{Quirks: quirks})
		if s := h.create("Web-caf\u00e9"); s.Name != want {
			t.Errorf("%s: the answer to the create has the name %q, want %q", text, s.Name, want)
		}
		if diff := cmp.Diff([]string{want}, h.names("", 1)); diff != "" {
			t.Errorf("%s: names of the listing (-want +got):\n%s", text, diff)
		}
		h.call(409, "GET", "/check/Web-caf%C3%A9", "")
	}
}

func TestLabelsThatTheCloudCutsOrDrops(t *testing.T) {
	for text, want := range map[string]map[string]any{"cutLabels=3": {"a": "123"}, "dropLabels": {}} {
		quirks, err := ParseQuirks(text)
		if err != nil {
			t.Fatal(err)
		}
		h := start(t, Options{Quirks: quirks})
		made := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"web","labels":{"a":"12345"}}`))
		if diff := cmp.Diff(want, made["labels"]); diff != "" {
			t.Errorf("%s: labels in the answer to the create (-want +got):\n%s", text, diff)
		}
		if got := h.cloud.Ledger()[0].Labels["a"]; got != "12345" {
			t.Errorf("%s: the ledger has the label %q, want the one that was sent", text, got)
		}
	}
}

func TestNumericIDs(t *testing.T) {
	h := start(t, Options{SeedServers: 1, Quirks: Quirks{NumericIDs: true}})
	network := fieldsOf(t, h.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`))["id"]
	ids := []any{network}
	for _, name := range []string{"a", "b"} {
		s := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"`+name+`","networkId":"`+string(network.(json.Number))+`"}`))
		if diff := cmp.Diff(network, s["networkId"]); diff != "" {
			t.Errorf("networkId (-want +got):\n%s", diff)
		}
		h.call(200, "GET", "/servers/"+string(s["id"].(json.Number)), "")
		ids = append(ids, s["id"])
	}
	slices.SortFunc(ids, func(a, b any) int { return strings.Compare(string(a.(json.Number)), string(b.(json.Number))) })
	want := []any{json.Number("9007199254740993"), json.Number("9007199254740994"), json.Number("9007199254740995")}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	list := fieldsOf(t, h.call(200, "GET", "/servers", ""))["servers"].([]any)
	if got := list[0].(map[string]any)["id"]; got != json.Number("1") {
		t.Errorf("the seed server has the id %v, want 1", got)
	}
	put, err := h.cloud.PutServer(Server{Name: "foreign"})
	if err != nil || put.ID != "9007199254740996" {
		t.Errorf("got the id %s of a server that was put, %v", put.ID, err)
	}
}

func TestExtraFieldsFollowKnownOnes(t *testing.T) {
	for _, profile := range []Profile{Core, Extended} {
		t.Run(string(profile), func(t *testing.T) {
			h := start(t, Options{Profile: profile, Quirks: Quirks{ExtraFields: true}})
			s := h.call(201, "POST", "/servers", `{"name":"web"}`)
			fields := fieldsOf(t, s)
			if fields["name"] != "web" || fields["NAME"] == nil || fields["tenant"] == nil {
				t.Errorf("got %s, want known, similar and unknown fields", s.body)
			}
			if strings.Index(s.body, `"id"`) > strings.Index(s.body, `"ID"`) {
				t.Errorf("got %s, want the similar fields last", s.body)
			}
			h.call(200, "GET", "/servers/"+fields["id"].(string)+"/status", "")
		})
	}
	h := start(t, Options{Quirks: Quirks{ExtraFields: true}})
	for path, want := range map[string]string{"/servers": "Next", "/capabilities": "CAPABILITIES", "/networks": "NETWORKS", "/check/x": "AVAILABLE"} {
		if fields := fieldsOf(t, h.call(200, "GET", path, "")); fields[want] == nil || fields["tenant"] == nil {
			t.Errorf("GET %s: got %v, want %s and tenant", path, fields, want)
		}
	}
}

func TestWrongTypes(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{WrongTypes: true}})
	ours := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"ours","memory":4,"labels":{"a":"b"}}`))
	want := map[string]any{
		"name": "ours", "state": "ACTIVE", "cpu": json.Number("1"), "labels": map[string]any{"a": "b"},
		"createdAt": json.Number("1767323045"), "memory": "4GB", "host": map[string]any{}, "cpuUtilization": "50%",
	}
	names := []string{"name", "state", "cpu", "labels", "createdAt", "memory", "host", "cpuUtilization"}
	if diff := cmp.Diff(want, pick(ours, names...)); diff != "" {
		t.Errorf("a server with labels of a client (-want +got):\n%s", diff)
	}
	foreign, err := h.cloud.PutServer(Server{Name: "foreign", Labels: map[string]string{"c": "d"}})
	if err != nil {
		t.Fatal(err)
	}
	labels := func() any { return fieldsOf(t, h.call(200, "GET", "/servers/"+foreign.ID, ""))["labels"] }
	if diff := cmp.Diff([]any{"web", "c"}, labels()); diff != "" {
		t.Errorf("the labels of a server of others (-want +got):\n%s", diff)
	}
	h.call(200, "PATCH", "/servers/"+foreign.ID, `{"labels":{"e":"f"}}`)
	if diff := cmp.Diff(map[string]any{"c": "d", "e": "f"}, labels()); diff != "" {
		t.Errorf("the labels after a client added one (-want +got):\n%s", diff)
	}
	if got := h.call(200, "GET", "/servers/"+foreign.ID+"/status", "").body; !strings.Contains(got, `"cpuUtilization":"50%"`) {
		t.Errorf("status: got %s, want a text", got)
	}
	core := start(t, Options{Profile: Core, Quirks: Quirks{WrongTypes: true}})
	got := fieldsOf(t, core.call(201, "POST", "/servers", `{"name":"web"}`))
	want = map[string]any{"name": "web", "labels": []any{"web"}, "memory": "1GB", "host": map[string]any{}, "createdAt": json.Number("1767323045")}
	if diff := cmp.Diff(want, pick(got, "name", "labels", "memory", "host", "createdAt")); diff != "" {
		t.Errorf("a core cloud (-want +got):\n%s", diff)
	}
}

func TestWrongLabelsConcernsEveryServer(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{WrongLabels: true}})
	got := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"ours","labels":{"a":"b"}}`))["labels"]
	if diff := cmp.Diff([]any{"web", "a"}, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestLowerCaseStates(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute)}, Quirks: Quirks{LowerCaseStates: true}})
	s := fieldsOf(t, h.call(202, "POST", "/servers", `{"name":"web"}`))
	if s["state"] != "building" {
		t.Errorf("got the state %v, want building", s["state"])
	}
	if got := fieldsOf(t, h.call(200, "GET", "/servers/"+s["id"].(string)+"/status", ""))["state"]; got != "building" {
		t.Errorf("status: got the state %v, want building", got)
	}
}

func TestLongHost(t *testing.T) {
	for name, opts := range map[string]Options{
		"extended":                {},
		"core":                    {Profile: Core},
		"with fields that differ": {Quirks: Quirks{WrongTypes: true, ExtraFields: true}},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Quirks.LongHost = true
			h := start(t, opts)
			host, _ := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"web"}`))["host"].(string)
			if len(host) != 254 {
				t.Errorf("the host %q has %d characters, want 254", host, len(host))
			}
		})
	}
	h := start(t, Options{Quirks: Quirks{LongHost: true}, Capabilities: map[Capability]bool{Hosts: false}})
	if got := fieldsOf(t, h.call(201, "POST", "/servers", `{"name":"web"}`))["host"]; got != nil {
		t.Errorf("a cloud without hosts shows the host %v", got)
	}
}

func TestIgnorePatch(t *testing.T) {
	for mode, cpus := range map[string]string{PatchUnchanged: "1", PatchEcho: "4"} {
		t.Run(mode, func(t *testing.T) {
			h := start(t, Options{Quirks: Quirks{IgnorePatch: mode}})
			s := h.create("web")
			if got := fieldsOf(t, h.call(200, "PATCH", "/servers/"+s.ID, `{"cpu":4}`))["cpu"]; got != json.Number(cpus) {
				t.Errorf("the answer has %v CPUs, want %s", got, cpus)
			}
			if got, _ := h.cloud.Server(s.ID); got.CPU != 1 {
				t.Errorf("the server has %d CPUs, want 1", got.CPU)
			}
			n := fieldsOf(t, h.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`))["id"].(string)
			h.call(200, "PATCH", "/networks/"+n, `{"gateway":"10.0.0.2"}`)
			if got := h.cloud.Networks()[0].Gateway; got != "10.0.0.1" {
				t.Errorf("the network has the gateway %s, want the former one", got)
			}
			if ops := ops(h.cloud.Ledger()); len(ops) != 2 {
				t.Errorf("the ledger has %v, want the creates only", ops)
			}
		})
	}
}

func TestStuckBuilding(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Second)}, Quirks: Quirks{StuckBuilding: "slow-*"}})
	stuck := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"slow-1"}`).body)
	other := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"web"}`).body)
	foreign, err := h.cloud.PutServer(Server{Name: "slow-2"})
	if err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour)
	want := map[string]State{stuck.ID: StateBuilding, other.ID: StateActive, foreign.ID: StateBuilding}
	got := map[string]State{}
	for _, s := range h.cloud.Servers() {
		got[s.ID] = s.State
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	h.call(409, "PATCH", "/servers/"+stuck.ID, `{"cpu":2}`)
	h.call(204, "DELETE", "/servers/"+stuck.ID, "")
}

func TestExistingOnCreate(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ExistingOnCreate: true}})
	first := h.create("web")
	again := decodeInto[Server](t, h.call(200, "POST", "/servers", `{"name":"web","cpu":8}`).body)
	if again.ID != first.ID || again.CPU != 1 {
		t.Errorf("got server %s with %d CPUs, want %s with 1", again.ID, again.CPU, first.ID)
	}
	h.create("other")
}
