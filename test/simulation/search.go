package simulation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// scope is what a search covers: what users do, one after the other, each once the operator rests, and
// how many of the decisions may differ from the usual ones.
type scope struct {
	name       string
	acts       []string
	deviations int
}

// search tries all runs of a scope: wherever something else than the usual may happen, it does so in one
// run, as often in a run as the scope allows. A run ends early in a state that another run has had.
type search struct {
	profile  profile
	defaults defaults
	scope    scope
	// seen has, for each state, how many deviations were left in it.
	seen map[uint64]int
	// open are the deviations from the usual run that are left to try.
	open [][]deviation
	// runs counts them, and states the states that are different.
	runs int
}

// deviation is a decision that is not the usual one.
type deviation struct {
	step int
	name string
}

func newSearch(p profile, d defaults, s scope) *search {
	return &search{profile: p, defaults: d, scope: s, seen: map[uint64]int{}, open: [][]deviation{nil}}
}

// next takes the deviations of a run that is left to try.
func (s *search) next() []deviation {
	last := len(s.open) - 1
	deviations := s.open[last]
	s.open = s.open[:last]
	s.runs++
	return deviations
}

// run makes one run, and finds out which others there are. It has to be called in a bubble of testing/synctest.
func (s *search) run(deviations []deviation) *world {
	w := newWorld(s.profile, s.defaults, nil)
	w.hashing = true
	w.start()
	acts, changed, quietSince := s.scope.acts, 0, time.Now()
	for step := 0; len(w.violations) == 0; step++ {
		w.step()
		if now := w.api.version + w.changes; now != changed {
			changed, quietSince = now, time.Now()
		}
		choices := w.choices()
		planned := slices.IndexFunc(deviations, func(d deviation) bool { return d.step == step })
		if planned < 0 && (len(deviations) == 0 || step > deviations[len(deviations)-1].step) {
			if s.visit(w, choices, deviations, step, time.Since(quietSince) > pollInterval) {
				break
			}
		}
		usual := usualChoice(choices)
		switch {
		case planned >= 0:
			usual = slices.IndexFunc(choices, func(c choice) bool { return c.name == deviations[planned].name })
		case usual >= 0:
		case time.Since(quietSince) > restTime && len(acts) == 0:
			w.converge()
			w.end()
			return w
		case time.Since(quietSince) > restTime:
			usual = slices.IndexFunc(choices, func(c choice) bool { return c.name == acts[0] })
			acts = acts[1:]
		default:
			w.do(choice{class: wait, name: "wait", do: func() { w.advance(time.Second) }})
			continue
		}
		w.do(choices[usual])
	}
	w.end()
	return w
}

// restTime is how long nothing happens before users do the next thing.
const restTime = 3 * pollInterval

// usualChoice returns which choice is made usually; -1 for time.
func usualChoice(choices []choice) int {
	if len(choices) > 0 && choices[0].class <= finish {
		return 0
	}
	return slices.IndexFunc(choices, func(c choice) bool { return c.name == startAnother })
}

// visit reports whether the state was reached before, with as many deviations left. If it was not, the
// deviations that are possible in it are left to try; while the operator rests, only few.
func (s *search) visit(w *world, choices []choice, deviations []deviation, step int, resting bool) (known bool) {
	state, left := w.hash(), s.scope.deviations-len(deviations)+1
	if s.seen[state] >= left {
		return true
	}
	s.seen[state] = left
	if left == 1 {
		return false
	}
	for _, c := range choices {
		if c.deviates(resting) {
			s.open = append(s.open, append(slices.Clone(deviations), deviation{step, c.name}))
		}
	}
	return false
}

// deviates reports whether a search tries a choice that is not the usual one: what happens to changes and
// to processes. While the operator rests, only what was held up goes on.
func (c choice) deviates(resting bool) bool {
	switch {
	case slices.Contains([]class{lateRequest, neverRequest, resumeProcess}, c.class):
		return !resting || !strings.HasPrefix(c.name, "delay ")
	case slices.Contains([]class{loseAnswer, loseCreate, delayCreate, failCreate, killProcess, pauseProcess, killInFlight, pauseInFlight}, c.class):
		return !resting && c.changing
	}
	return false
}

// hash returns what tells states apart: the API server's objects, what was done in the cloud, requests on
// their way, and what each process has seen, which decides what it does. Two states with one hash go on
// in the same way.
func (w *world) hash() uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, time.Now().UnixNano(), w.api.version, w.api.uids, w.history, w.lease.renewed.UnixNano(), w.working)
	for _, gvk := range kinds {
		for _, o := range w.api.all(gvk) {
			_ = json.NewEncoder(h).Encode(o) // all objects are encodable
		}
	}
	for _, c := range slices.Concat(w.calls.in(sent), w.calls.in(answered), w.calls.late) {
		fmt.Fprintln(h, c, c.stage, c.sentAt.UnixNano(), c.origin, c.digest)
	}
	for _, p := range w.processes {
		fmt.Fprintln(h, p.name, p.history, p.paused, p.stopped.UnixNano(), p == w.lease.holder)
		for _, gvk := range kinds {
			i := p.cache.kinds[gvk]
			for _, entry := range w.api.log[gvk][i.next:] {
				_ = json.NewEncoder(h).Encode(entry.after)
			}
		}
	}
	return h.Sum64()
}

// mixed returns a history to which something is added.
func mixed(history uint64, added ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, history, time.Now().UnixNano())
	fmt.Fprintln(h, added...)
	return h.Sum64()
}
