package mockcloud

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
)

// activeFault is a fault in force. Its counters are guarded by faultSet.mu.
type activeFault struct {
	Fault
	path, pathRegexp, query *regexp.Regexp
	draws                   *rand.Rand
	matched, fired, held    int
	gate                    *gate
	// removed lets calls pass that matched before the removal and come to the
	// gate after it.
	removed bool
}

// gate holds calls until it opens.
type gate struct {
	opened chan struct{}
	// drop is set before opened closes: the calls end without an effect.
	drop bool
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

// faultSet is the faults in force, in the order they were added.
type faultSet struct {
	mu     sync.Mutex
	faults []*activeFault
	nextID int
	// changed closes whenever a call begins or ceases to be held.
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
	active := &activeFault{Fault: f, gate: newGate(), draws: rand.New(rand.NewPCG(f.Match.Seed, 0))} //nolint:gosec // repeatable on purpose
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

// concerns tells whether a call matches, regardless of counts and chance.
func (f *activeFault) concerns(r *request, to route) bool {
	path := r.URL.EscapedPath()
	either := func(expr *regexp.Regexp) bool {
		return expr == nil || expr.MatchString(path) || expr.MatchString(to.template)
	}
	return (f.Match.Method == "" || strings.EqualFold(f.Match.Method, r.Method)) &&
		either(f.path) && either(f.pathRegexp) &&
		(f.query == nil || f.query.MatchString(r.URL.RawQuery))
}

// fires counts a matching call and decides whether it is hit.
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
	if p := f.Match.Probability; p > 0 && f.draws.Float64() >= p {
		return false
	}
	f.fired++
	return true
}

// match returns the faults that fire on a call.
func (s *faultSet) match(r *request, to route) []*activeFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fired []*activeFault
	for _, f := range s.faults {
		if f.concerns(r, to) && f.fires() {
			fired = append(fired, f)
		}
	}
	return fired
}

// hold keeps a call at the fault's gate and tells whether to drop it.
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

// remove ends a fault for good. The caller holds mu.
func (f *activeFault) remove() {
	f.removed = true
	f.open(false)
}

// open lets go of the calls that a fault holds. The caller holds mu.
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

// AddFault puts a fault into force and returns its id. It fails on a fault that
// makes no sense and on an id that is in use.
func (c *Cloud) AddFault(f Fault) (string, error) {
	active, err := compile(f)
	if err != nil {
		return "", err
	}
	s := c.faults
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

// Faults returns the faults in force and what they did so far.
func (c *Cloud) Faults() []FaultStatus {
	s := c.faults
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]FaultStatus, 0, len(s.faults))
	for _, f := range s.faults {
		out = append(out, FaultStatus{Fault: f.Fault, Matched: f.matched, Fired: f.fired, Held: f.held})
	}
	return out
}

// RemoveFault ends a fault; the calls that it holds go on.
func (c *Cloud) RemoveFault(id string) error {
	s := c.faults
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

// ClearFaults ends all faults; the calls that they hold go on.
func (c *Cloud) ClearFaults() {
	s := c.faults
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		f.remove()
	}
	s.faults = nil
}

// ReleaseFault lets the calls go on that a fault holds; later ones are held
// again as far as its count allows.
func (c *Cloud) ReleaseFault(id string) error { return c.openFault(id, false) }

// DropFault cuts the connections of the calls that a fault holds. With Answer
// Before they have no effect.
func (c *Cloud) DropFault(id string) error { return c.openFault(id, true) }

func (c *Cloud) openFault(id string, drop bool) error {
	s := c.faults
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.find(id)
	if err != nil {
		return err
	}
	f.open(drop)
	return nil
}

// WaitHeld returns once a fault holds at least n calls. It fails when ctx ends
// and when there is no such fault.
func (c *Cloud) WaitHeld(ctx context.Context, id string, n int) error {
	s := c.faults
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

// unavailableFault is the id of the fault behind SetUnavailable.
const unavailableFault = "unavailable"

// SetUnavailable makes every call answer 503, or ends that.
func (c *Cloud) SetUnavailable(on bool) {
	if !on {
		_ = c.RemoveFault(unavailableFault)
		return
	}
	// It fails only when the cloud is unavailable already.
	_, _ = c.AddFault(Fault{ID: unavailableFault, Status: 503})
}
