package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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
	loseAnswer
	lateRequest
	act
	byHand
	killProcess
	pauseProcess
	startNext
	// The same, while a change is on its way to the cloud or its answer is on the way back.
	killInFlight
	pauseInFlight
	loseCreate
	delayCreate
	classes
)

// weights say how often a choice of a class is made, against the others that can be.
var weights = map[class]int{
	deliver: 60, reconcileNext: 60, arrive: 80, answerCall: 80, finish: 20, wait: 20, failCall: 6, loseAnswer: 12,
	lateRequest: 12, act: 6, byHand: 2, killProcess: 2, pauseProcess: 2, startNext: 30,
	killInFlight: 10, pauseInFlight: 10, loseCreate: 20, delayCreate: 20,
}

// choice is something that can happen next.
type choice struct {
	class class
	name  string
	do    func()
}

// progress returns what can happen without a fault, time or people.
func (w *world) progress() []choice {
	var all []choice
	for _, c := range w.calls.in(answered) {
		all = append(all, choice{answerCall, "answer " + c.String(), func() { w.calls.answer(c) }})
	}
	for _, c := range w.calls.in(sent) {
		all = append(all, choice{arrive, "arrive " + c.String(), func() { w.arrive(c) }})
	}
	for _, p := range w.processes {
		if p.paused {
			continue
		}
		for _, gvk := range p.cache.behind() {
			all = append(all, choice{deliver, fmt.Sprintf("deliver %s %s", p.name, gvk.Kind), func() { go p.cache.deliver(gvk) }})
		}
		p.mu.Lock()
		queues := p.queues
		p.mu.Unlock()
		for _, q := range queues {
			for _, r := range q.ready() {
				all = append(all, choice{reconcileNext, fmt.Sprintf("reconcile %s %s %s", p.name, q.controller, r.Name), func() { q.hand(r) }})
			}
		}
	}
	if w.cloudWorks() {
		all = append(all, choice{finish, "the cloud finishes", func() {
			w.working = false
			w.cloud.Finish()
			w.cloud.FinishOperations()
		}})
	}
	for _, o := range w.api.orphaned(vmKind) {
		all = append(all, choice{finish, "collect garbage " + o.GetName(), func() {
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
	case strings.HasPrefix(about, "create "):
		return []fault{unavailable, throttled, full}
	case strings.HasPrefix(about, "get "):
		return []fault{unavailable, throttled, gateway}
	case c.mutates:
		return []fault{unavailable, throttled, busy, gateway}
	}
	return []fault{unavailable, throttled}
}

// either returns the second class for a create of a server, else the first.
func (c *call) either(other, create class) class {
	if strings.HasPrefix(c.name, "cloud create ") {
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

// arrive has a call take effect.
func (w *world) arrive(c *call) {
	c.effect()
	c.stage = answered
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
			all = append(all, choice{failCall, string(why) + ": " + c.String(), func() { w.calls.refuse(c, why) }})
		}
		if c.mutates {
			all = append(all, choice{c.either(lateRequest, delayCreate), "delay " + c.String(), func() { w.calls.abandon(c) }})
		}
	}
	for _, c := range w.calls.in(answered) {
		all = append(all, choice{c.either(loseAnswer, loseCreate), "lose the answer to " + c.String(), func() { w.calls.abandon(c) }})
	}
	for _, c := range w.calls.late {
		all = append(all, choice{lateRequest, "late " + c.String(), func() { w.calls.take(c); c.effect() }},
			choice{lateRequest, "never " + c.String(), func() { w.calls.take(c) }})
	}
	for _, d := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		all = append(all, choice{wait, "wait " + d.String(), func() { w.advance(d) }})
	}
	all = append(all, w.processChoices()...)
	if w.left > 0 {
		for _, c := range append(w.userChoices(), w.handChoices()...) {
			all = append(all, choice{c.class, c.name, func() { w.left--; c.do() }})
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
		all = append(all, choice{kill, "kill " + p.name, func() { w.kill(p) }})
		if p.stopped.IsZero() && !p.paused {
			all = append(all, choice{kill, "stop " + p.name, func() { p.stopped = time.Now(); p.stop() }})
		}
		if p != w.lease.holder && !p.paused {
			all = append(all, choice{startNext, p.name + " exits without the lease", func() { w.kill(p) }})
		}
		if p.paused {
			all = append(all, choice{pauseProcess, "resume " + p.name, func() { p.paused = false }})
		} else {
			all = append(all, choice{pause, "pause " + p.name, func() { p.paused = true }})
		}
	}
	if w.leaseFree() {
		all = append(all, choice{startNext, startAnother, w.start})
	}
	return all
}

// names are those of the VMs and the group that users create.
var names = []string{"a", "b"}

const group = "g"

func (w *world) userChoices() []choice {
	var all []choice
	user := func(name string, do func() error) {
		all = append(all, choice{act, "user: " + name, func() { _ = do() }})
	}
	for _, name := range names {
		key := client.ObjectKey{Namespace: "default", Name: name}
		vm, exists := w.api.find(vmKind, key).(*pcapi.VM)
		if !exists {
			user("create VM "+name, func() error {
				return w.api.create(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
					Spec: pcapi.VMSpec{VMName: name, CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}})
			})
			continue
		}
		if vm.DeletionTimestamp != nil {
			continue
		}
		user("delete VM "+name, func() error { return w.api.remove(vmKind, key, nil) })
		user("resize VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return w.api.update(next)
		})
		user("switch VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.PowerState = other(next.Spec.PowerState)
			return w.api.update(next)
		})
	}
	key := client.ObjectKey{Namespace: "default", Name: group}
	g, exists := w.api.find(groupKind, key).(*pcapi.VmGroup)
	switch {
	case !exists:
		user("create VmGroup "+group, func() error {
			return w.api.create(&pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: group},
				Spec: pcapi.VmGroupSpec{Replicas: new(int32(2)), CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}})
		})
	case g.DeletionTimestamp == nil:
		user("delete VmGroup "+group, func() error { return w.api.remove(groupKind, key, nil) })
		for n := range int32(4) {
			user(fmt.Sprintf("scale VmGroup %s to %d", group, n), func() error {
				next := g.DeepCopy()
				next.Spec.Replicas = &n
				return w.api.update(next)
			})
		}
		user("resize VmGroup "+group, func() error {
			next := g.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return w.api.update(next)
		})
	}
	return all
}

func other(state pcapi.PowerState) pcapi.PowerState {
	if state == pcapi.PowerOff {
		return pcapi.PowerOn
	}
	return pcapi.PowerOff
}

// handChoices returns what a person may do in the cloud.
func (w *world) handChoices() []choice {
	var all []choice
	for _, s := range w.cloud.Servers() {
		if s.State != cloud.StateActive {
			continue
		}
		all = append(all,
			choice{byHand, "by hand: resize " + s.ID, func() { w.cloud.ModifyServer(s.ID, func(s *cloud.Server) { s.CPU = 7 }) }},
			choice{byHand, "by hand: stop " + s.ID, func() { w.cloud.ModifyServer(s.ID, func(s *cloud.Server) { s.State = cloud.StateStopped }) }},
		)
	}
	return all
}
