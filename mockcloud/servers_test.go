package mockcloud

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreDecodedOnce(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{ProhibitedNames: []string{"forbidden", "adm*", "a/b"}}})
	h.create("taken")
	cases := map[string]struct {
		path string
		want int
	}{
		"a free name":                            {"/check/free", 200},
		"a prohibited name":                      {"/check/forbidden", 403},
		"a name that a glob prohibits":           {"/check/admin", 403},
		"a prohibited name with a slash":         {"/check/a%2Fb", 403},
		"a taken name":                           {"/check/taken", 409},
		"a taken name in needless escapes":       {"/check/%74aken", 409},
		"an escaped escape is not decoded twice": {"/check/%2574aken", 200},
		"dots that http.ServeMux would remove":   {"/check/..", 200},
		"escaped dots and slashes":               {"/check/..%2F..%2Fservers", 200},
		"a question mark and a hash":             {"/check/a%3Fb%23c", 200},
		"other scripts":                          {"/check/%E4%B8%AD%E6%96%87%20%D8%B9", 200},
		"no name at all":                         {"/check/", 400},
		"bytes that are not UTF-8":               {"/check/%ff", 400},
		"a control character":                    {"/check/a%0Ab", 400},
		"a name that is too long":                {"/check/" + strings.Repeat("x", 256), 400},
		"a slash that is not escaped":            {"/check/a/b", 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := h.send("GET", tc.path, ""); got.status != tc.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, tc.want)
			}
		})
	}
}

func TestCreateIsRejectedWithACode(t *testing.T) {
	cases := map[string]struct {
		opts Options
		body string
		want string
	}{
		"a prohibited name":      {body: `{"name":"forbidden"}`, want: "403 nameProhibited"},
		"a taken name":           {body: `{"name":"taken"}`, want: "409 nameTaken"},
		"no name":                {body: `{}`, want: "400 invalid"},
		"no JSON":                {body: `name=x`, want: "400 invalid"},
		"two values":             {body: `{"name":"x"}{}`, want: "400 invalid"},
		"an unknown field":       {body: `{"name":"x","colour":"red"}`, want: "400 invalid"},
		"no cores":               {body: `{"name":"x","cpu":0}`, want: "400 invalid"},
		"too much memory":        {body: `{"name":"x","memory":99999999}`, want: "400 invalid"},
		"an unknown power state": {body: `{"name":"x","powerState":"Maybe"}`, want: "400 invalid"},
		"an unknown network":     {body: `{"name":"x","networkId":"nope"}`, want: "400 invalid"},
		"the quota is used up": {
			opts: Options{Behaviour: Behaviour{Quota: 1}}, body: `{"name":"x"}`, want: "403 quotaExceeded"},
		"a prohibited template": {
			opts: Options{Behaviour: Behaviour{ProhibitedTemplates: []string{"old-*"}}},
			body: `{"name":"x","template":"old-1"}`, want: "422 templateProhibited"},
		"an unknown template": {
			opts: Options{Behaviour: Behaviour{Templates: []string{"new"}}},
			body: `{"name":"x","template":"other"}`, want: "422 templateUnknown"},
		"more than a name in the core profile": {
			opts: Options{Profile: Core}, body: `{"name":"x","cpu":1}`, want: "400 unsupported"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, tc.opts)
			h.create("taken")
			before := len(h.cloud.Ledger())
			got := h.send("POST", "/servers", tc.body)
			if have := fmt.Sprintf("%d %s", got.status, codeIn(t, got)); have != tc.want {
				t.Errorf("got %s (%s), want %s", have, got.body, tc.want)
			}
			if after := len(h.cloud.Ledger()); after != before {
				t.Errorf("the rejected create is in the ledger: %d entries, want %d", after, before)
			}
		})
	}
}

func TestSizeChangesOnlyWhileServerIsStopped(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{ResizeStopped: true}})
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"web","cpu":2}`).body)
	path := "/servers/" + s.ID
	for _, body := range []string{`{"cpu":4}`, `{"memory":8}`, `{"cpu":4,"powerState":"Off"}`} {
		if got := codeIn(t, h.call(409, "PATCH", path, body)); got != CodeNeedsStop {
			t.Errorf("PATCH %s of a running server: got %s, want needsStop", body, got)
		}
	}
	h.call(200, "PATCH", path, `{"cpu":2,"labels":{"team":"a"}}`)
	h.call(200, "PATCH", path, `{"powerState":"Off"}`)
	h.call(200, "PATCH", path, `{"cpu":4,"powerState":"On"}`)
}

func TestSoftPowerOffAsksGuest(t *testing.T) {
	const soft = `{"powerState":"Off","powerOffMode":"Soft"}`
	h := start(t, Options{Behaviour: Behaviour{ShutdownTime: Duration(time.Minute), IgnoreShutdown: "deaf", NoGuestAgent: "bare"}})
	path := func(name string) string {
		return "/servers/" + decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"`+name+`"}`).body).ID
	}
	state := func(path string) State { return decodeInto[Server](t, h.call(200, "GET", path, "").body).State }
	web, deaf, bare := path("web"), path("deaf"), path("bare")
	h.call(200, "PATCH", web, soft)
	h.call(200, "PATCH", deaf, soft)
	if got := codeIn(t, h.call(409, "PATCH", bare, soft)); got != CodeGuestUnavailable {
		t.Errorf("a guest without an agent: got %s, want guestUnavailable", got)
	}
	if got := state(web); got != StateActive {
		t.Errorf("while the guest shuts down: got %s, want ACTIVE", got)
	}
	h.clock.Advance(59 * time.Second)
	h.call(200, "PATCH", web, soft) // does not begin anew
	h.clock.Advance(time.Second)
	if got := state(web); got != StateStopped {
		t.Errorf("once the guest has shut down: got %s, want STOPPED", got)
	}
	if got := state(deaf); got != StateActive {
		t.Errorf("a guest that ignores the request: got %s, want ACTIVE", got)
	}
	h.call(200, "PATCH", deaf, `{"powerState":"Off","powerOffMode":"Hard"}`)
	if got := state(deaf); got != StateStopped {
		t.Errorf("powered off: got %s, want STOPPED", got)
	}
	h.call(200, "PATCH", web, `{"powerState":"On"}`)
	h.clock.Advance(time.Hour)
	if got := state(web); got != StateActive {
		t.Errorf("started again: got %s, want ACTIVE", got)
	}
	for _, body := range []string{`{"powerOffMode":"Soft"}`, `{"powerState":"On","powerOffMode":"Soft"}`, `{"powerState":"Off","powerOffMode":"Off"}`} {
		if got := codeIn(t, h.call(400, "PATCH", web, body)); got != CodeInvalid {
			t.Errorf("PATCH %s: got %s, want invalid", body, got)
		}
	}
}

func TestServerChangesItsStateWithTime(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute), DeleteTime: Duration(time.Hour)}})
	s := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"web","powerState":"Off"}`).body)
	path := "/servers/" + s.ID
	state := func() State { return decodeInto[Server](t, h.call(200, "GET", path, "").body).State }
	if got := state(); got != StateBuilding {
		t.Errorf("at first: got %s, want BUILDING", got)
	}
	if got := codeIn(t, h.call(409, "PATCH", path, `{"cpu":2}`)); got != CodeInvalidState {
		t.Errorf("changing it while it is BUILDING: got %s, want invalidState", got)
	}
	h.clock.Advance(time.Minute)
	if got := state(); got != StateStopped {
		t.Errorf("once built, switched off: got %s, want STOPPED", got)
	}
	h.call(200, "PATCH", path, `{"powerState":"On"}`)
	if got := state(); got != StateActive {
		t.Errorf("switched on: got %s, want ACTIVE", got)
	}
	h.call(202, "DELETE", path, "")
	h.call(202, "DELETE", path, "")
	if got := state(); got != StateDeleting {
		t.Errorf("while it is deleted: got %s, want DELETING", got)
	}
	h.call(409, "GET", "/check/web", "")
	h.clock.Advance(2 * time.Hour)
	h.call(404, "GET", path, "")
	h.call(404, "DELETE", path, "")

	ledger := h.cloud.Ledger()
	want := []string{"create web by client", "update web by client", "delete web by client", "gone web by client"}
	if diff := cmp.Diff(want, ops(ledger)); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if got, want := ledger[3].Time, epoch.Add(time.Minute+time.Hour); !got.Equal(want) {
		t.Errorf("gone at %s, want %s, regardless of the time of the call", got, want)
	}
}

func TestBuildAndDeleteTimeNeedAsync(t *testing.T) {
	h := start(t, Options{
		Capabilities: map[Capability]bool{Async: false},
		Behaviour:    Behaviour{BuildTime: Duration(time.Minute), DeleteTime: Duration(time.Minute)},
	})
	s := h.create("web")
	if s.State != StateActive {
		t.Errorf("got %s, want ACTIVE at once", s.State)
	}
	h.call(204, "DELETE", "/servers/"+s.ID, "")
}

func TestPatchMergesLabels(t *testing.T) {
	h := start(t, Options{})
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"web","labels":{"keep":"1","go":"2","change":"3"}}`).body)
	h.clock.Advance(time.Second)
	got := decodeInto[Server](t, h.call(200, "PATCH", "/servers/"+s.ID, `{"labels":{"go":null,"change":"4","add":"5","absent":null}}`).body)
	want := s
	want.Labels = map[string]string{"keep": "1", "change": "4", "add": "5"}
	want.UpdatedAt = epoch.Add(time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the patch (-want +got):\n%s", diff)
	}
	h.clock.Advance(time.Second)
	again := decodeInto[Server](t, h.call(200, "PATCH", "/servers/"+s.ID, `{"labels":{"change":"4"},"cpu":1}`).body)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("a patch that changes nothing (-want +got):\n%s", diff)
	}
}

func TestListFiltersAndPages(t *testing.T) {
	h := start(t, Options{})
	for i := range 7 {
		body := fmt.Sprintf(`{"name":"s%d","labels":{"parity":"%d","k":"a=b"}}`, i, i%2)
		h.call(201, "POST", "/servers", body)
		h.clock.Advance(time.Second)
	}
	cases := map[string]struct {
		query string
		want  string
	}{
		"all on one page":                   {"", "s0 s1 s2 s3 s4 s5 s6"},
		"pages of two":                      {"limit=2", "s0 s1 s2 s3 s4 s5 s6"},
		"a page that is just full":          {"limit=7", "s0 s1 s2 s3 s4 s5 s6"},
		"a limit above the bound":           {"limit=5000", "s0 s1 s2 s3 s4 s5 s6"},
		"a label":                           {"limit=2&label=parity%3D1", "s1 s3 s5"},
		"a value with an equals sign":       {"limit=1&label=k%3Da%3Db&name=s4", "s4"},
		"two labels":                        {"label=parity%3D0&label=k%3Da%3Db", "s0 s2 s4 s6"},
		"one label with two values":         {"label=parity%3D0&label=parity%3D1", ""},
		"a label that no server has":        {"label=x%3D1", ""},
		"a name":                            {"name=s3", "s3"},
		"updated since a moment, inclusive": {"updatedSince=" + epoch.Add(5*time.Second).Format(time.RFC3339), "s5 s6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(h.names(tc.query, 20), " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestInvalidQueriesAreRejected(t *testing.T) {
	for name, query := range map[string]string{
		"limit of none": "limit=0", "limit that is no number": "limit=x", "marker that is not base64": "marker=!",
		"marker that is no position": "marker=eHg", "label without a value": "label=x", "label without a key": "label=%3Dv",
		"moment in words": "updatedSince=now",
	} {
		t.Run(name, func(t *testing.T) {
			start(t, Options{}).call(400, "GET", "/servers?"+query, "")
		})
	}
}

func TestPagingContinuesWhenTheServerOfTheMarkerIsDeleted(t *testing.T) {
	h := start(t, Options{})
	for i := range 5 {
		h.create(fmt.Sprintf("s%d", i))
		h.clock.Advance(time.Second)
	}
	first := decodeInto[page](t, h.call(200, "GET", "/servers?limit=2", "").body)
	h.call(204, "DELETE", "/servers/"+first.Servers[1].ID, "")
	second := decodeInto[page](t, h.call(200, "GET", "/servers?limit=2&marker="+first.Next, "").body)
	if got := second.Servers[0].Name; got != "s2" {
		t.Errorf("the second page begins with %s, want s2", got)
	}
}

func TestCoreListIsAnArrayAndIgnoresParameters(t *testing.T) {
	h := start(t, Options{Profile: Core})
	if got := h.call(200, "GET", "/servers", "").body; got != "[]\n" {
		t.Errorf("an empty cloud lists %q, want []", got)
	}
	a := h.create("a")
	h.clock.Advance(time.Second)
	b := h.create("b")
	want := fmt.Sprintf(`[{"id":%q,"name":"a"},{"id":%q,"name":"b"}]`+"\n", a.ID, b.ID)
	if got := h.call(200, "GET", "/servers?limit=1&name=a", "").body; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestConcurrentCreatesWithOneNameCreateOneServer(t *testing.T) {
	h := start(t, Options{})
	statuses := make([]int, 16)
	var group sync.WaitGroup
	for i := range statuses {
		group.Go(func() { statuses[i] = h.send("POST", "/servers", `{"name":"one"}`).status })
	}
	group.Wait()
	created := 0
	for _, status := range statuses {
		if status == 201 {
			created++
		}
	}
	if created != 1 || len(h.cloud.Servers()) != 1 {
		t.Errorf("got %v and %d servers, want one 201 and one server", statuses, len(h.cloud.Servers()))
	}
}

func TestUtilisationFollowsItsModel(t *testing.T) {
	for _, model := range []string{"fixed:0", "fixed:100", "sine", "sine:1m", "walk", "walk:7"} {
		t.Run(model, func(t *testing.T) {
			use, err := parseUtilisation(model)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 1000 {
				at := epoch.Add(time.Duration(i) * 7 * time.Second)
				got := use("id", at)
				if got < 0 || got > 100 || got != use("id", at) {
					t.Fatalf("at %s: got %d, want the same of 0-100 each time", at, got)
				}
			}
		})
	}
}

func TestInvalidUtilisationModelsAreRejected(t *testing.T) {
	for _, model := range []string{"fixed", "fixed:101", "fixed:-1", "sine:0s", "sine:x", "walk:x", "cosine"} {
		t.Run(model, func(t *testing.T) {
			if _, err := parseUtilisation(model); err == nil {
				t.Errorf("%q is accepted as a model", model)
			}
		})
	}
}

func BenchmarkListPageOf1000(b *testing.B) {
	cloud, err := New(Options{SeedServers: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	defer cloud.Close()
	query := listQuery{limit: maxPage}
	for b.Loop() {
		records, _ := cloud.listings.page(query, cloud.core.now(), nil)
		if got := len(cloud.views.representAll(records, cloud.core.now())); got != maxPage {
			b.Fatalf("got %d servers", got)
		}
	}
}
