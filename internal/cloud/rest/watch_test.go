package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// streaming is a cloud that sends events. Each stream is written by the next of its
// scripts; the last one serves all further streams.
type streaming struct {
	mu       sync.Mutex
	scripts  []func(w io.Writer, flush func(), r *http.Request) (status int)
	requests []string
}

func (s *streaming) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.URL.RequestURI())
	s.mu.Unlock()
	if r.URL.Path == "/servers" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"servers":[{"id":"i-1","name":"web"}]}`)
		return
	}
	s.mu.Lock()
	script := s.scripts[0]
	if len(s.scripts) > 1 {
		s.scripts = s.scripts[1:]
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := func() { _ = http.NewResponseController(w).Flush() }
	if status := script(w, flush, r); status != 0 {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"code":"tokenExpired"}`)
	}
}

// data is an event, with a token.
func data(n int, kind, more string) string {
	return fmt.Sprintf("id: t-%d\nevent: %s\ndata: {\"token\":\"t-%d\",\"type\":%q%s}\n\n", n, kind, n, kind, more)
}

// sends writes events, waits, and ends the stream; with 0, it stays open.
func sends(after time.Duration, events ...string) func(io.Writer, func(), *http.Request) int {
	return func(w io.Writer, flush func(), r *http.Request) int {
		for _, e := range events {
			_, _ = io.WriteString(w, e)
		}
		flush()
		ended := make(<-chan time.Time)
		if after > 0 {
			ended = time.After(after)
		}
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		return 0
	}
}

func expired(io.Writer, func(), *http.Request) int { return http.StatusGone }

// watchAll watches until the cloud reported n changes, and returns them as text.
func watchAll(t *testing.T, c *Client, n int) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	err := c.Watch(ctx, func(change cloud.Change) error {
		text := strings.Join(change.Gone, " ")
		for _, s := range change.Servers {
			text += s.ID + " " + string(s.State)
		}
		if change.Complete {
			text = "all: " + text
		}
		if got = append(got, text); len(got) == n {
			return errEnough
		}
		return nil
	})
	return got, err
}

var errEnough = &cloud.Error{Kind: cloud.Rejected, Op: "test", Detail: "enough"}

const (
	stopped = `,"id":"i-1","server":{"id":"i-1","name":"web","state":"STOPPED"}`
	gone    = `,"id":"i-1"`
)

func TestWatchReportsEvents(t *testing.T) {
	t.Parallel()
	cloudOf := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{sends(0,
		data(1, eventReady, ""), ": still here\n\n", "data:\n\n", data(2, "something.new", ""),
		strings.ReplaceAll(data(3, eventUpdated, stopped), "\n", "\r\n"),
		"data: {\"token\":\"t-4\",\ndata: \"type\":\"server.deleted\",\"id\":17}\n\n",
	)}}
	c := serve(t, cloudOf).withCapabilities(cloud.Events, cloud.Sizing)
	got, err := watchAll(t, c, 3)
	if !errors.Is(err, errEnough) {
		t.Errorf("Watch: %v, want the error of the caller", err)
	}
	if diff := cmp.Diff([]string{"all: i-1 ACTIVE", "i-1 STOPPED", "17"}, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestWatchContinuesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	lasting := minStream + 50*time.Millisecond
	for name, test := range map[string]struct {
		second, third func(io.Writer, func(), *http.Request) int
		want          []string
		wantRequests  []string
		detail        string
	}{
		"the cloud has the events": {
			second: sends(0, data(2, eventReady, ""), data(3, eventDeleted, gone)),
			want:   []string{"all: i-1 ACTIVE", "i-1 STOPPED", "i-1"},
		},
		"the next stream breaks before it brings them": {
			second:       sends(lasting, data(9, eventReady, "")),
			third:        sends(0, data(2, eventReady, ""), data(3, eventDeleted, gone)),
			want:         []string{"all: i-1 ACTIVE", "i-1 STOPPED", "i-1"},
			wantRequests: []string{"/events", "/servers", "/events?since=t-2", "/events?since=t-2"},
		},
		"the cloud does not have them": {
			second: expired, want: []string{"all: i-1 ACTIVE", "i-1 STOPPED"},
			detail: "watch servers: the cloud does not have the events since the last one any more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{
				sends(lasting, data(1, eventReady, ""), data(2, eventUpdated, stopped)), test.second,
			}}
			if test.third != nil {
				s.scripts = append(s.scripts, test.third)
			}
			got, err := watchAll(t, serve(t, s).withCapabilities(cloud.Events), 3)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			want := test.wantRequests
			if want == nil {
				want = []string{"/events", "/servers", "/events?since=t-2"}
			}
			if diff := cmp.Diff(want, s.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if test.detail != "" {
				wantText(t, err, test.detail)
				wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
			}
		})
	}
}

func TestStreamThatEndsAtOnceIsNotContinued(t *testing.T) {
	t.Parallel()
	s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{sends(time.Millisecond, data(1, eventReady, ""))}}
	_, err := watchAll(t, serve(t, s).withCapabilities(cloud.Events), 9)
	wantText(t, err, "watch servers: the stream of events ended")
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
}

func TestUnusableStreams(t *testing.T) {
	t.Parallel()
	ready := data(1, eventReady, "")
	for name, test := range map[string]struct {
		events []string
		want   string
	}{
		"no ready":              {[]string{data(1, eventUpdated, stopped)}, "the stream of events does not begin with ready"},
		"no JSON":               {[]string{"data: {\n\n"}, "the answer is not valid JSON"},
		"no object":             {[]string{"data: []\n\n"}, "a value of the wrong type in the answer"},
		"no token":              {[]string{"data: {\"type\":\"ready\"}\n\n"}, "an event has no token that can be sent"},
		"a token with a space":  {[]string{"data: {\"type\":\"ready\",\"token\":\"a b\"}\n\n"}, "an event has no token that can be sent"},
		"a long token":          {[]string{fmt.Sprintf("data: {\"type\":\"ready\",\"token\":%q}\n\n", strings.Repeat("t", maxToken+1))}, "an event has no token that can be sent"},
		"an update of nothing":  {[]string{ready, data(2, eventUpdated, "")}, "the server of an event: it has no id"},
		"a deletion of nothing": {[]string{ready, data(2, eventDeleted, "")}, "the server of an event: it has no id"},
		"a line without end":    {[]string{ready, "data: ", strings.Repeat("x", 2*maxElement)}, "a value in the answer is larger than 256 KiB"},
		"an event without end":  {[]string{ready, strings.Repeat("data: xxxxxxxxxxxxxxxxxxxxxxxxx\n", maxElement/32+1)}, "a value in the answer is larger than 256 KiB"},
		"comments without end":  {[]string{ready, strings.Repeat(":\n", maxElement/2+1)}, "a value in the answer is larger than 256 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{sends(0, test.events...)}}
			_, err := watchAll(t, serve(t, s).withCapabilities(cloud.Events), 9)
			wantText(t, err, "watch servers: "+test.want)
			wantOutcome(t, err, outcome{Kind: cloud.Unreadable})
		})
	}
}

func TestEventOfAServerWithoutANameIsReportedIfItIsSomebodyElses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has  []cloud.Capability
		want bool
	}{
		"with labels":    {[]cloud.Capability{cloud.Events, cloud.Labels}, true},
		"without labels": {[]cloud.Capability{cloud.Events}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{
				sends(0, data(1, eventReady, ""), data(2, eventUpdated, `,"id":"i-2","server":`+nameless("i-2"))),
			}}
			got, err := watchAll(t, serve(t, s).withCapabilities(test.has...), 9)
			if slices.Contains(got, "i-2 ACTIVE") != test.want {
				t.Errorf("changes %q, want the server: %t", got, test.want)
			}
			if !test.want {
				wantText(t, err, "watch servers: the server of an event: it has no name")
				wantOutcome(t, err, outcome{Kind: cloud.Unreadable})
			}
		})
	}
}

func TestWatchOfACloudThatAnswersOtherwise(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reply reply
		want  outcome
	}{
		"JSON":      {reply{status: 200, body: `{"events":[]}`}, outcome{Kind: cloud.Unreadable}},
		"a page":    {reply{status: 200, media: "text/html", body: "<html>"}, outcome{Kind: cloud.Unreadable}},
		"not found": {reply{status: 404, media: "text/plain", body: "no"}, outcome{Kind: cloud.Unreadable}},
		"refused":   {problemReply(401, "unauthorized"), outcome{Kind: cloud.Unauthorized}},
		"away":      {problemReply(503, "unavailable"), outcome{Kind: cloud.Unavailable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := answering(test.reply)
			_, err := watchAll(t, serve(t, s).withCapabilities(cloud.Events), 1)
			wantOutcome(t, err, test.want)
			if n := s.count(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// A stream has neither the timeout of a call nor a share of the limits.
func TestOpenStreamDelaysNoCall(t *testing.T) {
	t.Parallel()
	s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{
		func(w io.Writer, flush func(), r *http.Request) int {
			_, _ = io.WriteString(w, data(1, eventReady, ""))
			flush()
			select {
			case <-time.After(500 * time.Millisecond):
			case <-r.Context().Done():
			}
			return sends(0, data(2, eventUpdated, stopped))(w, flush, r)
		},
	}}
	c := serve(t, s, func(cfg *Config) {
		cfg.Timeout = 100 * time.Millisecond
		cfg.Limits = Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1}
	}).withCapabilities(cloud.Events)
	got, err := watchAll(t, c, 2) // lists the servers while the stream is open
	if !errors.Is(err, errEnough) {
		t.Errorf("Watch: %v after %v", err, got)
	}
}

// What comes before a stream is bounded as any call is: a login that does not end would
// delay all other calls.
func TestStreamThatDoesNotOpenTimesOut(t *testing.T) {
	t.Parallel()
	hang := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	}
	for name, handler := range map[string]*http.ServeMux{
		"the login does not end":   mux("/sessions", hang(http.StatusCreated)),
		"a refusal does not end":   mux("/sessions", http.HandlerFunc(answering(reply{status: 201, body: `{"token":"t"}`}).ServeHTTP), "/events", hang(http.StatusServiceUnavailable)),
		"another type, and no end": mux("/sessions", http.HandlerFunc(answering(reply{status: 201, body: `{"token":"t"}`}).ServeHTTP), "/events", hang(http.StatusAccepted)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, handler, func(cfg *Config) {
				cfg.Timeout = 100 * time.Millisecond
				cfg.Credentials = Credentials{Username: "user", Password: "pass"}
			}).withCapabilities(cloud.Events)
			began := time.Now()
			_, err := watchAll(t, c, 1)
			wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
			if took := time.Since(began); took > time.Minute {
				t.Errorf("Watch took %s", took)
			}
		})
	}
}

// mux returns a mux of paths and their handlers.
func mux(pairs ...any) *http.ServeMux {
	m := http.NewServeMux()
	for n := 0; n < len(pairs); n += 2 {
		m.HandleFunc(pairs[n].(string), pairs[n+1].(http.HandlerFunc))
	}
	return m
}

// silence is a body that brings an event and then nothing until its request ends.
type silence struct {
	start io.Reader
	ctx   context.Context
}

func (s silence) Read(p []byte) (int, error) {
	if n, err := s.start.Read(p); n > 0 || err == nil {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (silence) Close() error { return nil }

func TestSilentStreamIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, streams := time.Now(), 0
		ctx, cancel := context.WithCancel(t.Context())
		c := newClientOver(t, transportFunc(func(r *http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			if r.URL.Path == "/servers" {
				answer.Header().Set("Content-Type", "application/json")
				_, _ = answer.WriteString("[]")
				return answer.Result(), nil
			}
			streams++
			if streams == 3 {
				cancel()
			}
			response := answer.Result()
			response.Header.Set("Content-Type", "text/event-stream")
			response.Body = silence{strings.NewReader(data(1, eventReady, "")), r.Context()}
			response.Request = r
			return response, nil
		}), "http://cloud.test").withCapabilities(cloud.Events)
		err := c.Watch(ctx, func(cloud.Change) error { return nil })
		wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
		if took := time.Since(start); streams != 3 || took != 2*maxSilence {
			t.Errorf("%d streams in %s, want 3 in %s", streams, took, 2*maxSilence)
		}
	})
}

func TestWatchIsNotForAClosedClient(t *testing.T) {
	t.Parallel()
	s := &streaming{scripts: []func(io.Writer, func(), *http.Request) int{sends(0, data(1, eventReady, ""))}}
	c := serve(t, s).withCapabilities(cloud.Events)
	c.Close(t.Context())
	_, err := watchAll(t, c, 1)
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
}
