package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// effect is a call that changes something, in the order of arrival.
type effect struct {
	// n counts from 1; 0 for an effect that is not counted.
	n int
	// side is kubernetesSide or cloudSide.
	side   string
	method string
	// path is without API group and namespace, which are the same for all.
	path string
}

func (e effect) String() string {
	return fmt.Sprintf("%d %s %s %s", e.n, e.side, e.method, e.path)
}

// phase is what happens to the effect at which the manager is killed.
type phase int

const (
	// before: it does not take effect.
	before phase = iota
	// after: it takes effect and the answer is lost.
	after
	// late: it takes effect once the next manager works.
	late
)

func (p phase) String() string { return [...]string{"before", "after", "late"}[p] }

// errCut ends a call without an answer.
var errCut = errors.New("cut off")

// answer replaces the answer to a call.
type answer struct {
	// took: the call takes effect nevertheless.
	took bool
	// response is nil where the connection is cut.
	response func() *http.Response
}

// gate is passed by every effect of a run, from both proxies.
type gate struct {
	mu sync.Mutex
	// counts reports whether an effect is numbered.
	counts      func(effect) bool
	effects     []effect
	all         []effect
	hold        *hold
	respondWith func(effect) *answer
	// intercept, if set, sends requests to the server of a side: reads, and effects that have passed the gate. It has to
	// be set before a manager starts.
	intercept func(side string, to http.RoundTripper, r *http.Request) (*http.Response, error)
	// listings is how many listings of the cloud were answered.
	listings int
}

// hold holds the k-th effect from when it was set.
type hold struct {
	k     int
	phase phase
	hit   bool
	// held receives the effect once it waits for the end of the manager.
	held chan effect
	// dead is done when the manager has ended, and next when another one works.
	dead, next      context.Context
	killed, release context.CancelFunc
}

// ofVMs counts changes of VM objects and of servers. Changes of a Cloud depend on
// when it is polled.
func ofVMs(e effect) bool { return e.side == cloudSide || strings.HasPrefix(e.path, "vms/") }

func ofClouds(e effect) bool { return strings.HasPrefix(e.path, "clouds/") }

func newGate() *gate { return &gate{counts: ofVMs} }

// reset starts counting from 1 again.
func (g *gate) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.effects = nil
}

// holdAt holds the k-th effect from now on; none if k is 0.
func (g *gate) holdAt(k int, p phase) *hold {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = &hold{k: k + len(g.effects), phase: p, held: make(chan effect, 1)}
	g.hold.dead, g.hold.killed = context.WithCancel(context.Background())
	g.hold.next, g.hold.release = context.WithCancel(context.Background())
	return g.hold
}

// cancelHold cancels a hold and reports whether it could: not if an effect was
// held already.
func (g *gate) cancelHold(h *hold) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.hit {
		return false
	}
	g.hold = nil
	return true
}

// holding reports whether an effect is held.
func (g *gate) holding() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hold != nil && g.hold.hit
}

// managerKilled releases what the killed manager had sent, and stops holding
// calls for the next manager.
func (g *gate) managerKilled() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.hold != nil {
		g.hold.killed()
	}
	g.hold = nil
}

// end releases all that waits at the gate, and lets later calls pass.
func (g *gate) end() {
	g.mu.Lock()
	last := g.hold
	g.mu.Unlock()
	g.managerKilled()
	if last != nil {
		last.release()
	}
}

// respond makes fn decide about each effect: it returns an answer to give instead, or nil to let it pass.
func (g *gate) respond(fn func(effect) *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.respondWith = fn
}

// counted returns the effects that were counted.
func (g *gate) counted() []effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.effects)
}

// history returns every effect of the run, counted or not.
func (g *gate) history() []effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.all)
}

func (g *gate) listed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listings++
}

func (g *gate) listingCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listings
}

// pass decides about an effect and forwards it if it may. While an effect is held,
// all others of the manager are dropped: a process that is killed sends nothing more.
func (g *gate) pass(e effect, forward func() (*http.Response, error)) (*http.Response, error) {
	e, h, mine, instead := g.register(e)
	switch {
	case h == nil && instead == nil:
		return forward()
	case h == nil:
		return answered(instead, forward)
	case !mine:
		<-h.dead.Done()
		return nil, errCut
	}
	if h.phase == after {
		discard(forward())
	}
	h.held <- e
	<-h.dead.Done()
	if h.phase == late {
		<-h.next.Done()
		discard(forward())
	}
	return nil, errCut
}

// register numbers the effect and returns what applies to it: a hold, whether it
// is the effect to be held, or another answer.
func (g *gate) register(e effect) (numbered effect, h *hold, mine bool, instead *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts(e) {
		e.n = len(g.effects) + 1
		g.effects = append(g.effects, e)
	}
	g.all = append(g.all, e)
	switch {
	case g.hold != nil && g.hold.hit:
		return e, g.hold, false, nil
	case g.hold != nil && e.n > 0 && e.n == g.hold.k:
		g.hold.hit = true
		return e, g.hold, true, nil
	case g.respondWith != nil:
		return e, nil, false, g.respondWith(e)
	}
	return e, nil, false, nil
}

func answered(with *answer, forward func() (*http.Response, error)) (*http.Response, error) {
	if with.took {
		discard(forward())
	}
	if with.response == nil {
		return nil, errCut
	}
	return with.response(), nil
}

func discard(resp *http.Response, err error) {
	if err == nil {
		_ = resp.Body.Close()
	}
}

// refusal returns an answer of the API server that is an error.
func refusal(err *apierrors.StatusError) func() *http.Response {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	return func() *http.Response {
		return &http.Response{
			StatusCode: int(status.Code), ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		}
	}
}
