package simulation

import (
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

const operatorNamespace = "operator"

// scheme has the kinds of the simulation.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		panic(err)
	}
	if err := pcapi.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

// life is one run: an API server, a cloud, and the processes of the operator, one after the other or
// side by side. It runs in a bubble of testing/synctest, whose clock moves when the scheduler says so.
type life struct {
	profile profile
	api     *apiServer
	cloud   *fake.Cloud
	calls   calls
	lease   lease
	// processes are those that are not dead, the oldest first.
	processes []*process
	started   int

	decide decider
	// faulty: calls may fail, processes may be killed, and users and people may act.
	faulty bool
	// working: a change was sent to a cloud with operations since it last finished.
	working bool
	// left bounds what users and people still do.
	left int

	// chosen are the names of the decisions of the decider, and trace those of all.
	chosen, trace []string
	// operations counts the decisions.
	operations int
	// violations are what is wrong, each once.
	violations []string
}

// decider chooses what happens next.
type decider interface {
	// choose returns one of the choices, nil to end the faults.
	choose(choices []choice) *choice
}

func newLife(p profile, d defaults, decide decider) *life {
	l := &life{profile: p, decide: decide, faulty: true, left: 12}
	l.calls.numbers = map[string]int{}
	l.api = newAPIServer(scheme, d, time.Now)
	l.api.changed = l.checkChange
	l.cloud = fake.New(fake.Options{Capabilities: p.capabilities})
	l.cloud.SetSlow(p.slow)
	l.cloud.SetOperating(p.operating)
	l.cloud.SetProving(p.operating)
	l.cloud.SetLag(p.lag)
	for _, name := range []string{metav1.NamespaceSystem, operatorNamespace, "default"} {
		l.mustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	l.mustCreate(&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: pcapi.DefaultCloudName}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeREST, Endpoint: "http://cloud", InsecureAllowHTTP: true,
		PollInterval: metav1.Duration{Duration: pollInterval}, SettleTime: &metav1.Duration{Duration: settleTime},
	}})
	return l
}

func (l *life) mustCreate(obj interface {
	metav1.Object
	runtime.Object
}) {
	if err := l.api.create(obj); err != nil {
		panic(err)
	}
}

// run lives until the decider ends the faults, and then until nothing is left to do.
func (l *life) run() {
	l.start()
	for len(l.violations) == 0 {
		synctest.Wait()
		l.keepLease()
		l.checkCloud()
		c := l.decide.choose(l.choices())
		if c == nil {
			break
		}
		l.chosen = append(l.chosen, c.name)
		l.do(*c)
	}
	if len(l.violations) == 0 {
		l.converge()
	}
	l.end()
}

// do makes a choice happen.
func (l *life) do(c choice) {
	l.operations++
	l.trace = append(l.trace, c.name)
	c.do()
}

func (l *life) start() { l.processes = append(l.processes, startProcess(l)) }

// keepLease renews the lease of a process that runs, and ends those that have lost it.
func (l *life) keepLease() {
	if h := l.lease.holder; h != nil && !h.dead && !h.paused {
		l.lease.renewed = time.Now()
	}
	for _, p := range slices.Clone(l.processes) {
		if p != l.lease.holder && !p.paused {
			l.kill(p)
		}
	}
}

func (l *life) kill(p *process) {
	p.kill()
	l.processes = slices.DeleteFunc(l.processes, func(o *process) bool { return o == p })
	if l.lease.holder == p {
		l.lease = lease{}
	}
}

// end ends all processes, and waits until their goroutines have ended.
func (l *life) end() {
	for _, p := range slices.Clone(l.processes) {
		l.kill(p)
	}
	sleep(time.Hour)
	synctest.Wait()
}

// quiet is for how long nothing may change at the end.
const quiet = time.Minute

// converge ends the faults and lets time run on, until everything should be as specified.
func (l *life) converge() {
	l.faulty = false
	for _, c := range l.calls.late {
		l.trace = append(l.trace, "late "+c.String())
		c.effect()
	}
	l.calls.late = nil
	for _, p := range slices.Clone(l.processes) {
		p.paused = false
	}
	l.drain(4 * settleTime)
	if len(l.violations) > 0 {
		return
	}
	l.checkConverged()
	before := l.api.version
	l.drain(quiet)
	if l.api.version != before {
		l.violate("at rest nothing is written", "%d writes in %s", l.api.version-before, quiet)
	}
}

// drain lets all happen that can, without faults, for a time.
func (l *life) drain(d time.Duration) {
	for end := time.Now().Add(d); len(l.violations) == 0; {
		synctest.Wait()
		if len(l.processes) == 0 {
			l.start()
			continue
		}
		l.keepLease()
		l.checkCloud()
		choices := l.progress()
		if len(choices) > 0 {
			l.do(choices[0])
			continue
		}
		if !time.Now().Before(end) {
			return
		}
		l.advance(min(time.Second, time.Until(end)))
	}
}

// advance lets time pass. Late requests arrive before they are older than half of the settle time.
func (l *life) advance(d time.Duration) {
	for len(l.calls.late) > 0 {
		c := l.calls.late[0]
		until := time.Until(c.sentAt.Add(settleTime / 2))
		if until > d {
			break
		}
		if until > 0 {
			sleep(until)
			d -= until
			synctest.Wait()
		}
		l.calls.late = l.calls.late[1:]
		c.effect()
	}
	sleep(d)
}

// sleep moves the clock of the bubble.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // nothing waits in real time

// violate records that an invariant does not hold.
func (l *life) violate(invariant, format string, args ...any) {
	text := invariant + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(l.violations, text) {
		l.violations = append(l.violations, text)
	}
}

// report returns what happened, for people.
func (l *life) report() string {
	return fmt.Sprintf("profile %s\n%s\n=> %s", l.profile.name, strings.Join(l.trace, "\n"), strings.Join(l.violations, "\n=> "))
}
