package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/privatecloud/operator/mockcloud"
)

// replayedCall is a call of a manager that the simulation has, too.
type replayedCall struct {
	// name is that of the simulation; key has the manager and a number, too.
	name, key string
	manager   int
	side      string
	changes   bool
	sentAt    time.Time
	send      func() (*http.Response, error)
	// dead is closed when its manager is killed before the call is sent on.
	dead chan struct{}
}

// expected is a call that decisions of the trace are about.
type expected struct {
	// here is closed when the call is on its way.
	here chan struct{}
	// do receives what happens to it next, and done is sent when it has happened.
	do, done chan string
}

// aboutCall returns what a decision does to a call, and the key of the call.
func aboutCall(decision string) (do, key string, ok bool) {
	for _, do := range []string{"arrive", "answer", "lose the answer to", "delay", "late", "never"} {
		if call, ok := strings.CutPrefix(decision, do+" "); ok {
			return do, keyOf(call), true
		}
	}
	if why, call, ok := strings.Cut(decision, ": "); ok && refusals[why].Status != 0 {
		return why, keyOf(call), true
	}
	return "", "", false
}

// keyOf returns the key of a call as a trace names it, without the name of a network, which differs between runs.
func keyOf(call string) string {
	name, number, _ := strings.Cut(call, " #")
	if verb, _, ok := strings.Cut(name, " network "); ok {
		name = verb + " network"
	}
	return name + " #" + number
}

// intercept holds a call until the trace lets it go on.
func (r *replay) intercept(side string, to http.RoundTripper, req *http.Request) (*http.Response, error) {
	send, body, err := buffered(to, req)
	if err != nil {
		return nil, err
	}
	name := r.nameOf(side, req, body)
	switch {
	case name == "" && len(body) > 0:
		return send()
	case name == "":
		return to.RoundTrip(req)
	}
	c := &replayedCall{name: name, side: side, changes: changes(req.Method), sentAt: time.Now(), send: send, dead: make(chan struct{})}
	about := r.register(c)
	if about != nil {
		return r.follow(c, about)
	}
	select {
	case <-r.calls():
	case <-r.ended:
	case <-c.dead:
		return nil, errCut
	}
	return r.forward(c)
}

// register numbers a call, and returns what the trace says about it, nil if nothing. Calls of a manager that is resumed
// after another one was started count as calls of the later one.
func (r *replay) register(c *replayedCall) *expected {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.manager = r.started
	base := fmt.Sprintf("manager-%d %s", c.manager, c.name)
	r.numbers[base]++
	c.key = fmt.Sprintf("%s #%d", base, r.numbers[base])
	r.held = append(r.held, c)
	if c.changes {
		r.last = time.Now()
	}
	about := r.expected[c.key]
	if about != nil {
		close(about.here)
	}
	return about
}

// calls returns a channel that is closed while calls go on.
func (r *replay) calls() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.goOn
}

// forward sends a call on, unless its manager was killed meanwhile or an outage refuses it.
func (r *replay) forward(c *replayedCall) (*http.Response, error) {
	r.mu.Lock()
	outage := r.outage
	r.mu.Unlock()
	switch {
	case !r.release(c):
		return nil, errCut
	case outage != "" && c.side == cloudSide:
		return c.refuse(c.inOutage(outage))
	case !c.changes:
		return c.send()
	}
	r.count(1)
	defer r.count(-1)
	return c.send()
}

// release takes a call off those that are held, and reports whether it was one of them.
func (r *replay) release(c *replayedCall) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.held, c)
	if i < 0 {
		return false
	}
	r.held = slices.Delete(r.held, i, i+1)
	return true
}

// count counts the changes that have no answer.
func (r *replay) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changing, r.last = r.changing+n, time.Now()
}

// rests reports whether nothing but polls was sent for a time, and all that was sent is answered.
func (r *replay) rests(since time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changing == 0 && time.Since(r.last) > since
}

// follow does to a call what the trace says.
func (r *replay) follow(c *replayedCall, about *expected) (resp *http.Response, err error) {
	arrived := false
	for {
		do := "answer"
		select {
		case do = <-about.do:
		case <-r.ended:
		case <-c.dead:
			return nil, errCut
		}
		if !arrived && slices.Contains([]string{"arrive", "answer", "lose the answer to"}, do) {
			resp, err = r.forward(c)
			arrived = true
		}
		switch do {
		case "arrive":
			about.done <- do
			continue
		case "answer":
			about.done <- do
			return resp, err
		case "lose the answer to":
			discard(resp, err)
			do = "lost"
		case "delay":
			r.delay(c)
			do = "lost"
		default:
			r.release(c)
		}
		about.done <- do
		return c.refuse(do)
	}
}

// instruct has something happen to a call, and reports whether it did: not if its manager is gone.
func (r *replay) instruct(about *expected, do string) bool {
	select {
	case about.do <- do:
	case <-time.After(time.Second):
		return false
	}
	select {
	case <-about.done:
		return true
	case <-time.After(busy):
		return false
	}
}

// delay makes a request late, unless it is already.
func (r *replay) delay(c *replayedCall) {
	if !r.release(c) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late[c.key] = c
}

// takeEffect has a late request take effect, if it has not yet, and reports whether there was one.
func (r *replay) takeEffect(key string) bool {
	r.mu.Lock()
	c, was := r.late[key]
	if was {
		r.late[key] = nil
	}
	r.mu.Unlock()
	if c != nil {
		discard(c.send())
	}
	return was
}

// forget has a late request take no effect, and reports whether it could: not if it has taken effect.
func (r *replay) forget(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.late[key] != nil
	delete(r.late, key)
	return was
}

// overdue returns the keys of the late requests that are older than an age.
func (r *replay) overdue(age time.Duration) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []string
	for key, c := range r.late {
		if c != nil && time.Since(c.sentAt) > age && (age == 0 || !r.tardy || !strings.HasPrefix(c.name, "cloud create ")) {
			keys = append(keys, key)
		}
	}
	return keys
}

// killed ends the calls of a manager. Its changes that are on their way are late.
func (r *replay) killed(manager int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(c *replayedCall) bool {
		if c.manager != manager {
			return false
		}
		if c.changes {
			r.late[c.key] = c
		}
		close(c.dead)
		return true
	})
}

// resume gives the answer that is held, and lets calls go on.
func (r *replay) resume() {
	r.giveAnswer()
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.goOn:
	default:
		close(r.goOn)
	}
	r.last = time.Now()
}

// hold holds calls from now on.
func (r *replay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.goOn:
		r.goOn = make(chan struct{})
	default:
	}
}

// giveAnswer gives the answer that is held, unless the trace says later what happens to it.
func (r *replay) giveAnswer() {
	later := slices.ContainsFunc(r.next, func(decision string) bool {
		_, key, ok := aboutCall(decision)
		return ok && key == r.arrived
	})
	if r.arrived == "" || later {
		return
	}
	r.instruct(r.expected[r.arrived], "answer")
	r.arrived = ""
}

// servers returns the ids of the servers that the operator created, the oldest first. The simulation numbers them.
func (r *replay) servers() []string {
	var ids []string
	for _, e := range r.world.mock.Ledger() {
		if e.Op == mockcloud.OpCreate && e.By == mockcloud.ByClient && e.ServerID != "" {
			ids = append(ids, e.ServerID)
		}
	}
	return ids
}

// refusals are answers in place of the cloud's. 407 proves that the request did not reach the cloud, and 504 does not.
var refusals = map[string]mockcloud.Problem{
	"unavailable": {Status: http.StatusProxyAuthRequired},
	"throttled":   {Status: http.StatusTooManyRequests, Code: mockcloud.CodeRateLimited},
	"busy":        {Status: http.StatusConflict, Code: mockcloud.CodeInvalidState},
	"full":        {Status: http.StatusForbidden, Code: mockcloud.CodeQuotaExceeded},
	"gateway":     {Status: http.StatusNotFound},
	"lagging":     {Status: http.StatusNotFound, Code: mockcloud.CodeNotFound},
	"lost":        {Status: http.StatusGatewayTimeout},
}

// refuse answers a call in place of the server.
func (c *replayedCall) refuse(why string) (*http.Response, error) {
	switch {
	case c.side == cloudSide:
	case why == "lost":
		return nil, errCut
	default:
		return refusal(apierrors.NewServiceUnavailable("injected"))(), nil
	}
	body, err := json.Marshal(refusals[why])
	return &http.Response{
		StatusCode: refusals[why].Status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// inOutage returns how a call fails in an outage: a gateway in front of the cloud answers 404 to calls about one server.
func (c *replayedCall) inOutage(why string) string {
	about := strings.TrimPrefix(c.name, "cloud ")
	if why == "gateway" && (strings.HasPrefix(about, "get ") || c.changes && !strings.HasPrefix(about, "create ")) {
		return why
	}
	return "unavailable"
}
