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
	failWork
	slowAnswer
	loseAnswer
	lateRequest
	act
	byHand
	deleteByHand
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
	deliver: 60, reconcileNext: 60, arrive: 80, answerCall: 80, finish: 20, wait: 20, failCall: 6, failWork: 4, slowAnswer: 4, loseAnswer: 12,
	lateRequest: 12, act: 6, byHand: 2, deleteByHand: 1, killProcess: 2, pauseProcess: 2, startNext: 30,
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
	if c := w.braked(); c != nil {
		all = append(all, choice{finish, "a person releases the brake", func() { w.releaseBrake(c) }})
	}
	all = append(all, w.approvalChoices()...)
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
		if !c.mutates && strings.HasPrefix(c.name, "cloud ") {
			all = append(all, choice{slowAnswer, "slow: " + c.String(), func() { c.slow = true }})
		}
	}
	for _, c := range w.calls.slow() {
		all = append(all, choice{lateRequest, "go on: " + c.String(), func() { c.slow = false }})
	}
	all = append(all, w.workFailures()...)
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

// workFailures returns how what the cloud works on fails.
func (w *world) workFailures() []choice {
	var all []choice
	if w.working {
		for _, kind := range []cloud.Kind{cloud.Failed, cloud.Quota} {
			all = append(all, choice{failWork, fmt.Sprintf("the operations fail: %s", kind), func() {
				w.working = false
				w.cloud.FailOperations(&cloud.Error{Kind: kind, Op: "operation", Detail: "injected"})
			}})
		}
	}
	if w.cloud.Watchers() > 0 && !w.calls.reporting() { // a watch that reports ends with the report
		all = append(all, choice{failWork, "the watches end", w.cloud.EndWatches})
	}
	for _, s := range w.cloud.Servers() {
		if s.State == cloud.StateDeleting {
			all = append(all, choice{failWork, "the cloud does not delete " + s.ID, func() {
				w.modify(s.ID, func(s *cloud.Server) { s.State = cloud.StateActive })
			}})
		}
	}
	return all
}

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
		all = append(all, choice{startNext, "start another manager", w.start})
	}
	return all
}

// names are those of the VMs and the group that users create. One VM is on the Network.
var names = []string{"a", networked}

const networked, group = "b", "g"

func (w *world) userChoices() []choice {
	var all []choice
	user := func(name string, do func() error) {
		all = append(all, choice{act, "user: " + name, func() { _ = do() }})
	}
	for _, name := range names {
		key := client.ObjectKey{Namespace: "default", Name: name}
		vm, exists := w.api.find(vmKind, key).(*pcapi.VM)
		if !exists {
			spec := pcapi.VMSpec{VMName: name, CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}
			if name == networked && w.profile.capabilities.Has(cloud.Networks) {
				spec.NetworkRef = &pcapi.NetworkReference{Name: networkKey.Name}
			}
			create := func(spec pcapi.VMSpec) error {
				return w.api.create(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec})
			}
			user("create VM "+name, func() error { return create(spec) })
			user("create VM "+name+" with approvals", func() error {
				spec.Approval = pcapi.ApprovalRequired
				return create(spec)
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
	return append(all, w.networkChoices()...)
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
		if s.State.Transitional() {
			continue
		}
		if w.deletable(s.ID) {
			all = append(all, choice{deleteByHand, "by hand: delete " + s.ID, func() {
				w.cloud.RemoveServers(s.ID)
				w.deletedByHand[s.ID] = true
			}})
		}
		if s.State != cloud.StateActive {
			continue
		}
		all = append(all,
			choice{byHand, "by hand: resize " + s.ID, func() { w.modify(s.ID, func(s *cloud.Server) { s.CPU = 7 }) }},
			choice{byHand, "by hand: stop " + s.ID, func() { w.modify(s.ID, func(s *cloud.Server) { s.State = cloud.StateStopped }) }},
		)
	}
	return all
}

// modify changes a server in the cloud.
func (w *world) modify(id string, change func(*cloud.Server)) {
	w.cloud.ModifyServer(id, func(s *cloud.Server) {
		change(s)
		s.UpdatedAt = time.Now()
	})
}

// deletable reports whether a person may delete a server. On a cloud with keys that is one on
// record: else the cloud may answer the next create with the server that was deleted.
func (w *world) deletable(id string) bool {
	return !w.profile.capabilities.Has(cloud.Idempotency) ||
		slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return o.(*pcapi.VM).Status.VMID == id })
}

// braked returns the Cloud if its brake is on, else nil.
func (w *world) braked() *pcapi.Cloud {
	c := w.api.find(cloudKind, client.ObjectKey{Name: pcapi.DefaultCloudName}).(*pcapi.Cloud)
	if c.Status.BrakedSnapshot == "" || c.Annotations[pcapi.AcknowledgeAnnotation] == c.Status.BrakedSnapshot {
		return nil
	}
	return c
}

// releaseBrake acknowledges that servers have disappeared.
func (w *world) releaseBrake(c *pcapi.Cloud) {
	next := c.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, pcapi.AcknowledgeAnnotation, c.Status.BrakedSnapshot)
	_ = w.api.update(next)
}
