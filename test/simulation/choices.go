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
func (l *life) progress() []choice {
	var all []choice
	for _, c := range l.calls.in(answered) {
		all = append(all, choice{answerCall, "answer " + c.String(), func() { l.calls.answer(c) }})
	}
	for _, c := range l.calls.in(sent) {
		all = append(all, choice{arrive, "arrive " + c.String(), func() { l.arrive(c) }})
	}
	for _, p := range l.processes {
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
	if l.cloudWorks() {
		all = append(all, choice{finish, "the cloud finishes", func() {
			l.working = false
			l.cloud.Finish()
			l.cloud.FinishOperations()
		}})
	}
	for _, o := range l.api.orphaned(vmKind) {
		all = append(all, choice{finish, "collect garbage " + o.GetName(), func() {
			_ = l.api.remove(vmKind, client.ObjectKeyFromObject(o), nil)
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

// arrive has a call take effect. The answer to a read is at once with the caller.
func (l *life) arrive(c *call) {
	c.effect()
	if !c.mutates {
		l.calls.answer(c)
		return
	}
	c.stage = answered
}

// cloudWorks reports whether a build, a deletion or an operation is under way.
func (l *life) cloudWorks() bool {
	if l.working {
		return true
	}
	for _, s := range l.cloud.Servers() {
		if s.State == cloud.StateBuilding || s.State == cloud.StateDeleting {
			return true
		}
	}
	return false
}

// choices returns all that can happen.
func (l *life) choices() []choice {
	all := l.progress()
	for _, c := range l.calls.in(sent) {
		for _, why := range c.faults() {
			all = append(all, choice{failCall, string(why) + ": " + c.String(), func() { l.calls.refuse(c, why) }})
		}
		if c.mutates {
			all = append(all, choice{c.either(lateRequest, delayCreate), "delay " + c.String(), func() { l.calls.abandon(c) }})
		}
	}
	for _, c := range l.calls.in(answered) {
		all = append(all, choice{c.either(loseAnswer, loseCreate), "lose the answer to " + c.String(), func() { l.calls.abandon(c) }})
	}
	for i, c := range l.calls.late {
		all = append(all, choice{lateRequest, "late " + c.String(), func() { l.takeLate(i); c.effect() }},
			choice{lateRequest, "never " + c.String(), func() { l.takeLate(i) }})
	}
	for _, d := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		all = append(all, choice{wait, "wait " + d.String(), func() { l.advance(d) }})
	}
	all = append(all, l.processChoices()...)
	if l.left > 0 {
		for _, c := range append(l.userChoices(), l.handChoices()...) {
			all = append(all, choice{c.class, c.name, func() { l.left--; c.do() }})
		}
	}
	return all
}

func (l *life) takeLate(i int) { l.calls.late = append(l.calls.late[:i:i], l.calls.late[i+1:]...) }

func (l *life) processChoices() []choice {
	var all []choice
	for _, p := range l.processes {
		kill, pause := killProcess, pauseProcess
		if l.calls.inFlight(p) {
			kill, pause = killInFlight, pauseInFlight
		}
		all = append(all, choice{kill, "kill " + p.name, func() { l.kill(p) }})
		if p.paused {
			all = append(all, choice{pauseProcess, "resume " + p.name, func() { p.paused = false }})
		} else {
			all = append(all, choice{pause, "pause " + p.name, func() { p.paused = true }})
		}
	}
	if h := l.lease; h.holder == nil || time.Since(h.renewed) > leaseDuration {
		all = append(all, choice{startNext, "start another manager", l.start})
	}
	return all
}

// names are those of the VMs and the group that users create.
var names = []string{"a", "b"}

const group = "g"

func (l *life) userChoices() []choice {
	var all []choice
	user := func(name string, do func() error) {
		all = append(all, choice{act, "user: " + name, func() { _ = do() }})
	}
	for _, name := range names {
		key := client.ObjectKey{Namespace: "default", Name: name}
		vm, exists := l.api.find(vmKind, key).(*pcapi.VM)
		if !exists {
			user("create VM "+name, func() error {
				return l.api.create(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
					Spec: pcapi.VMSpec{VMName: name, CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}})
			})
			continue
		}
		if vm.DeletionTimestamp != nil {
			continue
		}
		user("delete VM "+name, func() error { return l.api.remove(vmKind, key, nil) })
		user("resize VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return l.api.update(next)
		})
		user("switch VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.PowerState = other(next.Spec.PowerState)
			return l.api.update(next)
		})
	}
	key := client.ObjectKey{Namespace: "default", Name: group}
	g, exists := l.api.find(groupKind, key).(*pcapi.VmGroup)
	switch {
	case !exists:
		user("create VmGroup "+group, func() error {
			return l.api.create(&pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: group},
				Spec: pcapi.VmGroupSpec{Replicas: new(int32(2)), CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}})
		})
	case g.DeletionTimestamp == nil:
		user("delete VmGroup "+group, func() error { return l.api.remove(groupKind, key, nil) })
		for n := range int32(4) {
			user(fmt.Sprintf("scale VmGroup %s to %d", group, n), func() error {
				next := g.DeepCopy()
				next.Spec.Replicas = &n
				return l.api.update(next)
			})
		}
		user("resize VmGroup "+group, func() error {
			next := g.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return l.api.update(next)
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
func (l *life) handChoices() []choice {
	var all []choice
	for _, s := range l.cloud.Servers() {
		if s.State != cloud.StateActive {
			continue
		}
		all = append(all,
			choice{byHand, "by hand: resize " + s.ID, func() { l.cloud.ModifyServer(s.ID, func(s *cloud.Server) { s.CPU = 7 }) }},
			choice{byHand, "by hand: stop " + s.ID, func() { l.cloud.ModifyServer(s.ID, func(s *cloud.Server) { s.State = cloud.StateStopped }) }},
		)
	}
	return all
}
