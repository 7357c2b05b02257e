package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// effect is a call that changes something, in the order of arrival.
type effect struct {
	// n counts from 1; 0 for an effect that is not counted.
	n int
	// side is kubernetes or cloud.
	side   string
	method string
	// path is without what is the same for all: API group and namespace.
	path string
}

func (e effect) String() string {
	return fmt.Sprintf("%d %s %s %s", e.n, e.side, e.method, e.path)
}

// phase says what becomes of the effect at which the manager is killed.
type phase int

const (
	// before: it never takes place.
	before phase = iota
	// after: it takes place, and nobody hears of it.
	after
	// late: it takes place once the next manager is at work.
	late
)

func (p phase) String() string { return [...]string{"before", "after", "late"}[p] }

// errCut ends a call without an answer.
var errCut = errors.New("cut off")

// answer is what a call gets in place of its own.
type answer struct {
	// took: the effect takes place all the same.
	took bool
	// response is nil where the connection is cut.
	response func() *http.Response
}

// gate is what every effect of a run passes, through whichever proxy.
type gate struct {
	mu sync.Mutex
	// counts tells which effects are numbered.
	counts  func(effect) bool
	effects []effect
	all     []effect
	stop    *stop
	falsify func(effect) *answer
	// listings is how many listings of the cloud were answered.
	listings int
}

// stop holds the k-th effect from when it was set.
type stop struct {
	k     int
	phase phase
	hit   bool
	// held gets the effect once it waits for the manager's death.
	held chan effect
	// dead ends when the manager does, and next begins when another is at work.
	dead, next context.Context
	bury, goOn context.CancelFunc
}

// ofVMs counts what is done to VM objects and to servers. What is said of a
// Cloud depends on when it is polled.
func ofVMs(e effect) bool { return e.side == cloudSide || strings.HasPrefix(e.path, "vms/") }

func ofClouds(e effect) bool { return strings.HasPrefix(e.path, "clouds/") }

func newGate() *gate { return &gate{counts: ofVMs} }

// reset begins to count anew.
func (g *gate) reset() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.effects = nil
}

// stopAt has the k-th effect from now on held; with 0, none.
func (g *gate) stopAt(k int, p phase) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop = &stop{k: k + len(g.effects), phase: p, held: make(chan effect, 1)}
	g.stop.dead, g.stop.bury = context.WithCancel(context.Background())
	g.stop.next, g.stop.goOn = context.WithCancel(context.Background())
	return g.stop
}

// disarm calls a stop off. It fails if an effect is held already, or will be in
// a moment.
func (g *gate) disarm(s *stop) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.hit {
		return false
	}
	g.stop = nil
	return true
}

// buried lets go of what the dead manager had sent, and lets the next one's calls pass.
func (g *gate) buried() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop != nil {
		g.stop.bury()
	}
	g.stop = nil
}

// end lets go of whatever waits at the gate, and what comes later pass.
func (g *gate) end() {
	g.mu.Lock()
	last := g.stop
	g.mu.Unlock()
	g.buried()
	if last != nil {
		last.goOn()
	}
}

// lie has fn decide what becomes of each effect; nil lets it pass.
func (g *gate) lie(fn func(effect) *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.falsify = fn
}

// seen is how many effects were counted, and which.
func (g *gate) seen() []effect {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.effects)
}

// history is every effect of the run, counted or not.
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

func (g *gate) listingsSoFar() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.listings
}

// through takes an effect past the gate. Between the hit and the manager's
// death all its other effects are dropped too: a dying process sends nothing.
func (g *gate) through(e effect, forward func() (*http.Response, error)) (*http.Response, error) {
	e, stop, mine, instead := g.arrive(e)
	switch {
	case stop == nil && instead == nil:
		return forward()
	case stop == nil:
		return replaced(instead, forward)
	case !mine:
		<-stop.dead.Done()
		return nil, errCut
	}
	if stop.phase == after {
		discard(forward())
	}
	stop.held <- e
	<-stop.dead.Done()
	if stop.phase == late {
		<-stop.next.Done()
		discard(forward())
	}
	return nil, errCut
}

// arrive numbers the effect and tells what is to become of it: a stop that
// concerns it, whether it is the very one to be held, or another answer.
func (g *gate) arrive(e effect) (numbered effect, s *stop, mine bool, instead *answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts(e) {
		e.n = len(g.effects) + 1
		g.effects = append(g.effects, e)
	}
	g.all = append(g.all, e)
	switch {
	case g.stop != nil && g.stop.hit:
		return e, g.stop, false, nil
	case g.stop != nil && e.n > 0 && e.n == g.stop.k:
		g.stop.hit = true
		return e, g.stop, true, nil
	case g.falsify != nil:
		return e, nil, false, g.falsify(e)
	}
	return e, nil, false, nil
}

func replaced(with *answer, forward func() (*http.Response, error)) (*http.Response, error) {
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
