package mockcloud

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
)

// answer is what a call is going to be answered.
type answer struct {
	status int
	header http.Header
	body   []byte
	// stream writes a body too large to be kept; it is used instead of body.
	stream func(http.ResponseWriter)
}

// recorder collects the handler's answer.
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

// serveFaulty takes a call through the faults that fired: what comes before the
// effect, the effect, what comes after it, and what happens to the answer.
func (c *Cloud) serveFaulty(w http.ResponseWriter, r *request, to route, fired []*activeFault) {
	if c.wait(fired, Before) {
		abort(w)
		return
	}
	out, reset := refusal(fired, Before)
	if reset {
		abort(w)
		return
	}
	if out == nil {
		r.Request = r.WithContext(withDistortion(r.Context(), distortionFrom(fired)))
		if to.streams || passesThrough(fired) {
			c.authenticated(w, r, to)
			return
		}
		rec := &recorder{answer: answer{header: w.Header().Clone()}}
		c.authenticated(rec, r, to)
		rec.WriteHeader(http.StatusOK)
		rec.body = rec.wrote.Bytes()
		out = &rec.answer
		replaced, reset := refusal(fired, After)
		if c.wait(fired, After) || reset {
			abort(w)
			return
		}
		if replaced != nil {
			out = replaced
		}
	}
	pace := 0
	for _, f := range fired {
		out.bend(&f.Fault)
		if f.BytesPerSecond > 0 {
			pace = f.BytesPerSecond
		}
	}
	c.send(w, r, out, cut(fired), pace)
}

// passesThrough tells whether the handler's answer may go out as it is made.
func passesThrough(fired []*activeFault) bool {
	for _, f := range fired {
		if f.Answer == After || f.bends() {
			return false
		}
	}
	return true
}

// wait serves delays and holds of one moment and tells whether to drop the call.
func (c *Cloud) wait(fired []*activeFault, when string) (drop bool) {
	for _, f := range fired {
		if f.when() != when {
			continue
		}
		if f.Delay > 0 {
			c.pause(durationOf(f.Delay))
		}
		if f.Hold && c.faults.hold(f, c.closed) {
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

// refusal is the answer of the first fault that has one for this moment.
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

// bend changes an answer the way a fault wants it.
func (a *answer) bend(f *Fault) {
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
}

func cut(fired []*activeFault) *Truncation {
	for _, f := range fired {
		if f.Truncate != nil {
			return f.Truncate
		}
	}
	return nil
}

// abort ends a call without an answer: a TCP reset where the connection can be
// had, a stream reset otherwise.
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
