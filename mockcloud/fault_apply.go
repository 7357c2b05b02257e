package mockcloud

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
)

// answer is the response to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
	// stream writes a body that is too large for memory. It is used instead of body.
	stream func(http.ResponseWriter)
}

// recorder records the response of the handler.
type recorder struct {
	answer
	wrote bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(data []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.wrote.Write(data)
}

// faultStage serves calls of the API with faults.
type faultStage struct {
	core       *core
	faults     *faultSet
	sender     *sender
	quirkStage *quirkStage
}

// serve serves a call with the faults that fired: those before the effect,
// the handler, those after the effect, and those that change the response.
func (s *faultStage) serve(w http.ResponseWriter, r *request, to route, fired []*activeFault) {
	if s.wait(fired, Before) {
		abort(w)
		return
	}
	out, reset := refusal(fired, Before)
	if reset {
		abort(w)
		return
	}
	if out == nil {
		r.Request = r.WithContext(withListFaults(r.Context(), listFaultsFrom(fired)))
		if to.streams || passesThrough(fired) {
			s.quirkStage.serve(w, r, to)
			return
		}
		rec := &recorder{answer: answer{header: w.Header().Clone()}}
		s.quirkStage.serve(rec, r, to)
		rec.WriteHeader(http.StatusOK)
		rec.body = rec.wrote.Bytes()
		out = &rec.answer
		replaced, reset := refusal(fired, After)
		if s.wait(fired, After) || reset {
			abort(w)
			return
		}
		if replaced != nil {
			out = replaced
		}
	}
	pace := 0
	for _, f := range fired {
		out.applyFault(f)
		if f.BytesPerSecond > 0 {
			pace = f.BytesPerSecond
		}
	}
	s.sender.send(w, r, out, cut(fired), pace)
}

// passesThrough reports whether no fault changes the response of the handler.
func passesThrough(fired []*activeFault) bool {
	for _, f := range fired {
		if f.Answer == After || f.changesResponse() {
			return false
		}
	}
	return true
}

// wait applies the delays and holds before or after the effect and reports whether
// to drop the call.
func (s *faultStage) wait(fired []*activeFault, when string) (drop bool) {
	for _, f := range fired {
		if f.when() != when {
			continue
		}
		if f.Delay > 0 {
			s.sender.pause(durationOf(f.Delay))
		}
		if f.Hold && s.faults.hold(f, s.core.closed) {
			return true
		}
	}
	return false
}

func (f *Fault) when() string {
	if f.Answer == "" {
		return Before
	}
	return f.Answer
}

// refusal returns the response of the first fault that has one before or after the
// effect.
func refusal(fired []*activeFault, when string) (out *answer, reset bool) {
	for _, f := range fired {
		if f.when() != when || !f.replaces() {
			continue
		}
		if f.Reset {
			return nil, true
		}
		out := &answer{status: f.status(), header: http.Header{}}
		if f.Redirect != "" {
			out.header.Set("Location", f.Redirect)
		}
		if f.status() >= 400 {
			out.header.Set("Content-Type", "application/problem+json")
			p := problem(f.status(), codeOf(f.status()), "fault %s", f.ID)
			out.body = encoded("", f.ID, p).Value
		}
		return out, false
	}
	return nil, false
}

// applyFault applies a fault that changes a response.
func (a *answer) applyFault(f *activeFault) {
	if f.replacesBody() {
		a.body, a.stream = nil, nil
		a.header.Set("Content-Type", "application/json")
	}
	switch {
	case f.Body != "":
		a.body = []byte(f.Body)
	case f.HugeBytes > 0:
		a.stream = hugeBody(f.HugeBytes)
	case f.Depth > 0:
		a.body = []byte(`{"servers":` + strings.Repeat("[", f.Depth) + strings.Repeat("]", f.Depth) + `}`)
	}
	if f.Repeat != nil {
		a.stream = f.Repeat.body(f.bodies.Add(1))
	}
	if f.Corrupt != "" {
		a.body = corrupt(a.body, f.Corrupt)
	}
	if f.RetryAfter != "" {
		a.header.Set("Retry-After", f.RetryAfter)
	}
	if f.ContentType != "" {
		a.header.Set("Content-Type", f.ContentType)
	}
	for name, value := range f.Headers {
		a.header.Set(name, value)
	}
	if f.Gzip {
		a.compress()
	}
}

func cut(fired []*activeFault) *Truncation {
	for _, f := range fired {
		if f.Truncate != nil {
			return f.Truncate
		}
	}
	return nil
}

// abort ends a call without a response: with a TCP reset if the connection can be
// hijacked, otherwise with a stream reset.
func abort(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	raw := conn
	if secured, ok := conn.(*tls.Conn); ok {
		raw = secured.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = raw.Close()
}
