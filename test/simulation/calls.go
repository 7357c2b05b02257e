package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// stage is how far a call has come.
type stage int

const (
	// sent: the request is on its way. It has no effect yet.
	sent stage = iota
	// answered: it had its effect, or was read, and the answer is on its way.
	answered
	// ended: the caller has the answer, or an error.
	ended
)

// call is what a process asks of the API server or of a cloud.
type call struct {
	process *process
	// name says what is asked, and number tells calls of one name apart.
	name   string
	number int
	// mutates: the call changes something.
	mutates bool
	sentAt  time.Time
	stage   stage
	// listing is when the last listing that the process had was begun.
	listing time.Time
	// slow: the answer takes longer than others.
	slow bool
	// effect has the call take effect, in the goroutine of the scheduler, and fail ends it with an
	// error.
	effect func()
	fail   func(fault)
	// resumed is closed when the call has ended.
	resumed chan struct{}
	// origin is the history of the process when it made the call, and digest tells answers apart: both
	// only in a search.
	origin uint64
	digest string
}

// fault is how a call fails.
type fault string

const (
	// unavailable: the request did not arrive.
	unavailable fault = "unavailable"
	// lost: there is no answer, and the request may have arrived.
	lost fault = "lost"
	// throttled, busy, full and gateway are answers of a cloud: too many calls, the server changes, no
	// room for another server, and a 404 that is not its own. lagging is a 404 about a new server.
	throttled fault = "throttled"
	busy      fault = "busy"
	full      fault = "full"
	gateway   fault = "gateway"
	lagging   fault = "lagging"
)

// createPrefix begins the name of a create of a server, before the name of the server.
const createPrefix = "cloud create "

// creates reports whether the call creates a server.
func (c *call) creates() bool {
	return strings.HasPrefix(c.name, createPrefix) && !strings.HasPrefix(c.name, "cloud create network ") && !strings.HasPrefix(c.name, "cloud create snapshot ")
}

func (c *call) String() string {
	return fmt.Sprintf("%s %s #%d", c.process.name, c.name, c.number)
}

// calls are the calls that have not ended, and requests whose callers have given up.
type calls struct {
	mu   sync.Mutex
	open []*call
	// late are requests that may take effect although their callers have an error, or are gone.
	late []*call
	// numbers counts the calls of each process and name.
	numbers map[string]int
}

// add opens a call. It reports false if the process is dead.
func (s *calls) add(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.process.dead {
		return false
	}
	key := c.process.name + " " + c.name
	s.numbers[key]++
	c.number, c.sentAt, c.origin, c.listing = s.numbers[key], time.Now(), c.process.history, c.process.lastListing()
	s.open = append(s.open, c)
	return true
}

// end ends a call. The caller holds the lock.
func (s *calls) end(c *call) {
	c.stage = ended
	c.process.note("answer", c, c.digest)
	s.open = slices.DeleteFunc(s.open, func(o *call) bool { return o == c })
	close(c.resumed)
}

// in returns the calls of a stage, in an order that does not depend on goroutines. A process that is
// paused takes no answers.
func (s *calls) in(at stage) []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*call
	for _, c := range s.open {
		if c.stage == at && (at == sent || !c.process.paused && !c.slow) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// slow returns the calls whose answers take long.
func (s *calls) slow() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.open), func(c *call) bool { return !c.slow })
	slices.SortFunc(all, byName)
	return all
}

// reporting reports whether a watch waits to report something.
func (s *calls) reporting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.open, func(c *call) bool { return c.name == "cloud report" })
}

// about reports whether a call about a server has not ended.
func (s *calls) about(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(slices.Concat(s.open, s.late), func(c *call) bool { return strings.HasSuffix(c.name, " "+id) })
}

// changingObject reports whether a change of an object of this name, or of what it has in the cloud, is on its
// way, or its answer back.
func (s *calls) changingObject(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.open, func(c *call) bool {
		return c.mutates && (strings.HasSuffix(c.name, "/"+name) || c.name == createPrefix+name)
	})
}

// changes returns the requests that change something and are on their way, the oldest first.
func (s *calls) changes() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.late)
	for _, c := range s.open {
		if c.stage == sent && c.mutates {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *call) int { return cmp.Or(a.sentAt.Compare(b.sentAt), byName(a, b)) })
	return all
}

// take removes a late request. It reports false if it is not late.
func (s *calls) take(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.late)
	s.late = slices.DeleteFunc(s.late, func(o *call) bool { return o == c })
	return len(s.late) < before
}

func byName(a, b *call) int {
	return cmp.Or(cmp.Compare(a.process.name, b.process.name), cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number))
}

// abandon ends a call with an error. A request that is on its way may take effect later.
func (s *calls) abandon(c *call) {
	s.giveUp(c)
	c.process.disturbed = time.Now()
}

// giveUp is abandon for a process that does not wait any longer.
func (s *calls) giveUp(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stage == ended {
		return
	}
	if c.stage == sent && c.mutates {
		s.late = append(s.late, c)
		slices.SortFunc(s.late, byName)
	}
	if c.creates() {
		c.process.world.doubtful[strings.TrimPrefix(c.name, createPrefix)] = true
	}
	c.fail(lost)
	s.end(c)
}

// answer ends a call as its effect says.
func (s *calls) answer(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(c)
}

// refuse answers a call with an error, without an effect.
func (s *calls) refuse(c *call, why fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.fail(why)
	c.stage = answered
	c.process.disturbed = time.Now()
}

// ask makes a call of a process: it returns when the scheduler has let it end, or with ctx.
func ask[R any](ctx context.Context, p *process, name string, mutates bool, effect func() (R, error), failure func(fault) error) (R, error) {
	var result R
	var err error
	c := &call{process: p, name: name, mutates: mutates, resumed: make(chan struct{})}
	c.effect = func() {
		result, err = effect()
		if w := p.world; w.hashing {
			text, _ := json.Marshal(result)
			c.digest = fmt.Sprint(string(text), err)
			if mutates {
				w.note(c, c.digest)
			}
		}
	}
	c.fail = func(why fault) {
		var none R
		result, err = none, failure(why)
		c.digest = string(why)
	}
	if p.starting {
		c.effect()
		return result, err
	}
	if ctx.Err() != nil || !p.world.calls.add(c) {
		c.fail(unavailable)
		return result, err
	}
	select {
	case <-c.resumed:
	case <-ctx.Done():
		p.world.calls.giveUp(c)
		<-c.resumed
	}
	return result, err
}
