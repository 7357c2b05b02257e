package mockcloud

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// overviews is a stream of overviews.
type overviews struct {
	*harness
	lines *bufio.Scanner
}

func (h *harness) overviews(filter string) *overviews {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), "GET", h.admin+"/admin/overview?filter="+filter, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = answer.Body.Close() })
	if got := answer.Header.Get("Content-Type"); answer.StatusCode != 200 || got != "text/event-stream" {
		h.t.Fatalf("got %d %s", answer.StatusCode, got)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return &overviews{harness: h, lines: lines}
}

// next returns the parts of the next overview, which are n, by name.
func (o *overviews) next(n int) map[string]string {
	o.t.Helper()
	parts, name := map[string]string{}, ""
	for len(parts) < n && o.lines.Scan() {
		line := o.lines.Text()
		if event, found := strings.CutPrefix(line, "event: "); found {
			name = event
		}
		if data, found := strings.CutPrefix(line, "data: "); found {
			parts[name] = data
		}
	}
	if len(parts) < n {
		o.t.Fatalf("the stream ended after %v: %v", parts, o.lines.Err())
	}
	return parts
}

// tick lets the next overview be sent.
func (o *overviews) tick() {
	o.t.Helper()
	o.clock.AwaitWaiters(1)
	o.clock.Advance(overviewInterval)
}

func TestOverviewSendsOnlyThePartsThatChanged(t *testing.T) {
	h := start(t, Options{})
	stream := h.overviews("")
	first := stream.next(6)
	if got := decodeInto[excerpt[Host]](t, first["hosts"]); got.Total != 4 || len(got.Items) != 4 {
		t.Errorf("hosts: got %+v, want the 4 of the default", got)
	}
	h.create("web")
	stream.tick()
	second := stream.next(4)
	var names []string
	for name := range second {
		names = append(names, name)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"hosts", "ledger", "servers", "summary"}, names); diff != "" {
		t.Errorf("parts after a create (-want +got):\n%s", diff)
	}
	got := decodeInto[summary](t, second["summary"])
	want := summary{At: epoch.Add(overviewInterval), Profile: Extended, Servers: map[State]int{StateActive: 1}, CPUUtilization: new(50.0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	h.fault(Fault{ID: "outage", Status: 503, Body: strings.Repeat("é", 1000)})
	stream.tick()
	faults := decodeInto[excerpt[faultSummary]](t, stream.next(2)["faults"])
	if len(faults.Items) != 1 || faults.Items[0].ID != "outage" || len(faults.Items[0].Description) > maxDescription+len("…") {
		t.Errorf("faults: got %+v, want a short description of outage", faults)
	}
}

func TestOverviewHasTheNewestServersThatMatch(t *testing.T) {
	h := start(t, Options{SeedServers: 1000})
	h.create("web")
	for filter, want := range map[string]struct {
		total, shown int
		first        string
	}{
		"":               {1001, overviewItems, "web"},
		"WEB":            {1, 1, "web"},
		"stranger-0099":  {10, 10, "stranger-00999"},
		"host-1":         {251, overviewItems, "web"},
		"active":         {1001, overviewItems, "web"},
		"nothing%20such": {0, 0, ""},
	} {
		t.Run(filter, func(t *testing.T) {
			got := decodeInto[excerpt[Server]](t, h.overviews(filter).next(6)["servers"])
			first := ""
			if len(got.Items) > 0 {
				first = got.Items[0].Name
			}
			if got.Total != want.total || len(got.Items) != want.shown || first != want.first {
				t.Errorf("got %d of %d from %q, want %d of %d from %q", len(got.Items), got.Total, first, want.shown, want.total, want.first)
			}
		})
	}
	if got := h.sendTo(h.admin, "GET", "/admin/overview?filter="+strings.Repeat("a", maxText+1), ""); got.status != 400 {
		t.Errorf("a filter that is too long: got %d, want 400", got.status)
	}
}

func TestOverviewEndsWithTheStreams(t *testing.T) {
	h := start(t, Options{})
	stream := h.overviews("")
	stream.next(6)
	h.cloud.DropStreams()
	for stream.lines.Scan() {
		if stream.lines.Text() != "" {
			t.Errorf("got %q, want the end", stream.lines.Text())
		}
	}
	if err := stream.lines.Err(); err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
}

func BenchmarkOverview(b *testing.B) {
	for _, servers := range []int{1000, 50_000} {
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			cloud, err := New(Options{SeedServers: servers, Behaviour: Behaviour{Utilisation: "sine"}})
			if err != nil {
				b.Fatal(err)
			}
			defer cloud.Close()
			for b.Loop() {
				o := cloud.overviews.overview("no such server")
				o.parts()
			}
		})
	}
}
