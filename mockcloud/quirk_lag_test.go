package mockcloud

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sees returns what GET and LIST show of a server: the status of each, and its CPUs.
func (h *harness) sees(id string) string {
	h.t.Helper()
	one := h.send("GET", "/servers/"+id, "")
	text := fmt.Sprintf("GET %d", one.status)
	if one.status == 200 {
		text += fmt.Sprintf(" cpu %d", decodeInto[Server](h.t, one.body).CPU)
	}
	for _, s := range decodeInto[page](h.t, h.call(200, "GET", "/servers", "").body).Servers {
		if s.ID == id {
			return text + fmt.Sprintf(", LIST cpu %d", s.CPU)
		}
	}
	return text + ", LIST none"
}

func TestReadLagShowsChangesLate(t *testing.T) {
	const none, one, two = "GET 404, LIST none", "GET 200 cpu 1, LIST cpu 1", "GET 200 cpu 2, LIST cpu 2"
	h := start(t, Options{Quirks: Quirks{ReadLag: Duration(10 * time.Second)}})
	s := h.create("web")
	check := func(when, want string) {
		t.Helper()
		if got := h.sees(s.ID); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	check("created", none)
	h.call(404, "GET", "/servers/"+s.ID+"/status", "")
	h.call(409, "POST", "/servers", `{"name":"web"}`)
	h.clock.Advance(5*time.Second - 1)
	check("created less than half the lag ago", none)
	h.clock.Advance(5*time.Second + 1)
	check("created the lag ago", one)

	h.call(200, "PATCH", "/servers/"+s.ID, `{"cpu":2}`)
	check("changed", one)
	h.clock.Advance(10 * time.Second)
	check("changed the lag ago", two)

	h.call(204, "DELETE", "/servers/"+s.ID, "")
	check("deleted", two)
	h.call(404, "DELETE", "/servers/"+s.ID, "")
	h.clock.Advance(10 * time.Second)
	check("deleted the lag ago", none)

	short := h.create("short-lived")
	h.call(204, "DELETE", "/servers/"+short.ID, "")
	if got := h.sees(short.ID); got != none {
		t.Errorf("created and deleted within the lag: got %s, want %s", got, none)
	}
	if err := h.cloud.SetQuirks(Quirks{}); err != nil {
		t.Fatal(err)
	}
	if got := h.sees(h.create("at once").ID); got != one {
		t.Errorf("without the lag: got %s, want %s", got, one)
	}
}

func TestReadLagDiffersBetweenServersAndIsRepeatable(t *testing.T) {
	lags := func(seed uint64) map[time.Duration]bool {
		h := start(t, Options{Quirks: Quirks{Seed: seed, ReadLag: Duration(time.Minute)}})
		got := map[time.Duration]bool{}
		for i := range 20 {
			own := h.cloud.reads.nextLag()(fmt.Sprint(i))
			if own < 30*time.Second || own > time.Minute {
				t.Errorf("the lag of server %d is %s, want 30s-1m", i, own)
			}
			got[own] = true
		}
		return got
	}
	first := lags(1)
	if len(first) < 10 {
		t.Errorf("20 servers have %d lags", len(first))
	}
	if diff := cmp.Diff(first, lags(1)); diff != "" {
		t.Errorf("lags of the same seed:\n%s", diff)
	}
	if cmp.Equal(first, lags(2)) {
		t.Error("lags of another seed are the same")
	}
}

func TestReadLagKeepsPagesComplete(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ReadLag: Duration(10 * time.Second)}})
	var want []string
	for i := range 5 {
		want = append(want, h.create(fmt.Sprintf("old-%d", i)).Name)
		h.clock.Advance(time.Second)
	}
	h.clock.Advance(10 * time.Second)
	for _, s := range h.cloud.Servers()[1:3] {
		h.call(204, "DELETE", "/servers/"+s.ID, "")
	}
	h.create("new")
	if diff := cmp.Diff(want, h.names("limit=2", 10)); diff != "" {
		t.Errorf("names within the lag (-want +got):\n%s", diff)
	}
	h.clock.Advance(10 * time.Second)
	if diff := cmp.Diff([]string{"old-0", "old-3", "old-4", "new"}, h.names("limit=2", 10)); diff != "" {
		t.Errorf("names after the lag (-want +got):\n%s", diff)
	}
}

func TestReadLagConcernsNetworks(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ReadLag: Duration(10 * time.Second)}})
	n := decodeInto[Network](t, h.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`).body)
	h.call(404, "GET", "/networks/"+n.ID, "")
	if got := h.call(200, "GET", "/networks", "").body; got != `{"networks":[]}`+"\n" {
		t.Errorf("created: got %s, want none", got)
	}
	h.clock.Advance(10 * time.Second)
	h.call(200, "PATCH", "/networks/"+n.ID, `{"gateway":"10.0.0.2"}`)
	if got := decodeInto[Network](t, h.call(200, "GET", "/networks/"+n.ID, "").body).Gateway; got != "10.0.0.1" {
		t.Errorf("changed: got the gateway %s, want the former one", got)
	}
	h.call(204, "DELETE", "/networks/"+n.ID, "")
	h.call(200, "GET", "/networks/"+n.ID, "")
	h.clock.Advance(10 * time.Second)
	h.call(404, "GET", "/networks/"+n.ID, "")
}

func TestReplicaLagAlternates(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ReplicaLag: Duration(10 * time.Second)}})
	s := h.create("web")
	var got []int
	for range 4 {
		got = append(got, h.send("GET", "/servers/"+s.ID, "").status)
	}
	if diff := cmp.Diff([]int{200, 404, 200, 404}, got); diff != "" {
		t.Errorf("GETs within the lag (-want +got):\n%s", diff)
	}
	h.clock.Advance(10 * time.Second)
	h.call(200, "GET", "/servers/"+s.ID, "")
	h.call(200, "GET", "/servers/"+s.ID, "")
}

func TestHistoryForgetsWhatNoReadNeeds(t *testing.T) {
	h := start(t, Options{Quirks: Quirks{ReadLag: Duration(time.Second)}})
	for i := range 10 {
		h.create(fmt.Sprint("web-", i))
		h.clock.Advance(time.Second)
	}
	if got := len(h.cloud.core.st.pastServers); got > 1 {
		t.Errorf("%d versions are kept, want those of the last second", got)
	}
}

func TestListCapShowsTheOldestServers(t *testing.T) {
	for name, tc := range map[string]struct {
		profile Profile
		query   string
		want    []string
	}{
		"one page":                  {Extended, "", []string{"a-0", "b-1", "a-2"}},
		"pages of two":              {Extended, "limit=2", []string{"a-0", "b-1", "a-2"}},
		"a filter: caps its result": {Extended, "label=kind%3Da&limit=2", []string{"a-0", "a-2", "a-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{Profile: tc.profile, Quirks: Quirks{ListCap: 3}})
			for i := range 8 {
				kind := string("ab"[i%2])
				h.call(201, "POST", "/servers", fmt.Sprintf(`{"name":"%[1]s-%[2]d","labels":{"kind":%[1]q}}`, kind, i))
				h.clock.Advance(time.Second)
			}
			if diff := cmp.Diff(tc.want, h.names(tc.query, 10)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	core := start(t, Options{Profile: Core, SeedServers: 5, Quirks: Quirks{ListCap: 3}})
	if got := decodeInto[[]Server](t, core.call(200, "GET", "/servers", "").body); len(got) != 3 {
		t.Errorf("a core cloud lists %d servers, want 3", len(got))
	}
}
