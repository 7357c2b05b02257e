package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/cloud"
)

// class is what a choice is, which decides how often it is made.
type class int

const (
	deliver class = iota
	reconcileNext
	arrive
	answerCall
	finish
	wait
	failCall
	failWork
	beginOutage
	hideServer
	endOutage
	slowAnswer
	loseAnswer
	lateRequest
	neverRequest
	act
	byHand
	rewrite
	deleteByHand
	killProcess
	pauseProcess
	resumeProcess
	startNext
	// What happens to changes: of the cloud, and of objects (failWrite, rewriteInFlight).
	inFlight
	failWrite
	killInFlight
	pauseInFlight
	loseCreate
	delayCreate
	failCreate
	rewriteInFlight
	takeID
	classes
)

// weights say how often a choice of a class is made, against the others that can be.
var weights = map[class]int{
	deliver: 60, reconcileNext: 60, arrive: 80, answerCall: 80, finish: 20, wait: 30, failCall: 6, failWork: 4, beginOutage: 2, hideServer: 2, endOutage: 12, slowAnswer: 4, loseAnswer: 12,
	lateRequest: 12, neverRequest: 2, act: 6, byHand: 2, rewrite: 2, deleteByHand: 1, killProcess: 1, pauseProcess: 1, resumeProcess: 4, startNext: 30,
	failWrite: 6, killInFlight: 4, pauseInFlight: 4, loseCreate: 20, delayCreate: 20, failCreate: 6, rewriteInFlight: 4, takeID: 8,
}

// choice is something that can happen next.
type choice struct {
	class class
	name  string
	do    func()
	// changing: it is about a change on its way, or the process that sent one.
	changing bool
}

// progress returns what can happen without a fault, time or people.
func (w *world) progress() []choice {
	var all []choice
	for _, c := range w.calls.in(answered) {
		all = append(all, choice{class: answerCall, name: "answer " + c.String(), do: func() { w.calls.answer(c) }})
	}
	for _, c := range w.calls.in(sent) {
		all = append(all, choice{class: arrive, name: "arrive " + c.String(), do: func() { w.arrive(c) }})
	}
	for _, p := range w.processes {
		if p.paused {
			continue
		}
		for _, gvk := range p.cache.behind() {
			all = append(all, choice{class: deliver, name: fmt.Sprintf("deliver %s %s", p.name, gvk.Kind), do: func() {
				p.note("deliver", gvk.Kind)
				go p.cache.deliver(gvk)
			}})
		}
		p.mu.Lock()
		queues := p.queues
		p.mu.Unlock()
		for _, q := range queues {
			for _, r := range q.ready() {
				all = append(all, choice{class: reconcileNext, name: fmt.Sprintf("reconcile %s %s %s", p.name, q.controller, r.Name), do: func() {
					p.note("reconcile", q.controller, r)
					if p.listedSince(time.Time{}) > 0 { // before, the claim says nothing
						p.reconciled[r.NamespacedName] = true
					}
					q.hand(r)
				}})
			}
		}
	}
	if w.cloudWorks() {
		all = append(all, choice{class: finish, name: "the cloud finishes", do: func() {
			w.note("finish")
			w.working = false
			w.cloud.Finish()
			w.cloud.FinishOperations()
		}})
	}
	if c := w.braked(); c != nil {
		all = append(all, choice{class: finish, name: "a person releases the brake", do: func() { w.releaseBrake(c) }})
	}
	all = append(all, w.approvalChoices()...)
	all = append(all, w.reuseChoices()...)
	for _, o := range w.api.orphaned(vmKind) {
		all = append(all, choice{class: finish, name: "collect garbage " + o.GetName(), do: func() {
			_ = w.api.remove(vmKind, client.ObjectKeyFromObject(o), nil)
		}})
	}
	return all
}

// faults returns how a call can fail without an effect.
func (c *call) faults() []fault {
	about, ofCloud := strings.CutPrefix(c.name, "cloud ")
	switch {
	case !ofCloud:
		return []fault{unavailable}
	case c.creates():
		return []fault{unavailable, throttled, full}
	case strings.HasPrefix(about, "get "):
		all := []fault{unavailable, throttled}
		if !c.unknowable() {
			all = append(all, gateway)
		}
		if c.process.world.mayLag(strings.TrimPrefix(about, "get ")) {
			all = append(all, lagging)
		}
		return all
	case c.mutates && c.unknowable():
		return []fault{unavailable, throttled, busy}
	case c.mutates:
		return []fault{unavailable, throttled, busy, gateway}
	}
	return []fault{unavailable, throttled}
}

// failure returns the class of a failure of the call.
func (c *call) failure() class {
	switch {
	case c.creates():
		return failCreate
	case c.mutates && !strings.HasPrefix(c.name, "cloud "):
		return failWrite
	}
	return failCall
}

// either returns the second class for a create of a server, else the first.
func (c *call) either(other, create class) class {
	if c.creates() {
		return create
	}
	return other
}

// inFlight reports whether a change by a process is on its way to the cloud, or its answer back.
func (s *calls) inFlight(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.open, func(c *call) bool { return c.process == p && c.mutates && strings.HasPrefix(c.name, "cloud ") })
}

// changing reports whether a change by a process is on its way to the cloud or to the API server, or its
// answer back.
func (s *calls) changing(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.open, func(c *call) bool { return c.process == p && c.mutates })
}

// arrive has a call take effect, or fail in an outage. Its way takes time: its answer is later than all that began before.
func (w *world) arrive(c *call) {
	sleep(time.Nanosecond)
	switch {
	case w.outage == "" || !strings.HasPrefix(c.name, "cloud "):
		c.effect()
		c.stage = answered
	case slices.Contains(c.faults(), w.outage):
		w.calls.refuse(c, w.outage)
	default:
		w.calls.refuse(c, unavailable)
	}
}

// arriveLate has a request take effect whose sender does not wait for it any more. It reports false if there is
// none.
func (w *world) arriveLate(c *call) bool {
	if !w.calls.take(c) {
		return false
	}
	sleep(time.Nanosecond)
	w.arrivesLate = true
	c.effect()
	w.arrivesLate = false
	return true
}

// outageChoices returns how calls of the cloud begin to fail one after the other, or that this ends.
func (w *world) outageChoices() []choice {
	if w.outage != "" {
		return []choice{{class: endOutage, name: "the outage ends", do: func() { w.outage = "" }}}
	}
	var all []choice
	for _, why := range []fault{unavailable, gateway} {
		if why == gateway && !w.listsAll() {
			continue
		}
		all = append(all, choice{class: beginOutage, name: "outage: " + string(why), do: func() { w.outage = why }})
	}
	return all
}

// cloudWorks reports whether a build, a deletion or an operation is under way.
func (w *world) cloudWorks() bool {
	if w.working {
		return true
	}
	for _, s := range w.cloud.Servers() {
		if s.State == cloud.StateBuilding || s.State == cloud.StateDeleting {
			return true
		}
	}
	return false
}

// choices returns all that can happen.
func (w *world) choices() []choice {
	all := w.progress()
	for _, c := range w.calls.in(sent) {
		for _, why := range c.faults() {
			all = append(all, choice{class: c.failure(), name: string(why) + ": " + c.String(), do: func() { w.calls.refuse(c, why) }, changing: c.mutates})
		}
		if c.mutates {
			all = append(all, choice{class: c.either(lateRequest, delayCreate), name: "delay " + c.String(), do: func() { w.calls.abandon(c) }, changing: true})
		}
	}
	for _, c := range w.calls.in(answered) {
		all = append(all, choice{class: c.either(loseAnswer, loseCreate), name: "lose the answer to " + c.String(), do: func() { w.calls.abandon(c) }, changing: c.mutates})
		if !c.mutates && strings.HasPrefix(c.name, "cloud ") {
			all = append(all, choice{class: slowAnswer, name: "slow: " + c.String(), do: func() { c.slow = true }})
		}
	}
	for _, c := range w.calls.slow() {
		all = append(all, choice{class: lateRequest, name: "go on: " + c.String(), do: func() { c.slow = false }})
	}
	all = append(all, w.answerChoices()...)
	all = append(all, w.strangerChoices()...)
	all = append(all, w.workFailures()...)
	all = append(all, w.outageChoices()...)
	all = append(all, w.listingChoices()...)
	for _, c := range w.calls.late {
		if w.profile.tardy() && c.creates() && c.number%2 == 1 && time.Since(c.sentAt) < settleTime {
			continue // it takes longer than others
		}
		all = append(all, choice{class: lateRequest, name: "late " + c.String(), do: func() { w.arriveLate(c) }, changing: true},
			choice{class: neverRequest, name: "never " + c.String(), do: func() { w.calls.take(c) }, changing: true})
	}
	for _, d := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		if w.profile.unled && len(w.progress()) > 0 {
			break // no manager stalls
		}
		all = append(all, choice{class: wait, name: "wait " + d.String(), do: func() { w.advance(d) }})
	}
	all = append(all, w.processChoices()...)
	if w.left > 0 {
		for _, c := range append(w.userChoices(), w.handChoices()...) {
			all = append(all, choice{class: c.class, name: c.name, do: func() { w.left--; c.do() }})
		}
	}
	return all
}

// workFailures returns how what the cloud works on fails.
func (w *world) workFailures() []choice {
	var all []choice
	if w.working {
		for _, kind := range []cloud.Kind{cloud.Failed, cloud.Quota} {
			all = append(all, choice{class: failWork, name: fmt.Sprintf("the operations fail: %s", kind), do: func() {
				w.working = false
				w.cloud.FailOperations(&cloud.Error{Kind: kind, Op: "operation", Detail: "injected"})
			}})
		}
	}
	if w.cloud.Watchers() > 0 && !w.calls.reporting() { // a watch that reports ends with the report
		all = append(all, choice{class: failWork, name: "the watches end", do: w.cloud.EndWatches})
	}
	for _, s := range w.cloud.Servers() {
		if s.State == cloud.StateDeleting {
			all = append(all, choice{class: failWork, name: "the cloud does not delete " + s.ID, do: func() {
				w.modify(s.ID, func(s *cloud.Server) { s.State = cloud.StateActive })
			}})
		}
	}
	return all
}

const startAnother = "start another manager"

func (w *world) processChoices() []choice {
	var all []choice
	for _, p := range w.processes {
		kill, pause := killProcess, pauseProcess
		if w.calls.inFlight(p) {
			kill, pause = killInFlight, pauseInFlight
		}
		changing := w.calls.changing(p)
		all = append(all, choice{class: kill, name: "kill " + p.name, do: func() { w.kill(p) }, changing: changing})
		if p.stopped.IsZero() && !p.paused {
			all = append(all, choice{class: kill, name: "stop " + p.name, do: func() { p.stopped = time.Now(); p.stop() }, changing: changing})
		}
		if p != w.lease.holder && !p.paused && !w.profile.unled {
			all = append(all, choice{class: startNext, name: p.name + " exits without the lease", do: func() { w.kill(p) }})
		}
		switch {
		case p.paused:
			all = append(all, choice{class: resumeProcess, name: "resume " + p.name, do: func() { p.paused = false }, changing: true})
		case !w.profile.unled:
			all = append(all, choice{class: pause, name: "pause " + p.name, do: func() { p.paused = true }, changing: changing})
		}
	}
	if w.leaseFree() {
		all = append(all, choice{class: startNext, name: startAnother, do: w.start})
	}
	return all
}
