package mockcloud

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
)

// activeFault is an active fault. faultSet.mu guards its counters.
type activeFault struct {
	Fault
	path, pathRegexp, query *regexp.Regexp
	random                  *rand.Rand
	matched, fired, held    int
	gate                    *gate
	// bodies is how many bodies of Fault.Repeat were sent.
	bodies atomic.Int64
	// removed is set when the fault is removed. A call that matched before passes the
	// gate.
	removed bool
}

// gate holds calls until it opens.
type gate struct {
	opened chan struct{}
	// drop is set before opened is closed: the connections of the calls are closed.
	drop bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// faultSet has the active faults in the order in which they were added.
type faultSet struct {
	mu     sync.Mutex
	faults []*activeFault
	nextID int
	// changed is closed when the number of held calls changes.
	changed chan struct{}
}

func newFaultSet() *faultSet { return &faultSet{changed: make(chan struct{})} }

// pathGlob compiles Match.Path.
func pathGlob(glob string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(glob)
	quoted = strings.NewReplacer(`\*\*`, `.*`, `\*`, `[^/]*`).Replace(quoted)
	return regexp.MustCompile(`^` + quoted + `$`)
}

func compile(f Fault) (*activeFault, error) {
	if err := f.validate(); err != nil {
		return nil, fmt.Errorf("fault: %w", err)
	}
	active := &activeFault{Fault: f, gate: newGate(), random: rand.New(rand.NewPCG(f.Match.Seed, 0))} //nolint:gosec // repeatable on purpose
	if f.Match.Path != "" {
		active.path = pathGlob(f.Match.Path)
	}
	var err error
	if f.Match.PathRegexp != "" {
		if active.pathRegexp, err = regexp.Compile(f.Match.PathRegexp); err != nil {
			return nil, fmt.Errorf("fault: pathRegexp: %w", err)
		}
	}
	if f.Match.Query != "" {
		if active.query, err = regexp.Compile(f.Match.Query); err != nil {
			return nil, fmt.Errorf("fault: query: %w", err)
		}
	}
	return active, nil
}

// matches reports whether a call matches, regardless of Nth, Count and
// Probability.
func (f *activeFault) matches(r *request, to route) bool {
	path := r.URL.EscapedPath()
	either := func(expr *regexp.Regexp) bool {
		return expr == nil || expr.MatchString(path) || expr.MatchString(to.template)
	}
	return (f.Match.Method == "" || strings.EqualFold(f.Match.Method, r.Method)) &&
		either(f.path) && either(f.pathRegexp) &&
		(f.query == nil || f.query.MatchString(r.URL.RawQuery))
}

// fires counts a matching call and reports whether the fault fires for it.
func (f *activeFault) fires() bool {
	f.matched++
	if f.matched < f.Match.Nth {
		return false
	}
	count := f.Match.Count
	if count == 0 && f.Match.Nth > 0 {
		count = 1
	}
	if count > 0 && f.fired >= count {
		return false
	}
	if p := f.Match.Probability; p > 0 && f.random.Float64() >= p {
		return false
	}
	f.fired++
	return true
}

// match returns the faults that fire for a call.
func (s *faultSet) match(r *request, to route) []*activeFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fired []*activeFault
	for _, f := range s.faults {
		if f.matches(r, to) && f.fires() {
			fired = append(fired, f)
		}
	}
	return fired
}

// hold blocks until the gate of the fault opens and reports whether to drop the
// call.
func (s *faultSet) hold(f *activeFault, closed <-chan struct{}) (drop bool) {
	s.mu.Lock()
	if f.removed {
		s.mu.Unlock()
		return false
	}
	at := f.gate
	f.held++
	s.announce()
	s.mu.Unlock()
	select {
	case <-at.opened:
	case <-closed:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.held--
	s.announce()
	return at.drop
}

func (s *faultSet) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// remove marks a fault as removed and opens its gate. The caller holds mu.
func (f *activeFault) remove() {
	f.removed = true
	f.open(false)
}

// open releases the calls that a fault holds. The caller holds mu.
func (f *activeFault) open(drop bool) {
	f.gate.drop = drop
	close(f.gate.opened)
	f.gate = newGate()
}

func (s *faultSet) find(id string) (*activeFault, error) {
	for _, f := range s.faults {
		if f.ID == id {
			return f, nil
		}
	}
	return nil, notFound("fault", id)
}

func (s *faultSet) add(f Fault) (string, error) {
	active, err := compile(f)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if active.ID == "" {
		s.nextID++
		active.ID = fmt.Sprintf("fault-%d", s.nextID)
	}
	if _, err := s.find(active.ID); err == nil {
		return "", fmt.Errorf("fault id %q is in use", active.ID)
	}
	s.faults = append(s.faults, active)
	return active.ID, nil
}

func (s *faultSet) all() []FaultStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]FaultStatus, 0, len(s.faults))
	for _, f := range s.faults {
		out = append(out, FaultStatus{Fault: f.Fault, Matched: f.matched, Fired: f.fired, Held: f.held})
	}
	return out
}

func (s *faultSet) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.ID == id {
			f.remove()
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return nil
		}
	}
	return notFound("fault", id)
}

func (s *faultSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		f.remove()
	}
	s.faults = nil
}

func (s *faultSet) release(id string) error { return s.openGate(id, false) }

func (s *faultSet) drop(id string) error { return s.openGate(id, true) }

func (s *faultSet) openGate(id string, drop bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find(id)
	if err != nil {
		return err
	}
	f.open(drop)
	return nil
}

func (s *faultSet) waitHeld(ctx context.Context, id string, n int) error {
	for {
		s.mu.Lock()
		f, err := s.find(id)
		if err != nil {
			s.mu.Unlock()
			return err
		}
		held, changed := f.held, s.changed
		s.mu.Unlock()
		if held >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for fault %s to hold %d calls: %w", id, n, ctx.Err())
		}
	}
}

// unavailableFault is the ID of the fault of SetUnavailable.
const unavailableFault = "unavailable"

func (s *faultSet) setUnavailable(on bool) {
	if !on {
		_ = s.remove(unavailableFault)
		return
	}
	// The only error is that the fault exists already.
	_, _ = s.add(Fault{ID: unavailableFault, Status: 503})
}

func (s *faultSet) handleAll(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, s.all())
}

func (s *faultSet) handleOne(w http.ResponseWriter, r *request) error {
	for _, f := range s.all() {
		if f.ID == r.vars[0] {
			return writeJSON(w, http.StatusOK, f)
		}
	}
	return notFound("fault", r.vars[0])
}

func (s *faultSet) handleAdd(w http.ResponseWriter, r *request) error {
	var f Fault
	if err := readInto(r, &f); err != nil {
		return err
	}
	id, err := s.add(f)
	if err != nil {
		return invalid("%v", err)
	}
	return writeJSON(w, http.StatusCreated, map[string]string{"id": id})
}
