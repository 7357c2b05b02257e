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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
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

	// foreign are the servers of somebody else, as they were created, and imported the ids of those
	// that VMs may import. Forged are the UIDs of VMs with a claim that a user wrote.
	foreign  map[string]cloud.Server
	imported map[string]bool
	forged   map[types.UID]bool
	// reused are the ids that the cloud uses again, and since when their servers are gone.
	reused map[string]time.Time

	// bare are the objects whose finalizer a user has removed, and removedBare those of them that were removed
	// then, each with the process that knew it. Claimed are the UIDs of the objects that claimed a name.
	bare, removedBare map[types.UID]*process
	claimed           map[string]types.UID
	// removedIDs are the ids that removed VMs had on record.
	removedIDs map[string]bool
	// unproved are the names of those of them that may have a server which nothing proves to be theirs.
	unproved map[types.UID]string

	// owners are the UIDs of the VMs whose creates made the servers, empty for somebody else's. FreedLate are the
	// ids of those that a request deleted whose sender did not wait for it, and arrivesLate is set while one
	// takes effect.
	owners      map[string]types.UID
	freedLate   map[string]bool
	arrivesLate bool
	// had has the last id that the cloud has given again, by the UID of the VM whose server had it before.
	had map[types.UID]string

	// hidden is the id of the server that the listing leaves out, empty for none. wasHidden is the last one, which
	// it shows again since shownAt.
	hidden, wasHidden string
	shownAt           time.Time

	// reverts counts the reverts that users requested.
	reverts int

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
	// ending is the state in which the run ends without faults.
	ending string
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
		foreign: map[string]cloud.Server{}, imported: map[string]bool{}, forged: map[types.UID]bool{}, reused: map[string]time.Time{},
		bare: map[types.UID]*process{}, removedBare: map[types.UID]*process{}, claimed: map[string]types.UID{}, unproved: map[types.UID]string{},
		removedIDs: map[string]bool{}, had: map[types.UID]string{},
		owners: map[string]types.UID{}, freedLate: map[string]bool{},
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
	w.cloud.SetReusesIDs(p.recycling)
	w.cloud.Withhold(func(id string) bool { return !w.mayReuse(id) })
	w.cloud.Normalize(p.normalizing)
	for _, name := range []string{metav1.NamespaceSystem, operatorNamespace, "default"} {
		w.mustCreate(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.mustCreate(w.newCloud(pcapi.DefaultCloudName))
	return w
}

// newCloud returns a Cloud for the cloud.
func (w *world) newCloud(name string) *pcapi.Cloud {
	return &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeREST, Endpoint: "http://cloud", InsecureAllowHTTP: true,
		PollInterval: metav1.Duration{Duration: w.profile.pollEvery()}, SettleTime: &metav1.Duration{Duration: settleTime},
	}}
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

// note adds something that changes the cloud to its history.
func (w *world) note(changed ...any) {
	if w.hashing {
		w.history = mixed(w.history, changed...)
	}
}

// start starts a process. What the creates of others answer, it does not know.
func (w *world) start() {
	w.doubtUnrecorded()
	w.processes = append(w.processes, startProcess(w))
}

// step prepares a decision: all goroutines wait for one, and processes whose end is due have ended.
func (w *world) step() {
	w.wait()
	w.keepLease()
	w.wait()
	w.checkCloud()
	if w.observer != nil {
		w.observer.observe(w)
	}
}

// wait waits until all goroutines wait for a decision. Reads go on one after the other: what goroutines that run
// at the same time do may depend on their order.
func (w *world) wait() {
	synctest.Wait()
	for slices.ContainsFunc(w.processes, func(p *process) bool { return p.client.resume() }) {
		synctest.Wait()
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
			w.checkStopped(p)
			w.kill(p)
			if released {
				w.lease = lease{}
			}
		}
	}
}

// leaseFree reports whether a process that starts acquires the lease.
func (w *world) leaseFree() bool {
	if w.profile.unled {
		return len(w.processes) < 2
	}
	return w.lease.holder == nil || time.Since(w.lease.renewed) > leaseDuration
}

// kill ends a process at once. It does not release the lease.
func (w *world) kill(p *process) {
	w.doubtUnrecorded()
	w.processes = slices.DeleteFunc(w.processes, func(o *process) bool { return o == p })
	p.kill()
}

// doubtUnrecorded makes the VMs doubtful that have a claim, of which a user may have removed the annotations, and no id: what
// their creates answered may be lost.
func (w *world) doubtUnrecorded() {
	for _, o := range w.api.all(vmKind) {
		if vm := o.(*pcapi.VM); vm.Status.VMID == "" && (vm.Annotations[pcapi.ClaimedNameAnnotation] != "" || controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)) {
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
