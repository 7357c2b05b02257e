package fake

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

// Verb is what a call does. It names calls in the log and in faults.
type Verb string

// The calls of a cloud.Client but Close.
const (
	Capabilities  Verb = "capabilities"
	CheckName     Verb = "check"
	GetServer     Verb = "get"
	ServerStatus  Verb = "status"
	ListServers   Verb = "list"
	CreateServer  Verb = "create"
	UpdateServer  Verb = "update"
	DeleteServer  Verb = "delete"
	GetOperation  Verb = "operation"
	ListHosts     Verb = "list hosts"
	ListNetworks  Verb = "list networks"
	GetNetwork    Verb = "get network"
	CreateNetwork Verb = "create network"
	UpdateNetwork Verb = "update network"
	DeleteNetwork Verb = "delete network"
	Watch         Verb = "watch"

	ListSnapshots  Verb = "list snapshots"
	CreateSnapshot Verb = "create snapshot"
	DeleteSnapshot Verb = "delete snapshot"
	RevertServer   Verb = "revert"

	ReadConsole Verb = "read console"
)

// changes reports whether calls of this verb change the cloud.
func (v Verb) changes() bool {
	return slices.Contains([]Verb{CreateServer, UpdateServer, DeleteServer, CreateNetwork, UpdateNetwork, DeleteNetwork, CreateSnapshot, DeleteSnapshot, RevertServer}, v)
}

// call is one call of the client.
type call struct {
	verb Verb
	// object is the name or id that the call is about, if any.
	object string
	// op is what errors say was being done.
	op string
	// needs are the capabilities without which the client does not send the call.
	needs []cloud.Capability
}

// entry is a call in the log.
type entry struct {
	verb   Verb
	object string
}

func (e entry) String() string { return strings.TrimSpace(string(e.verb) + " " + e.object) }

// log holds the calls that reached the cloud.
type log struct {
	// sent counts all of them; entries are those since they were last taken.
	sent    map[Verb]int
	entries []entry
}

// fault is how a call fails. A fault without err is none.
type fault struct {
	err       error
	committed bool
}

// faults holds how calls fail, by verb.
type faults struct {
	// next are the faults of the next calls, one each; always is for calls after those.
	next   map[Verb][]fault
	always map[Verb]fault
	// ignored are the verbs whose changes are accepted without an effect.
	ignored map[Verb]bool
}

func newFaults() faults {
	return faults{next: map[Verb][]fault{}, always: map[Verb]fault{}, ignored: map[Verb]bool{}}
}

func (f faults) take(verb Verb) fault {
	if queue := f.next[verb]; len(queue) > 0 {
		f.next[verb] = queue[1:]
		return queue[0]
	}
	return f.always[verb]
}

// calls makes the calls of all parts of a cloud, which share its lock.
type calls struct {
	mu       *sync.Mutex
	settings *settings

	log    log
	faults faults
	// onCall is called before a call has its effect, and onAnswer after.
	onCall, onAnswer Hook
	misuse           error
}

// do makes a call: it is refused, or it is logged, passed to the hook, and ends
// as a fault says or as effect does. Effect runs with mu held.
func do[R any](ctx context.Context, c *calls, call call, effect func() (R, error)) (R, error) {
	var none R
	if err := c.send(ctx, call); err != nil {
		return none, err
	}
	result, answered, err := perform(c, call, effect)
	if answered != nil {
		answered(ctx, call.verb, call.object)
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

// perform ends a call as a fault says or as effect does, and returns the hook of answers.
func perform[R any](c *calls, call call, effect func() (R, error)) (result R, answered Hook, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fault := c.faults.take(call.verb)
	if fault.err == nil || fault.committed {
		result, err = effect()
	}
	if fault.err != nil {
		err = asError(call, fault)
	}
	return result, c.onAnswer, err
}

// send brings a call to the cloud.
func (c *calls) send(ctx context.Context, call call) error {
	if err := ctx.Err(); err != nil {
		return &cloud.Error{Kind: cloud.Unavailable, Op: call.op, Detail: "no time left for the call", Err: err}
	}
	hook, err := c.admit(call)
	if err != nil || hook == nil {
		return err
	}
	hook(ctx, call.verb, call.object)
	if err := ctx.Err(); err != nil {
		return &cloud.Error{
			Kind: cloud.Unavailable, Op: call.op, Detail: "no time left for an answer", Err: err, Uncertain: call.verb.changes(),
		}
	}
	return nil
}

// admit logs a call, unless the cloud lacks what it needs, and returns the hook.
func (c *calls) admit(call call) (Hook, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := lacking(call, c.settings.caps); err != nil {
		if c.misuse == nil {
			c.misuse = err
		}
		return nil, err
	}
	c.log.sent[call.verb]++
	c.log.entries = append(c.log.entries, entry{call.verb, call.object})
	return c.onCall, nil
}

// asError returns the error of a fault as the contract of cloud.Client demands.
func asError(call call, f fault) error {
	if _, ok := errors.AsType[*cloud.Error](f.err); ok {
		return f.err
	}
	return &cloud.Error{Kind: cloud.Unavailable, Op: call.op, Err: f.err, Uncertain: f.committed}
}

// Fail makes the next call of a verb fail with err. Committed means that the
// call takes effect all the same. Calls queue: the second Fail is for the call
// after the next. With a nil err the call succeeds. An err that is no
// *cloud.Error is wrapped in one of Kind Unavailable.
func (c *Cloud) Fail(verb Verb, err error, committed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.faults.next[verb] = append(c.calls.faults.next[verb], fault{err, committed})
}

// FailAlways makes every call of a verb fail, as Fail does, until Heal.
func (c *Cloud) FailAlways(verb Verb, err error, committed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.faults.always[verb] = fault{err, committed}
}

// Ignore makes the cloud accept updates or deletions of a verb without an effect,
// until Heal.
func (c *Cloud) Ignore(verb Verb) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.faults.ignored[verb] = true
}

// Heal ends Fail, FailAlways and Ignore for these verbs, for all if there are none.
func (c *Cloud) Heal(verbs ...Verb) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(verbs) == 0 {
		c.calls.faults = newFaults()
	}
	for _, verb := range verbs {
		delete(c.calls.faults.next, verb)
		delete(c.calls.faults.always, verb)
		delete(c.calls.faults.ignored, verb)
	}
}

// Hook is called at some point of a call, which waits for it.
type Hook func(ctx context.Context, verb Verb, object string)

// OnAnswer sets a function that is called when a call has had its effect, before it is
// answered.
func (c *Cloud) OnAnswer(hook Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.onAnswer = hook
}

// OnCall sets a function that is called when a call has reached the cloud,
// before it has an effect. The call waits for it. If ctx ends meanwhile, the call
// fails without an effect.
func (c *Cloud) OnCall(hook Hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.onCall = hook
}

// TakeCalls returns the calls since it was last called, as "verb object", without
// those of the verbs given.
func (c *Cloud) TakeCalls(without ...Verb) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var calls []string
	for _, e := range c.calls.log.entries {
		if !slices.Contains(without, e.verb) {
			calls = append(calls, e.String())
		}
	}
	c.calls.log.entries = nil
	return calls
}

// Sent returns how many calls of these verbs have reached the cloud, of all if
// there are none.
func (c *Cloud) Sent(verbs ...Verb) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for verb, sent := range c.calls.log.sent {
		if len(verbs) == 0 || slices.Contains(verbs, verb) {
			n += sent
		}
	}
	return n
}

// Misuse returns the error of the first call that was refused because the cloud
// lacks a capability: the caller must not make such calls.
func (c *Cloud) Misuse() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls.misuse
}

// attaches returns the capability that a server on a network needs.
func (c *calls) attaches() cloud.Capability {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings.caps.Has(cloud.NetworkAttach) {
		return cloud.NetworkAttach
	}
	return cloud.Networks
}
