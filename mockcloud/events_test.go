package mockcloud

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var withEvents = map[Capability]bool{Events: true}

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	token string
	close func()
}

func (h *harness) stream(since string) *stream {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", h.url+"/events?since="+since, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("got %d %s", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	closing := func() { cancel(); _ = answer.Body.Close() }
	h.t.Cleanup(closing)
	return &stream{t: h.t, lines: bufio.NewScanner(answer.Body), close: closing}
}

// next returns "type name" of the next event, or "end".
func (s *stream) next() string {
	s.t.Helper()
	for s.lines.Scan() {
		data, found := strings.CutPrefix(s.lines.Text(), "data: ")
		if !found {
			continue
		}
		var e struct {
			Token, Type, ID string
			Server          *Server
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			s.t.Fatal(err)
		}
		s.token = e.Token
		if e.Server != nil {
			return e.Type + " " + e.Server.Name
		}
		return e.Type
	}
	return "end"
}

func (s *stream) expect(want ...string) {
	s.t.Helper()
	var got []string
	for range want {
		got = append(got, s.next())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestEventsReportEveryChange(t *testing.T) {
	h := start(t, Options{Capabilities: withEvents, Behaviour: Behaviour{BuildTime: Duration(time.Minute)}})
	s := h.stream("")
	s.expect("ready")
	id := decodeInto[Server](t, h.call(202, "POST", "/servers", `{"name":"web"}`).body).ID
	s.expect("server.created web")
	// The end of the build is an event although there is no call.
	h.clock.Advance(time.Minute)
	s.expect("server.updated web")
	h.call(200, "PATCH", "/servers/"+id, `{"cpu":2}`)
	h.call(204, "DELETE", "/servers/"+id, "")
	s.expect("server.updated web", "server.deleted")
}

func TestEventsResumeAfterAToken(t *testing.T) {
	h := start(t, Options{Capabilities: withEvents})
	s := h.stream("")
	s.expect("ready")
	h.create("a")
	s.expect("server.created a")
	h.cloud.DropStreams()
	s.expect("end")
	h.create("b")
	h.create("c")
	s = h.stream(s.token)
	s.expect("ready", "server.created b", "server.created c")
}

func TestLostEventsAreNotSent(t *testing.T) {
	h := start(t, Options{Capabilities: withEvents})
	s := h.stream("")
	s.expect("ready")
	h.cloud.LoseEvents(2)
	h.create("a")
	h.create("b")
	h.create("c")
	s.expect("server.created c")
}

func TestExpiredTokensAreRejected(t *testing.T) {
	h := start(t, Options{Capabilities: withEvents})
	h.call(410, "GET", "/events?since=otherrun-3", "")
	h.call(410, "GET", "/events?since="+h.cloud.events.epoch+"-9", "")
	h.call(400, "GET", "/events?since=x", "")
	h.call(410, "GET", "/events", "", "Last-Event-ID", "otherrun-3")
	for range 2*eventsKept + 1 {
		h.cloud.events.publish(epoch, EventUpdated, &record{})
	}
	h.call(410, "GET", "/events?since="+h.cloud.events.token(5), "")
}

func TestFaultsApplyToEventStreams(t *testing.T) {
	h := start(t, Options{Capabilities: withEvents, Faults: []Fault{{Match: Match{Path: "/events"}, Status: 503}}})
	h.call(503, "GET", "/events", "")
}
