package mockcloud

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCapabilityThatIsOffIsRejected(t *testing.T) {
	cases := map[Capability]struct{ method, path, body, want string }{
		Networks: {"GET", "/networks", ``, CodeNotFound},
		Resize:   {"PATCH", "/servers/any", `{"cpu":2}`, CodeUnsupported},
		Hosts:    {"GET", "/hosts", ``, CodeNotFound},
		Events:   {"GET", "/events", ``, CodeNotFound},
		Sessions: {"POST", "/sessions", `{"username":"u","password":"p"}`, CodeNotFound},
	}
	for name, tc := range cases {
		t.Run(string(name), func(t *testing.T) {
			h := start(t, Options{Capabilities: map[Capability]bool{name: false}})
			if got := codeIn(t, h.send(tc.method, tc.path, tc.body)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if listed := h.call(200, "GET", "/capabilities", "").body; strings.Contains(listed, `"`+string(name)+`"`) {
				t.Errorf("%s is off and listed: %s", name, listed)
			}
		})
	}
}

func TestEachFieldOfACreateIsBoundedAndNeedsItsCapability(t *testing.T) {
	text := func(bytes int) string { return `"` + strings.Repeat("x", bytes) + `"` }
	cases := map[string]struct {
		// needs is the capability without which the field is unsupported; without one, the core profile lacks the field.
		needs Capability
		// value is accepted, and beyond is more than is allowed.
		value, beyond string
	}{
		"name":           {beyond: text(maxName + 1)},
		"cpu":            {value: `2`, beyond: `1025`},
		"memory":         {value: `2`, beyond: `65537`},
		"template":       {value: `"debian"`, beyond: text(256)},
		"folder":         {Folders, `"f"`, text(256)},
		"networkId":      {Networks, `"n1"`, text(256)},
		"powerState":     {Power, `"On"`, `"Sideways"`},
		"labels":         {Labels, `{"a":"b"}`, `{"a":` + text(1025) + `}`},
		"userData":       {UserData, `"YWJj"`, `"` + base64.StdEncoding.EncodeToString(make([]byte, maxUserData+1)) + `"`},
		"disks":          {Disks, `[{"name":"data","size":1}]`, `[{"name":"data","size":16385}]`},
		"rootDisk":       {WithRootDisk, `{"size":10}`, `{"size":16385}`},
		"zone":           {Zones, `"z1"`, text(256)},
		"antiAffinity":   {WithAntiAffinity, `{"group":"g","policy":"Preferred"}`, `{"group":` + text(256) + `,"policy":"Preferred"}`},
		"securityGroups": {WithSecurityGroups, `["ssh"]`, `[""]`},
		"interfaces":     {Networks, `[{"networkId":"n1"}]`, `[` + strings.Repeat(`{"networkId":"n1"},`, 8) + `{"networkId":"n1"}]`},
	}
	fields := map[string]bool{}
	for field := range reflect.TypeFor[createServer]().Fields() {
		name := field.Tag.Get("json")
		fields[name] = true
		t.Run(name, func(t *testing.T) {
			tc, known := cases[name]
			if !known {
				t.Fatal("the field has no case")
			}
			send := func(opts Options, value string) string {
				h := start(t, opts)
				_, failed := h.cloud.PutNetwork(Network{ID: "n1", Name: "n1", CIDR: "10.0.0.0/24"})
				if err := errors.Join(failed, h.cloud.PutHost(Host{Name: "h1", Zone: "z1"})); err != nil {
					t.Fatal(err)
				}
				body := `{"name":"x","` + name + `":` + value + `}`
				return codeIn(t, h.send("POST", "/servers", body))
			}
			if got := send(Options{}, tc.beyond); got != CodeInvalid {
				t.Errorf("a value that is not allowed: got %q, want %s", got, CodeInvalid)
			}
			if tc.value == "" {
				return
			}
			if got := send(Options{}, tc.value); got != "" {
				t.Errorf("got %s", got)
			}
			without := Options{Profile: Core}
			if tc.needs != "" {
				without = Options{Capabilities: map[Capability]bool{tc.needs: false}}
			}
			if got := send(without, tc.value); got != CodeUnsupported {
				t.Errorf("with %+v: got %q, want %s", without, got, CodeUnsupported)
			}
			if tc.needs != "" {
				if listed := start(t, without).call(200, "GET", "/capabilities", "").body; strings.Contains(listed, `"`+string(tc.needs)+`"`) {
					t.Errorf("%s is off and listed: %s", tc.needs, listed)
				}
			}
		})
	}
	for name := range cases {
		if !fields[name] {
			t.Errorf("a create has no field %s", name)
		}
	}
}

func TestFieldsOfCapabilitiesThatAreOffAreUnsupported(t *testing.T) {
	for name, tc := range map[string]struct{ method, path, body string }{
		"change of labels":          {"PATCH", "/servers/any", `{"labels":{}}`},
		"change of the power state": {"PATCH", "/servers/any", `{"powerState":"On"}`},
		"change of groups":          {"PATCH", "/servers/any", `{"securityGroups":["ssh"]}`},
		"allowed addresses":         {"PATCH", "/servers/any", `{"allowedAddresses":[]}`},
		"a public address":          {"PATCH", "/servers/any", `{"publicAddress":{"network":"ext-net"}}`},
		"no public address":         {"PATCH", "/servers/any", `{"publicAddress":null}`},
		"a root disk":               {"PATCH", "/servers/any", `{"rootDisk":{"size":20}}`},
		"a disk of a type":          {"PATCH", "/servers/any", `{"disks":[{"name":"a","size":1,"type":"fast"}]}`},
		"a root disk of a type":     {"POST", "/servers", `{"name":"x","rootDisk":{"type":"fast"}}`},
		"label filter":              {"GET", "/servers?label=a%3Db", ``},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{Capabilities: map[Capability]bool{Labels: false, Power: false, Networks: false, WithSecurityGroups: false, PublicAddresses: false, AllowedAddresses: false, WithRootDisk: false, WithDiskTypes: false}})
			if got := codeIn(t, h.send(tc.method, tc.path, tc.body)); got != CodeUnsupported {
				t.Errorf("got %s, want unsupported", got)
			}
		})
	}
}

func TestBodiesOmitFieldsOfCapabilitiesThatAreOff(t *testing.T) {
	h := start(t, Options{Capabilities: map[Capability]bool{
		BulkStatus: false, Labels: false, Power: false, Folders: false, Networks: false, Hosts: false, Addresses: false, Disks: false, Zones: false, WithAntiAffinity: false, GuestHeartbeat: false, Interfaces: false, StaticAddresses: false, NetworkDNS: false, Routers: false, DualStack: false,
	}})
	s, err := h.cloud.PutServer(Server{
		Name: "web", Labels: map[string]string{"a": "b"}, Folder: "f", NetworkID: "n", PowerState: PowerOff,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Server{
		ID: s.ID, Name: "web", State: StateStopped, CPU: 1, Memory: 1, CreatedAt: epoch, UpdatedAt: epoch,
	}
	one := decodeInto[Server](t, h.call(200, "GET", "/servers/"+s.ID, "").body)
	if diff := cmp.Diff(want, one); diff != "" {
		t.Errorf("GET (-want +got):\n%s", diff)
	}
	all := decodeInto[page](t, h.call(200, "GET", "/servers", "").body)
	if diff := cmp.Diff(page{Servers: []Server{want}}, all); diff != "" {
		t.Errorf("LIST (-want +got):\n%s", diff)
	}
	status := h.call(200, "GET", "/servers/"+s.ID+"/status", "").body
	if want := `{"cpuUtilization":0,"state":"STOPPED"}` + "\n"; status != want {
		t.Errorf("status: got %s, want %s", status, want)
	}
}

func TestNamesMayRepeatWithoutUniqueNames(t *testing.T) {
	for _, profile := range []Profile{Core, Extended} {
		t.Run(string(profile), func(t *testing.T) {
			h := start(t, Options{Profile: profile, Capabilities: map[Capability]bool{UniqueNames: false}})
			h.create("web")
			h.call(200, "GET", "/check/web", "")
			h.create("web")
			h.call(403, "GET", "/check/forbidden", "")
		})
	}
}

func TestCapabilitiesCanBeSwitchedWhileRunning(t *testing.T) {
	h := start(t, Options{})
	if err := h.cloud.SetCapability(Hosts, false); err != nil {
		t.Fatal(err)
	}
	h.call(404, "GET", "/hosts", "")
	h.call(200, "PATCH", "/admin/capabilities", `{"hosts":true}`)
	h.call(200, "GET", "/hosts", "")
	h.call(400, "PATCH", "/admin/capabilities", `{"flying":true}`)
	core := start(t, Options{Profile: Core})
	if err := core.cloud.SetCapability(Labels, true); err == nil {
		t.Error("a core cloud got labels")
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	cases := map[string]Options{
		"an unknown profile":    {Profile: "half"},
		"an unknown capability": {Capabilities: map[Capability]bool{"flying": true}},
		"an unknown model":      {Behaviour: Behaviour{Utilisation: "x"}},
		"a negative time":       {Behaviour: Behaviour{BuildTime: -1}},
		"a negative quota":      {Behaviour: Behaviour{Quota: -1}},
		"a fault out of bounds": {Faults: []Fault{{Match: Match{Probability: 2}}}},
		"negative seed servers": {SeedServers: -1},
	}
	for name, opts := range cases {
		t.Run(name, func(t *testing.T) {
			if cloud, err := New(opts); err == nil {
				_ = cloud.Close()
				t.Error("got a cloud, want an error")
			}
		})
	}
}
