package probe

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/privatecloud/operator/internal/jitter"
)

const (
	// MaxInFlight is how many connections a Prober opens at a time.
	MaxInFlight = 64
	// idle is how long a Prober waits that has nothing to do.
	idle = time.Hour
)

// Key identifies a VM.
type Key struct {
	UID, Namespace, Name string
}

// Target is what is dialled for a VM, and how often.
type Target struct {
	Address netip.AddrPort
	// Period is from the begin of a dial to that of the next, lengthened by up to a tenth, or by
	// more while other targets are due. Timeout bounds a dial. Both are positive.
	Period, Timeout time.Duration
	// FailureThreshold is after how many failures in a row a port does not count as open any more,
	// at least 1.
	FailureThreshold int
}

// State is what is known of a target.
type State struct {
	Address netip.AddrPort
	Result  Result
}

// Options configure a Prober.
type Options struct {
	// Networks are those that are dialled, once what is excluded is complete.
	Networks Networks
	// Dial replaces connections over TCP, for tests; nil for none.
	Dial Dial
	// Metrics are those of the process; nil for none.
	Metrics *Metrics
}

// Prober dials the targets of VMs, at most MaxInFlight at a time, while it runs.
type Prober struct {
	networks Networks
	dial     Dial
	metrics  *Metrics
	// changed has an element if the schedule has changed, or a dial has ended, and moved has one
	// if what is excluded has changed.
	changed, moved chan struct{}

	mu      sync.Mutex
	entries map[string]*entry // by UID
	// excluded are the targets that would be dialled if their addresses were not excluded.
	excluded    map[string]excluded // by UID
	schedule    *schedule
	inFlight    int
	subscribers []func(Key)
}

// entry is a target and what is known of it.
type entry struct {
	key    Key
	target Target
	// outcome starts with what is on record. known is whether it is a result of the address.
	outcome outcome
	known   bool
	// due is when the target is dialled next, and index its place among those that wait; none
	// while it is dialled.
	due   time.Time
	index int
}

// excluded is a target that is not dialled.
type excluded struct {
	key     Key
	address netip.Addr
}

// New returns a Prober that does not run yet.
func New(o Options) *Prober {
	p := &Prober{
		networks: o.Networks, dial: o.Dial, metrics: o.Metrics,
		changed: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		entries: map[string]*entry{}, excluded: map[string]excluded{}, schedule: newSchedule(),
	}
	o.Networks.excluded.subscribe(func() { signal(p.moved) })
	if p.dial == nil {
		p.dial = dialTCP
	}
	if p.metrics == nil {
		p.metrics = NewMetrics(prometheus.NewRegistry())
	}
	return p
}

// Networks returns the networks that are dialled.
func (p *Prober) Networks() Networks { return p.networks }

// Subscribe has fn called with the key of a VM when its result changes from what is on record.
func (p *Prober) Subscribe(fn func(Key)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, fn)
}

// Watch has the target of a VM dialled until Forget. recorded is the result that is on record of
// it. A new target without one is dialled at once, and one with a record within its period, so
// that a process that starts does not dial all of them at a time. A target whose address may not
// be dialled is not. If that is because its address is excluded, subscribers are notified when
// it is not excluded any more.
func (p *Prober) Watch(key Key, target Target, recorded Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.networks.Allows(target.Address.Addr()) {
		p.refuse(key, target.Address.Addr())
		return
	}
	p.include(key.UID)
	e := p.entries[key.UID]
	if e != nil && e.target.Address == target.Address {
		p.adjust(e, target, recorded)
		return
	}
	known := outcome{reported: recorded}
	if e == nil {
		p.metrics.targets.Inc()
	} else {
		p.schedule.remove(e) // one that is dialled now is dropped when that ends
		known.spent = e.outcome.spent
	}
	e = &entry{key: key, target: target, outcome: known, index: none}
	p.entries[key.UID] = e
	due := time.Now()
	if recorded != Unknown {
		due = due.Add(jitter.Below(target.Period))
	}
	p.reschedule(e, due)
}

// adjust gives an entry other settings, and before its first result another record. The caller
// holds the lock.
func (p *Prober) adjust(e *entry, target Target, recorded Result) {
	last := e.target.Period
	e.target = target
	due := e.due
	if !e.known && e.outcome.reported != recorded {
		e.outcome.reported, e.outcome.differing = recorded, 0
		due = time.Now()
	} else if target.Period < last {
		due = earlier(due, time.Now().Add(target.Period))
	}
	if e.index != none && due.Before(e.due) {
		p.reschedule(e, due)
	}
}

// Forget ends the probes of a VM.
func (p *Prober) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(uid)
	p.include(uid)
}

// drop ends the dials of a VM. The caller holds the lock.
func (p *Prober) drop(uid string) {
	if e := p.entries[uid]; e != nil {
		p.schedule.remove(e)
		delete(p.entries, uid)
		p.metrics.targets.Dec()
	}
}

// refuse ends the dials of a VM whose address may not be dialled, and keeps it in mind if its
// address is excluded. The caller holds the lock.
func (p *Prober) refuse(key Key, address netip.Addr) {
	p.drop(key.UID)
	p.include(key.UID)
	if p.networks.inside(address) {
		p.excluded[key.UID] = excluded{key, address}
		p.metrics.excluded.Inc()
	}
}

// include drops a VM from those whose addresses are excluded. The caller holds the lock.
func (p *Prober) include(uid string) {
	if _, is := p.excluded[uid]; is {
		delete(p.excluded, uid)
		p.metrics.excluded.Dec()
	}
}

// review ends the dials of targets whose addresses are excluded now. It returns their keys, and
// those of targets whose addresses are not excluded any more.
func (p *Prober) review() []Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	var changed []Key
	for uid, x := range p.excluded {
		if p.networks.Allows(x.address) {
			p.include(uid)
			changed = append(changed, x.key)
		}
	}
	for _, e := range p.entries {
		if address := e.target.Address.Addr(); !p.networks.Allows(address) {
			p.refuse(e.key, address)
			changed = append(changed, e.key)
		}
	}
	return changed
}

// State returns what is known of a VM. The Result is Unknown until its target was dialled.
func (p *Prober) State(uid string) State {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entries[uid]
	if e == nil || !e.known {
		return State{}
	}
	return State{Address: e.target.Address, Result: e.outcome.reported}
}

// NeedLeaderElection has the manager run the Prober only while it reconciles VMs.
func (p *Prober) NeedLeaderElection() bool { return true }

// Start dials targets when they are due, until ctx ends. It returns nil.
func (p *Prober) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-p.networks.excluded.completed():
	}
	signal(p.moved)
	var dials sync.WaitGroup
	defer dials.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(p.dispatch(ctx, &dials))
		select {
		case <-ctx.Done():
			return nil
		case <-p.moved:
			for _, key := range p.review() {
				p.notify(key)
			}
		case <-p.changed:
		case <-timer.C:
		}
	}
}

// dispatch begins the dials that are due and for which there is room. It returns after which
// time there may be more, unless the schedule changes before.
func (p *Prober) dispatch(ctx context.Context, dials *sync.WaitGroup) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.inFlight < MaxInFlight {
		now := time.Now()
		e, wait := p.schedule.next(now)
		if e == nil {
			return wait
		}
		target := e.target
		if address := target.Address.Addr(); !p.networks.Allows(address) {
			p.schedule.done(e)
			p.refuse(e.key, address)
			dials.Go(func() { p.notify(e.key) })
			continue
		}
		p.inFlight++
		p.metrics.begun(now.Sub(e.due))
		dials.Go(func() {
			result := p.try(ctx, target)
			if p.end(ctx, e, now, result) {
				p.notify(e.key)
			}
		})
	}
	return idle
}

func (p *Prober) try(ctx context.Context, target Target) Result {
	ctx, cancel := context.WithTimeout(ctx, target.Timeout)
	defer cancel()
	return resultOf(p.dial(ctx, target.Address))
}

// end records the result of a dial that began at a time, and reports whether what is known of
// the target changed.
func (p *Prober) end(ctx context.Context, e *entry, begun time.Time, result Result) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight--
	p.schedule.done(e)
	signal(p.changed)
	if ctx.Err() != nil { // the dial was interrupted
		return false
	}
	p.metrics.ended(result)
	if p.entries[e.key.UID] != e {
		return false
	}
	changed = e.outcome.add(result, e.target.FailureThreshold, time.Now())
	e.known = e.known || result != Unknown
	p.reschedule(e, begun.Add(e.target.Period+jitter.Below(e.target.Period/10)))
	return changed
}

// reschedule has an entry dialled at a time. The caller holds the lock.
func (p *Prober) reschedule(e *entry, due time.Time) {
	p.schedule.remove(e)
	p.schedule.put(e, due)
	signal(p.changed)
}

// signal puts an element into a channel, unless it has one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (p *Prober) notify(key Key) {
	p.mu.Lock()
	subscribers := p.subscribers
	p.mu.Unlock()
	for _, fn := range subscribers {
		fn(key)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
