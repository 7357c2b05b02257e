package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
	"github.com/privatecloud/operator/test/corpus"
)

const (
	// replaySpeed is how much faster a trace is played than the simulation has it.
	replaySpeed = 5
	// replaySettleTime, replayPollInterval and replayLag, how late reads show a new server on a cloud that lags behind, are
	// those of the simulation at that speed.
	replaySettleTime   = 30 * time.Second / replaySpeed
	replayPollInterval = 10 * time.Second / replaySpeed
	replayLag          = 13 * time.Second / replaySpeed
	// restful is for how long no change is sent once the operator is at rest, and idle once a call that a decision is about
	// counts as not made. busy bounds both waits.
	restful, idle, busy = time.Second, 3 * time.Second, 15 * time.Second
)

// replayProfile is a profile of the simulation.
type replayProfile struct {
	profile
	// slow: builds and deletions take time. Lagging: reads show new servers late. Tardy: creates may take effect later than
	// the settle time allows.
	slow, lagging, tardy bool
	// poll is the poll interval, replayPollInterval if zero.
	poll time.Duration
}

// replayProfiles are clouds of the simulation, by name. Traces of others are not played.
var replayProfiles = map[string]replayProfile{
	"all":             {profile: extended},
	"keys":            {profile: profile{name: "keys", exact: true, mock: without(mockcloud.UniqueNames, mockcloud.Networks)}, slow: true, lagging: true},
	"names":           {profile: keyless, lagging: true},
	"labels":          {profile: labelled, lagging: true, tardy: true},
	"core":            {profile: profile{name: "core", mock: without(mockcloud.Idempotency, mockcloud.UniqueNames, mockcloud.Labels, mockcloud.Networks)}},
	"exclusive names": {profile: profile{name: "exclusive names", exact: true, rest: exclusive, mock: without(mockcloud.Idempotency, mockcloud.Labels, mockcloud.Networks)}},
	"operations":      {profile: profile{name: "operations", exact: true, mock: withOperations(mockcloud.Networks)}},
	"events":          {profile: profile{name: "events", exact: true, mock: with(without(mockcloud.UniqueNames, mockcloud.Networks), mockcloud.Events)}, slow: true, lagging: true, poll: time.Minute / replaySpeed},
}

// replay plays a trace of the simulation with managers as processes, a real API server and the mock cloud. Between decisions
// the calls of the managers are held, but for their leases, lists and watches. What the trace says of caches and queues is
// left out.
type replay struct {
	world *world
	trace []string
	tardy bool
	// leftOut are the decisions that could not be made.
	leftOut []string
	// next are the decisions after the current one.
	next []string
	// arrived is the key of a call that has taken effect and whose answer is held, empty if there is none.
	arrived string
	paused  []*testkit.Process
	// ended is closed when the trace has ended: nothing is held any more.
	ended chan struct{}

	mu sync.Mutex
	// expected are the calls that the trace is about, by key.
	expected map[string]*expected
	// started is how many managers were started.
	started int
	// numbers counts the calls of each manager and name.
	numbers map[string]int
	// held are the calls that have not been sent on.
	held []*replayedCall
	// late are the requests that take effect although their callers have an error, by key; nil once they have.
	late   map[string]*replayedCall
	outage string
	// goOn is closed while calls go on.
	goOn chan struct{}
	// last is when the last change came or was answered, and changing is how many have no answer.
	last     time.Time
	changing int
}

// playable are the decisions that real processes can make, beside those about calls.
var playable = regexp.MustCompile(`^(go on|wait \S+|(deliver|reconcile) .*|start another manager|(kill|stop|pause|resume) manager-\d+|outage: \w+|the outage ends` +
	`|user: create VM [ab]( with approvals)?|user: (delete|resize|switch) VM [ab]|user: (create|delete|change the gateway of) Network n|by hand: delete s[1-9]\d*)$`)

// replayable reports whether real processes can make all decisions of a trace. The names of the members of a group differ
// in each run.
func replayable(r *corpus.Recording) bool {
	_, known := replayProfiles[r.Profile]
	return known && !slices.ContainsFunc(r.Trace, func(decision string) bool {
		_, _, about := aboutCall(decision)
		return strings.Contains(decision, "g-replica-") || !about && !playable.MatchString(decision)
	})
}

// replay plays a trace, waits until it ends in the state that the recording says, and returns the decisions that could not
// be made.
func (env *environment) replay(ctx context.Context, recording *corpus.Recording) (leftOut []string, err error) {
	p := replayProfiles[recording.Profile]
	if p.slow {
		p.mock.BuildTime, p.mock.DeleteTime = slowly, slowly
	}
	if p.lagging {
		p.mock.Quirks.ReadLag = mockcloud.Duration(replayLag)
	}
	w, err := env.newWorld(ctx, setting{profile: p.profile, spec: pcapi.CloudSpec{
		SettleTime: &metav1.Duration{Duration: replaySettleTime}, PollInterval: metav1.Duration{Duration: cmp.Or(p.poll, replayPollInterval)},
	}})
	if err != nil {
		return nil, err
	}
	defer w.close()
	r := &replay{
		world: w, trace: recording.Trace, tardy: p.tardy, ended: make(chan struct{}),
		expected: map[string]*expected{}, numbers: map[string]int{}, late: map[string]*replayedCall{}, goOn: make(chan struct{}),
	}
	for _, decision := range recording.Trace {
		if _, key, ok := aboutCall(decision); ok {
			r.expected[key] = &expected{here: make(chan struct{}), do: make(chan string), done: make(chan string, 1)}
		}
	}
	w.gate.intercept = r.intercept
	err = r.play(ctx)
	close(r.ended)
	if err == nil {
		err = r.converge(ctx, recording.End)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, w.report())
	}
	return r.leftOut, err
}

// play makes the decisions of the trace.
func (r *replay) play(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	for i, decision := range r.trace {
		r.next = r.trace[i+1:]
		made, err := r.decide(ctx, decision)
		if err != nil {
			return fmt.Errorf("%s: %w", decision, err)
		}
		_, _ = fmt.Fprintf(r.world.log, "--- %s\n", decision)
		if !made {
			r.leftOut = append(r.leftOut, decision)
		}
	}
	return nil
}

// decide makes a decision, and reports whether it could.
func (r *replay) decide(ctx context.Context, decision string) (made bool, err error) {
	if do, key, ok := aboutCall(decision); ok {
		return r.decideAboutCall(ctx, do, key)
	}
	verb, rest, _ := strings.Cut(decision, " ")
	switch {
	case decision == "go on":
		return true, r.work(ctx)
	case verb == "deliver", verb == "reconcile":
		return true, nil
	}
	defer r.giveAnswer()
	switch {
	case verb == "wait":
		d, err := time.ParseDuration(rest)
		return true, errors.Join(err, r.pass(ctx, d/replaySpeed, nil))
	case decision == "start another manager":
		return true, r.start(ctx)
	case slices.Contains([]string{"kill", "stop", "pause", "resume"}, verb):
		return true, r.signal(verb, rest)
	case verb == "outage:":
		r.setOutage(rest)
		return true, nil
	case decision == "the outage ends":
		r.setOutage("")
		return true, nil
	case verb == "user:":
		err := r.user(ctx, rest)
		if apierrors.IsAlreadyExists(err) { // the one before is being deleted
			err = errors.Join(r.work(ctx), r.user(ctx, rest))
		}
		return true, err
	case strings.HasPrefix(decision, "by hand: delete "):
		return true, r.deleteByHand(ctx, strings.TrimPrefix(decision, "by hand: delete "))
	}
	return false, errors.New("a run with real processes has no such decision")
}

// decideAboutCall waits for a call, and has something happen to it.
func (r *replay) decideAboutCall(ctx context.Context, do, key string) (made bool, err error) {
	switch do {
	case "late":
		defer r.giveAnswer()
		return r.takeEffect(key), nil
	case "never":
		defer r.giveAnswer()
		return r.forget(key), nil
	}
	about := r.expected[key]
	here := func() bool {
		select {
		case <-about.here:
			return true
		default:
			return false
		}
	}
	if about == nil { // it was not made when it was expected
		return false, nil
	}
	if !here() {
		r.resume()
		err := r.pass(ctx, busy, func() bool { return here() || r.rests(idle) })
		r.hold()
		if err != nil {
			return false, err
		}
	}
	if r.giveUp(key) {
		return false, nil
	}
	if r.arrived != key {
		r.giveAnswer()
	}
	r.arrived = ""
	if made = r.instruct(about, do); made && do == "arrive" {
		r.arrived = key
	}
	return made, nil
}

// giveUp makes a call one like any other if it has not been made, and reports whether it has not.
func (r *replay) giveUp(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.expected[key].here:
		return false
	default:
		delete(r.expected, key)
		return true
	}
}

// pass lets time pass, until enough reports true. Requests that are late for half of the settle time take effect, and people
// approve plans if calls go on.
func (r *replay) pass(ctx context.Context, d time.Duration, enough func() bool) error {
	for began := time.Now(); time.Since(began) < d && (enough == nil || !enough()); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		for _, key := range r.overdue(replaySettleTime / 2) {
			r.takeEffect(key)
		}
		select {
		case <-r.calls():
			if err := r.approve(ctx); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// work lets calls go on until nothing is sent any more.
func (r *replay) work(ctx context.Context) error {
	r.resume()
	defer r.hold()
	return r.pass(ctx, busy, func() bool { return r.rests(restful) })
}

// converge lets all go on without faults, until nothing was changed for two polls and the run is in the state of the recording.
func (r *replay) converge(ctx context.Context, end string) error {
	w := r.world
	r.setOutage("")
	for _, key := range r.overdue(0) {
		r.takeEffect(key)
	}
	for _, m := range r.paused {
		if err := m.Signal(syscall.SIGCONT); err != nil {
			return err
		}
	}
	r.resume()
	var last string
	var failed error
	if err := r.pass(ctx, converges, func() bool {
		if !slices.ContainsFunc(w.managers, func(m *testkit.Process) bool { return !m.Ended() }) {
			failed = r.startManager()
		}
		if failed != nil || !r.rests(2*replayPollInterval) {
			return failed != nil
		}
		last, failed = r.state(ctx)
		return failed != nil || last == end
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	wrong := w.wrongAtAnyTime()
	if last != end {
		wrong = append(wrong, fmt.Sprintf("the run ends with %q, and with %q in the simulation", last, end))
	}
	if strings.Contains(w.log.String(), "\npanic: ") {
		wrong = append(wrong, "a manager panicked")
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// state returns the state of the run, as recordings have it.
func (r *replay) state(ctx context.Context) (string, error) {
	w := r.world
	var vms pcapi.VMList
	var networks pcapi.NetworkList
	here := client.InNamespace(w.name)
	if err := errors.Join(w.env.client.List(ctx, &vms, here), w.env.client.List(ctx, &networks, here)); err != nil {
		return "", err
	}
	var objects []client.Object
	for i := range vms.Items {
		objects = append(objects, &vms.Items[i])
	}
	for i := range networks.Items {
		objects = append(objects, &networks.Items[i])
	}
	return corpus.Ending(objects, len(w.ownServers()), len(w.mock.Networks())), nil
}
