package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

// Only id and name are indispensable: whatever else a cloud writes, its servers are read.
func TestServerIsReadWithoutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 254)
	hosts := make([]string, 10_000)
	for n := range hosts {
		hosts[n] = fmt.Sprintf("10.0.%d.%d", n>>8, n&255)
	}
	hosts = hosts[1:]
	for name, test := range map[string]struct {
		fields string
		// change makes the expected server of one that has only an id and a name.
		change  func(*cloud.Server)
		ignored []string
	}{
		"a time as a number: ignored":          {fields: `"createdAt":1700000000,"updatedAt":1.5`, ignored: []string{"createdAt: not a time of RFC 3339", "updatedAt: not a time of RFC 3339"}},
		"a time in another format: ignored":    {fields: `"createdAt":"yesterday"`, ignored: []string{"createdAt: not a time of RFC 3339"}},
		"labels as a list: ignored":            {fields: `"labels":["web"]`, ignored: []string{"labels: not an object"}},
		"a label that is a number: ignored":    {fields: `"labels":{"a":1,"b":"2"}`, change: func(s *cloud.Server) { s.Labels = map[string]string{"b": "2"} }, ignored: []string{"labels: a value that is not a string"}},
		"a size with a unit: ignored":          {fields: `"memory":"4GB","cpu":"2"`, ignored: []string{"cpu: not a number", "memory: not a number"}},
		"a size that is an object: ignored":    {fields: `"cpu":{}`, ignored: []string{"cpu: not a number"}},
		"a size out of range: ignored":         {fields: `"memory":-1,"cpu":1e999`, ignored: []string{"cpu: not within 0 to 2147483647", "memory: not within 0 to 2147483647"}},
		"a size that is no whole MiB: ignored": {fields: `"memory":0.0001`, ignored: []string{"memory: not a whole number of MiB"}},
		"a part of a processor: ignored":       {fields: `"cpu":0.5`, ignored: []string{"cpu: not a whole number"}},
		"a host that is an object: ignored":    {fields: `"host":{}`, ignored: []string{"host: not a string"}},
		"a host with too many characters: ignored": {
			fields: `"host":"` + long + `"`, ignored: []string{"host: longer than 253 characters"},
		},
		"a host with as many as fit: read": {
			fields: `"host":"` + long[2:] + `"`, change: func(s *cloud.Server) { s.Host = long[2:] },
		},
		"a template and a folder that are lists: ignored": {fields: `"template":[],"folder":[1]`, ignored: []string{"folder: not a string", "template: not a string"}},
		"a utilization with a sign: ignored":              {fields: `"cpuUtilization":"12%"`, ignored: []string{"cpuUtilization: not a number"}},
		"a utilization out of range: ignored":             {fields: `"cpuUtilization":101`, ignored: []string{"cpuUtilization: not within 0 to 100"}},
		"a usage that is a list: ignored":                 {fields: `"cpuUsageMHz":[],"memoryUsageMB":true`, ignored: []string{"cpuUsageMHz: not a number", "memoryUsageMB: not a number"}},
		"a state that is a number: ignored":               {fields: `"state":1`, ignored: []string{"state: not a string"}},
		"a state in lower case: read":                     {fields: `"state":"building"`, change: func(s *cloud.Server) { s.State = cloud.StateBuilding }},
		"a state in mixed case: read":                     {fields: `"state":" Stopped"`, change: func(s *cloud.Server) { s.State = cloud.StateStopped }},
		"a state that is not known: UNKNOWN, and its word": {
			fields: `"state":" Hibernating"`, change: func(s *cloud.Server) { s.State, s.Fault = cloud.StateUnknown, "Hibernating" },
		},
		"a state that is not known, with control characters: without them": {
			fields: `"state":"a\u001bb\u202e\nc"`, change: func(s *cloud.Server) { s.State, s.Fault = cloud.StateUnknown, "ab c" },
		},
		"a long state: bounded": {
			fields: `"state":"` + strings.Repeat("x", 5000) + `"`,
			change: func(s *cloud.Server) { s.State, s.Fault = cloud.StateUnknown, strings.Repeat("x", 31)+"…" },
		},
		"a state after an unknown one: without the word": {fields: `"state":"odd","state":"ACTIVE"`},
		"RUNNING: ACTIVE":  {fields: `"state":"RUNNING"`},
		"running: ACTIVE":  {fields: `"state":"running"`},
		"SHUTOFF: STOPPED": {fields: `"state":"shutoff"`, change: func(s *cloud.Server) { s.State = cloud.StateStopped }},
		"BUILD: BUILDING":  {fields: `"state":"Build"`, change: func(s *cloud.Server) { s.State = cloud.StateBuilding }},
		"an integer as the id of a network: its digits": {fields: `"networkId":7`, change: func(s *cloud.Server) { s.NetworkID = "7" }},
		"an object as the id of a network: ignored":     {fields: `"networkId":{"id":7}`, ignored: []string{"networkId: not an id"}},
		"further fields that differ in case alone: not read": {
			fields: `"ID":"i-2","Name":"other","HOST":"h","State":"ERROR","Cpu":4,"LABELS":{"a":"b"},"createdat":"2026-01-02T03:04:05Z"`,
		},
		"further fields of any type: not read": {fields: `"a":1,"b":[{"id":"x"}],"c":{"name":"y"},"":null`},
		"interfaces: read": {
			fields: `"interfaces":[{"macAddress":"FA:16:3E:00:00:01","addresses":["10.0.0.5","fe80::1","fd00::5"],"name":"eth0"},{"addresses":null}]`,
			change: func(s *cloud.Server) { s.Interfaces = "fa:16:3e:00:00:01,10.0.0.5,fd00::5" },
		},
		"interfaces that are an object: ignored": {fields: `"interfaces":{"addresses":["10.0.0.5"]}`, ignored: []string{"interfaces: not an array"}},
		"interfaces with what is no address: without it": {
			fields: `"interfaces":["eth0",{"macAddress":5,"addresses":[6,"10.0.0.5/24","10.0.0.6"]},{"addresses":"10.0.0.7"}]`,
			change: func(s *cloud.Server) { s.Interfaces = ",10.0.0.6" }, ignored: []string{"interfaces: a text that is no address"},
		},
		"more addresses than are read: as many as are": {
			fields: `"interfaces":[{"addresses":["` + strings.Join(hosts, `","`) + `"]}]`,
			change: func(s *cloud.Server) {
				s.Interfaces = cloud.Interfaces("," + strings.Join(hosts[:cloud.MaxAddresses], ","))
			},
		},
		"a heartbeat: read":                     {fields: `"guestHeartbeat":"LOST"`, change: func(s *cloud.Server) { s.Heartbeat = cloud.HeartbeatLost }},
		"a heartbeat of another value: ignored": {fields: `"guestHeartbeat":"GREEN"`, ignored: []string{"guestHeartbeat: not one of OK, LOST and NONE"}},
		"a heartbeat that is no text: ignored":  {fields: `"guestHeartbeat":true`, ignored: []string{"guestHeartbeat: not one of OK, LOST and NONE"}},
		"groups and allowed addresses: read": {
			fields: `"securityGroups":["web","ssh","web"],"allowedAddresses":["FD00::9","10.0.0.9/32","10.0.0.0/28"]`,
			change: func(s *cloud.Server) {
				s.SecurityGroups, s.AllowedAddresses = "ssh\nweb", "10.0.0.0/28\n10.0.0.9\nfd00::9"
			},
		},
		"allowed addresses with what is no address: without it": {
			fields: `"allowedAddresses":["vip",7,null,"fe80::1%eth0","10.0.0.9"]`, change: func(s *cloud.Server) { s.AllowedAddresses = "10.0.0.9" },
			ignored: []string{"allowedAddresses: a text that is no address or range, or too many of them"},
		},
		"allowed addresses and groups that are no arrays: ignored": {
			fields: `"allowedAddresses":"10.0.0.9","securityGroups":{"name":"web"}`, ignored: []string{"allowedAddresses: not an array", "securityGroups: not an array"},
		},
		"nulls: absent":                    {fields: `"host":null,"cpu":null,"state":null,"labels":{"a":null},"networkId":null,"createdAt":null,"cpuUtilization":null,"interfaces":null,"guestHeartbeat":null`},
		"an escaped name of a field: read": {fields: `"h\u006fst":"h"`, change: func(s *cloud.Server) { s.Host = "h" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"id":"i-1","name":"web",` + test.fields + `}`
			want := cloud.Server{ID: "i-1", Name: "web", State: cloud.StateActive}
			if test.change != nil {
				test.change(&want)
			}
			var into ignored
			single, err := decodeServer(listing(), jsonAnswer(body), &into)
			if diff := cmp.Diff(want, single); diff != "" || err != nil {
				t.Errorf("one server: %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.ignored, into.take(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
			listed, err := pageOfType(`[`+body+`]`, "application/json", &into)
			if diff := cmp.Diff([]cloud.Server{want}, listed.Servers); diff != "" || err != nil {
				t.Errorf("a page: %v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.ignored, into.take(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("ignored in a page (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumericIDsKeepTheirDigits(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"small": "7", "zero": "0", "beyond a float": "9007199254740993", "beyond 64 bits": "123456789012345678901234567890",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers := answering(reply{status: 200, body: `{"id":` + id + `,"name":"web"}`})
			got, err := serve(t, answers).withCapabilities().GetServer(t.Context(), id)
			want := cloud.Server{ID: id, Name: "web", State: cloud.StateActive}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if sent := answers.sent(); len(sent) != 1 || sent[0].target != "/servers/"+id {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

// A server whose name is too long for a status stays a server.
func TestLongNameIsCut(t *testing.T) {
	t.Parallel()
	var into ignored
	got, err := pageOfType(`[{"id":"i-1","name":"`+strings.Repeat("é", 300)+`"}]`, "application/json", &into)
	want := []cloud.Server{{ID: "i-1", Name: strings.Repeat("é", 253), State: cloud.StateActive}}
	if diff := cmp.Diff(want, got.Servers); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"name: longer than 253 characters"}, into.take()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

// Who can label servers must not be able to hide which object owns one.
func TestOwnLabelsAreKeptAmongTooMany(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"tag-%d":"x",`, i)
	}
	var into ignored
	body := `{"id":"i-1","name":"web","labels":{` + b.String() + `"long":"` + strings.Repeat("x", 2000) + `","samplecontroller.k8s.io/uid":"u-1"}}`
	got, err := decodeServer(listing(), jsonAnswer(body), &into)
	if err != nil || len(got.Labels) != maxLabels+1 || got.Labels["samplecontroller.k8s.io/uid"] != "u-1" {
		t.Errorf("%v, %d labels, uid %q; want %d and the uid", err, len(got.Labels), got.Labels["samplecontroller.k8s.io/uid"], maxLabels+1)
	}
	want := []string{"labels: a key or value that is too long", "labels: more than 64"}
	if diff := cmp.Diff(want, into.take()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

// The length of a label is that of its text, however the cloud writes it.
func TestEscapedLabelIsKept(t *testing.T) {
	t.Parallel()
	var into ignored
	body := `{"id":"i-1","name":"web","labels":{"env":"` + strings.Repeat(`\u003c`, maxLabelValue) + `","longer":"` + strings.Repeat(`\u003c`, maxLabelValue+1) + `"}}`
	got, err := decodeServer(listing(), jsonAnswer(body), &into)
	if err != nil || len(got.Labels) != 1 || got.Labels["env"] != strings.Repeat("<", maxLabelValue) {
		t.Errorf("%v, %d labels, env has %d bytes, want %d", err, len(got.Labels), len(got.Labels["env"]), maxLabelValue)
	}
	if diff := cmp.Diff([]string{"labels: a key or value that is too long"}, into.take()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

func TestMarkerMayBeAnInteger(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ body, want string }{
		"an integer":                        {`{"next":1000,"servers":[]}`, "1000"},
		"before the list":                   {`{"next":"m","servers":[]}`, "m"},
		"after fields that are not known":   {`{"total":{"a":[1,{}]},"servers":[],"x":"y","next":"m"}`, "m"},
		"a field that differs in case only": {`{"servers":[],"Next":"m"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := pageOf(test.body); err != nil || got.Next != test.want {
				t.Errorf("next %q, %v; want %q", got.Next, err, test.want)
			}
		})
	}
}

// Ignored is how the Cloud controller learns of it: from answers of every kind.
func TestIgnoredReportsEachFieldOnce(t *testing.T) {
	t.Parallel()
	answers := answering(
		reply{status: 200, body: `{"capabilities":["labels",7]}`},
		reply{status: 200, body: `{"servers":[{"id":"a","name":"a","cpu":"2","host":[]},{"id":"b","name":"b","cpu":"4"}]}`},
		reply{status: 200, body: `{"cpuUtilization":"5%"}`},
	)
	c := serve(t, answers)
	for _, verb := range []string{"capabilities", "list", "status"} {
		if err := verbs[verb](t.Context(), c); err != nil && verb != "status" {
			t.Errorf("%s: %v", verb, err)
		}
	}
	var reporter cloud.IgnoredReporter = c
	want := []string{"capabilities: an entry that is not a string", "cpu: not a number", "cpuUtilization: not a number", "host: not a string"}
	if diff := cmp.Diff(want, reporter.Ignored()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if got := reporter.Ignored(); len(got) != 0 {
		t.Errorf("ignored since then: %v", got)
	}
}

func TestIgnoredIsBounded(t *testing.T) {
	t.Parallel()
	var into ignored
	for i := range 100 {
		into.add("labels", fmt.Sprint(i))
	}
	if got := into.take(); len(got) != maxIgnored {
		t.Errorf("%d texts, want %d", len(got), maxIgnored)
	}
}

func TestSessionIsReadWithoutItsEnd(t *testing.T) {
	t.Parallel()
	var into ignored
	got, err := decodeSession(listing(), jsonAnswer(`{"Token":"no","token":"yes","expiresAt":3600}`), &into)
	if err != nil || got.token != "yes" || !got.expires.IsZero() {
		t.Errorf("%v, token %q until %s", err, got.token, got.expires)
	}
	if diff := cmp.Diff([]string{"expiresAt: not a time of RFC 3339"}, into.take()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

// Clouds that are no JSON servers by profession leave the type out.
func TestAnswersWithOtherContentTypes(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"text/json", "text/plain; charset=utf-8", "application/octet-stream"} {
		t.Run(media, func(t *testing.T) {
			t.Parallel()
			c := serve(t, answering(reply{status: 200, media: media, body: `{"id":"i-1","name":"web"}`})).withCapabilities()
			for _, verb := range []string{"get", "create"} {
				if err := verbs[verb](t.Context(), c); err != nil {
					t.Errorf("%s: %v", verb, err)
				}
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte(`[{"id":"i-1","name":"web"}]`))
		})).withCapabilities()
		if err := verbs["list"](t.Context(), c); err != nil {
			t.Errorf("list: %v", err)
		}
	})
}
