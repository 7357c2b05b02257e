package mockcloud

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Call is one call of the REST API, with or without a response.
type Call struct {
	Method string `json:"method"`
	// Path is the escaped path as sent.
	Path string `json:"path"`
	// Route is the template, such as /servers/{id}, or "none".
	Route string `json:"route"`
	Query string `json:"query,omitempty"`
	// Status is 0 while the call is in progress and if it got no response.
	Status    int       `json:"status"`
	At        time.Time `json:"at"`
	Took      Duration  `json:"took,omitempty"`
	RequestID string    `json:"requestId"`
	// Faults are the IDs of the faults that fired.
	Faults []string `json:"faults,omitempty"`
}

// CallCount is the number of calls of a route since the last reset.
type CallCount struct {
	Method string `json:"method"`
	Route  string `json:"route"`
	Count  int    `json:"count"`
}

type callKey struct{ method, route string }

// callLog has the last calls in a ring buffer and counts all calls.
type callLog struct {
	mu     sync.Mutex
	ring   []*Call
	next   int
	counts map[callKey]int
	size   int
}

func newCallLog(size int) *callLog {
	return &callLog{size: size, counts: map[callKey]int{}}
}

// begin counts a call when it arrives, so that calls that are held count.
func (l *callLog) begin(call Call) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[callKey{call.Method, call.Route}]++
	kept := &call
	if len(l.ring) < l.size {
		l.ring = append(l.ring, kept)
		return kept
	}
	l.ring[l.next] = kept
	l.next = (l.next + 1) % l.size
	return kept
}

func (l *callLog) finish(call *Call, status int, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call.Status, call.Took = status, Duration(took)
}

func (l *callLog) setFaults(call *Call, faults []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call.Faults = faults
}

func (l *callLog) all() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Call, 0, len(l.ring))
	for i := range l.ring {
		out = append(out, *l.ring[(l.next+i)%len(l.ring)])
	}
	return out
}

func (l *callLog) count(method, route string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := 0
	for key, count := range l.counts {
		if (method == "" || key.method == method) && (route == "" || key.route == route) {
			total += count
		}
	}
	return total
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring, l.next, l.counts = nil, 0, map[callKey]int{}
}

// statusRecorder records the status of the response.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (t *statusRecorder) WriteHeader(status int) {
	if t.status == 0 {
		t.status = status
	}
	t.ResponseWriter.WriteHeader(status)
}

func (t *statusRecorder) Write(data []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	return t.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController flush and hijack.
func (t *statusRecorder) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// callStage logs calls of the API, delays them and finds the faults that fire.
type callStage struct {
	core       *core
	calls      *callLog
	metrics    *metrics
	keys       *keys
	settings   *settings
	faults     *faultSet
	sender     *sender
	faultStage *faultStage
	quirkStage *quirkStage
}

// serve logs a call of the API and serves it with the faults that fire.
func (s *callStage) serve(w http.ResponseWriter, r *request, to route) {
	at := s.core.now()
	call := s.calls.begin(Call{
		Method: r.Method, Path: r.URL.EscapedPath(), Route: to.template,
		Query: r.URL.RawQuery, At: at, RequestID: r.id,
	})
	out := &statusRecorder{ResponseWriter: w}
	defer func() {
		took := s.core.now().Sub(at)
		s.calls.finish(call, out.status, took)
		s.metrics.observe(r.Method, to.template, out.status, took)
	}()
	if err := bufferBody(r); err != nil {
		writeProblem(out, err)
		return
	}
	end, began := s.keys.begin(r, to)
	if !began {
		to.handle = keyInProgress
		s.quirkStage.serve(out, r, to)
		return
	}
	defer end()
	if latency := time.Duration(s.settings.behaviour().Latency); latency > 0 {
		s.sender.pause(latency)
	}
	fired := s.faults.match(r, to)
	if len(fired) == 0 {
		s.quirkStage.serve(out, r, to)
		return
	}
	ids := make([]string, len(fired))
	for i, f := range fired {
		ids[i] = f.ID
		s.metrics.faults.Inc()
	}
	s.calls.setFaults(call, ids)
	s.faultStage.serve(out, r, to, fired)
}

// pause waits for d or until the cloud closes. It does not stop when the client
// disconnects: the effect of a slow call occurs nevertheless.
func (s *sender) pause(d time.Duration) {
	select {
	case <-s.core.clock.After(d):
	case <-s.core.closed:
	}
}

// bufferBody reads the body before any delay, so that a held call has its effect
// even if its client disconnects.
func bufferBody(r *request) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	data, err := readBody(r)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return nil
}

func (l *callLog) handle(w http.ResponseWriter, _ *request) error {
	calls := l.all()
	l.mu.Lock()
	counts := make([]CallCount, 0, len(l.counts))
	for key, count := range l.counts {
		counts = append(counts, CallCount{Method: key.method, Route: key.route, Count: count})
	}
	l.mu.Unlock()
	slices.SortFunc(counts, func(a, b CallCount) int {
		return strings.Compare(a.Route+" "+a.Method, b.Route+" "+b.Method)
	})
	return writeJSON(w, http.StatusOK, map[string]any{"calls": calls, "counts": counts})
}
