package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/testkit"
)

const operatorNamespace = "operator"

// scheme has the kinds of the simulation.
var scheme = func() *runtime.Scheme {
	s, err := testkit.Scheme()
	if err != nil {
		panic(err)
	}
	return s
}()

// world is one run: an API server, a cloud, and the processes of the operator, one after the other or
// side by side. It runs in a bubble of testing/synctest, whose clock moves when the scheduler says so.
type world struct {
	profile profile
	api     *apiServer
	cloud   *fake.Cloud
	calls   calls
	lease   lease
	// processes are those that are not dead, the oldest first.
	processes []*process
	started   int

	decide decider
	// working: a change was sent to a cloud with operations since it last finished.
	working bool
	// outage is how the calls of the cloud fail for now, if they do.
	outage fault
	// left bounds what users and people still do.
	left int
	// deletedByHand are the servers that somebody deleted in the cloud.
	deletedByHand map[string]bool
	approved      approvals

	// shown are the ids of servers that a GET has shown.
	shown map[string]bool
	// tardy are the ids of servers whose creates took longer than the settle time allows.
	tardy map[string]bool
	// doubtful are the names of VMs of which a create may have been sent whose answer nobody has.
	doubtful map[string]bool

	// hashing: histories are kept, which tell states apart. History is that of the cloud and of objects.
	hashing bool
	history uint64

	// chosen are the names of the decisions of the decider, and trace those of all.
	chosen, trace []string
	// operations counts the decisions, and changes those of the cloud that arrived.
	operations, changes int
	// violations are what is wrong, each once.
	violations []string
	// checked counts the checks of each invariant.
	checked map[string]int
	// observer records the states. It may be nil.
	observer *observer
}

// decider chooses what happens next.
type decider interface {
	// choose returns one of the choices, nil to end the faults.
	choose(choices []choice) *choice
}

func newWorld(p profile, d defaults, decide decider) *world {
	w := &world{
		profile: p, decide: decide, left: 12, approved: approvals{},
		deletedByHand: map[string]bool{}, shown: map[string]bool{}, tardy: map[string]bool{}, doubtful: map[string]bool{}, checked: map[string]int{},
	}
	w.calls.numbers = map[string]int{}
	w.api = newAPIServer(scheme, d, time.Now)
	w.api.changed = w.checkChange
	w.cloud = fake.New(fake.Options{Capabilities: p.capabilities})
	w.cloud.SetSlow(p.slow)
	w.cloud.SetOperating(p.operating)
	w.cloud.SetProving(p.operating)
	w.cloud.SetLag(p.lag)
	w.cloud.SetUndated(p.undated)
	for _, name := range []string{metav1.NamespaceSystem, operatorNamespace, "default"} {
		w.mustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.mustCreate(&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: pcapi.DefaultCloudName}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeREST, Endpoint: "http://cloud", InsecureAllowHTTP: true,
		PollInterval: metav1.Duration{Duration: cmp.Or(p.poll, pollInterval)}, SettleTime: &metav1.Duration{Duration: settleTime},
	}})
	return w
}

func (w *world) mustCreate(obj client.Object) {
	if err := w.api.create(obj); err != nil {
		panic(err)
	}
}

// run makes decisions until the decider ends the faults, and then lets all converge.
func (w *world) run() {
	w.start()
	for len(w.violations) == 0 {
		w.step()
		c := w.decide.choose(w.choices())
		if c == nil {
			break
		}
		w.chosen = append(w.chosen, c.name)
		w.do(*c)
	}
	if len(w.violations) == 0 {
		w.converge()
	}
	w.end()
}

// do makes a choice happen.
func (w *world) do(c choice) {
	w.operations++
	w.trace = append(w.trace, c.name)
	c.do()
}

// create creates a server. A create that took longer than the settle time allows has an effect only if its
// VM exists: otherwise the server would have nobody who deletes it.
func (w *world) create(ctx context.Context, sentAt time.Time, req cloud.CreateServer) (cloud.Result, error) {
	tardy := w.profile.tardy() && time.Since(sentAt) > settleTime/2
	if tardy && !w.wanted(req.Labels[inventory.UIDLabel]) {
		return cloud.Result{}, &cloud.Error{Kind: cloud.Unavailable, Op: "create", Detail: "injected: the request is too old"}
	}
	result, err := w.cloud.CreateServer(ctx, req)
	if err == nil && tardy {
		w.tardy[result.Server.ID] = true
	}
	return result, err
}

// mayLag reports whether a GET may not show a server yet: no other one has.
func (w *world) mayLag(id string) bool {
	return w.profile.lag > 0 && !w.shown[id] && slices.ContainsFunc(w.cloud.Servers(), func(s cloud.Server) bool {
		return s.ID == id && s.State != cloud.StateDeleting && time.Since(s.CreatedAt) < w.profile.lag
	})
}

// note adds something that changes the cloud to its history.
func (w *world) note(changed ...any) {
	if w.hashing {
		w.history = mixed(w.history, changed...)
	}
}

// wanted reports whether a VM exists that is not being deleted, and does not depend on a Network.
func (w *world) wanted(uid string) bool {
	return slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool {
		return string(o.GetUID()) == uid && o.GetDeletionTimestamp() == nil && o.(*pcapi.VM).Spec.NetworkRef == nil
	})
}

// start starts a process. What the creates of others answer, it does not know.
func (w *world) start() {
	w.doubtUnrecorded()
	w.processes = append(w.processes, startProcess(w))
}

// step prepares a decision: all goroutines wait for one, and processes whose end is due have ended.
func (w *world) step() {
	synctest.Wait()
	w.keepLease()
	synctest.Wait()
	w.checkCloud()
	if w.observer != nil {
		w.observer.observe(w)
	}
}

// keepLease renews the lease of a process that runs, and ends processes that were asked to stop.
func (w *world) keepLease() {
	if h := w.lease.holder; h != nil && !h.dead && !h.paused {
		h.renewed = time.Now()
		w.lease.renewed = h.renewed
	}
	for _, p := range slices.Clone(w.processes) {
		if !p.stopped.IsZero() && (p.running.Load() == 0 || time.Since(p.stopped) > reconciler.StopTimeout) {
			released := w.lease.holder == p && !p.paused
			w.kill(p)
			if released {
				w.lease = lease{}
			}
		}
	}
}

// leaseFree reports whether a process that starts acquires the lease.
func (w *world) leaseFree() bool {
	return w.lease.holder == nil || time.Since(w.lease.renewed) > leaseDuration
}

// kill ends a process at once. It does not release the lease.
func (w *world) kill(p *process) {
	w.doubtUnrecorded()
	w.processes = slices.DeleteFunc(w.processes, func(o *process) bool { return o == p })
	p.kill()
}

// doubtUnrecorded makes the VMs doubtful that have a claim and no id: what their creates answered may be lost.
func (w *world) doubtUnrecorded() {
	for _, o := range w.api.all(vmKind) {
		if vm := o.(*pcapi.VM); vm.Status.VMID == "" && vm.Annotations[pcapi.ClaimedNameAnnotation] != "" {
			w.doubtful[vm.Spec.VMName] = true
		}
	}
}

// end ends all processes, and waits until their goroutines have ended.
func (w *world) end() {
	for _, p := range slices.Clone(w.processes) {
		w.kill(p)
	}
	synctest.Wait()
	sleep(time.Hour)
	synctest.Wait()
}

const (
	// quiet is for how long nothing may change at the end.
	quiet = time.Minute
	// maxSteps bounds the decisions of a second in which nothing fails.
	maxSteps = 2000
)

// converge lets time run on without faults, until everything should be as specified.
func (w *world) converge() {
	w.outage = ""
	for _, c := range w.calls.changes() {
		if w.calls.take(c) {
			w.trace = append(w.trace, "late "+c.String())
			c.effect()
		}
	}
	for _, p := range slices.Clone(w.processes) {
		if p != w.lease.holder { // it exits, as it cannot renew the lease
			w.kill(p)
		}
		p.paused = false
	}
	for _, c := range w.calls.slow() {
		c.slow = false
	}
	w.drain(leaseDuration + 4*settleTime)
	if len(w.violations) > 0 {
		return
	}
	w.checkConverged()
	writes, changes := w.api.version, w.changes
	w.drain(quiet)
	w.checked[atRest]++
	if w.api.version != writes || w.changes != changes {
		w.violate(atRest, "%d writes and %d changes of the cloud in %s", w.api.version-writes, w.changes-changes, quiet)
	}
	if len(w.violations) == 0 {
		w.correct()
	}
}

// correct has a person change a server by hand, which is corrected.
func (w *world) correct() {
	servers := w.cloud.Servers()
	i := slices.IndexFunc(servers, func(s cloud.Server) bool { return s.State == cloud.StateActive })
	if i < 0 {
		return
	}
	w.trace = append(w.trace, "by hand: resize "+servers[i].ID)
	w.modify(servers[i].ID, func(s *cloud.Server) { s.CPU = 7 })
	w.drain(quiet)
	w.checkConverged()
}

// drain lets all happen that can, without faults, for a time.
func (w *world) drain(d time.Duration) {
	steps := 0
	for end := time.Now().Add(d); len(w.violations) == 0; steps++ {
		w.step()
		if len(w.processes) == 0 && w.leaseFree() {
			w.start()
			continue
		}
		choices := w.progress()
		switch {
		case len(choices) > 0 && steps > maxSteps:
			w.violate(atRest, "%d steps in a second, such as %q", steps, choices[0].name)
		case len(choices) > 0:
			w.do(choices[0])
		case !time.Now().Before(end):
			return
		default:
			w.advance(min(time.Second, time.Until(end)))
			steps = 0
		}
	}
}

// advance lets time pass, at most a second at a time, so that the lease is renewed. A request arrives
// before it is older than half of the settle time, except for creates on a cloud where they may be tardy.
func (w *world) advance(d time.Duration) {
	for d > 0 {
		slice := min(d, time.Second)
		for _, p := range w.processes {
			p.note("wait", slice)
		}
		sleep(slice)
		d -= slice
		synctest.Wait()
		w.keepLease()
		synctest.Wait()
		for _, c := range w.calls.changes() {
			if time.Since(c.sentAt) < settleTime/2 {
				break
			}
			if w.profile.tardy() && c.creates() {
				continue
			}
			if w.calls.take(c) {
				c.effect()
			} else {
				w.arrive(c)
			}
		}
	}
}

// sleep moves the clock of the bubble.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // nothing waits in real time

// violate records that an invariant does not hold.
func (w *world) violate(invariant, format string, args ...any) {
	text := invariant + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(w.violations, text) {
		w.violations = append(w.violations, text)
	}
}

// violated returns the invariant that does not hold, empty if all do.
func (w *world) violated() string {
	if len(w.violations) == 0 {
		return ""
	}
	invariant, _, _ := strings.Cut(w.violations[0], ":")
	return invariant
}

// report returns what happened, for people.
func (w *world) report() string {
	return fmt.Sprintf("profile %s\n%s\n=> %s", w.profile.name, strings.Join(w.trace, "\n"), strings.Join(w.violations, "\n=> "))
}
