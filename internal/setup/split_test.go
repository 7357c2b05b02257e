package setup_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientconfig "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// The two managers of a split: east has the Clouds with the label shard=east, and
// west all others.
const (
	east, eastSelector = "east", "shard=east"
	west, westSelector = "west", "shard!=east"
)

// split is two managers of one API server with disjoint Clouds.
type split struct {
	*replicas

	// whole is the test that all cases belong to.
	whole    *testing.T
	managers map[string]*testkit.Manager
	// lag delays what the manager west gets to know of Clouds.
	lag *lag
	// fallback is the endpoint of the Cloud "default", which the managers make.
	fallback *testkit.CloudServer
}

func newSplit(tt *testing.T) *split {
	tt.Helper()
	s := &split{replicas: newReplicas(tt), whole: tt, managers: map[string]*testkit.Manager{}, lag: newLag("clouds")}
	var err error
	s.fallback, err = testkit.ServeCloud(mockcloud.Options{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() { s.Expect(s.fallback.Close()).To(Succeed()) })
	s.startManager(east, eastSelector)
	s.startManager(west, westSelector)
	s.Cleanup(s.lag.end) // before the managers stop
	return s
}

// in returns the split with the assertions of a case.
func (s *split) in(tt *testing.T) *split {
	tt.Helper()
	of := *s
	of.replicas = s.replicas.in(tt)
	return &of
}

// startManager starts a manager whose calls to clouds have its name in their User-Agent.
func (s *split) startManager(name, selector string) {
	s.Helper()
	scope, err := tenancy.ParseScope(selector)
	s.Expect(err).NotTo(HaveOccurred())
	user := clientconfig.CopyConfig(s.user)
	if name == west {
		user.Wrap(s.lag.wrap)
	}
	started := s.start(user, setup.Options{Scope: scope, Version: name, DefaultEndpoint: s.fallback.URL})
	s.managers[name] = started
	s.whole.Cleanup(func() {
		if s.managers[name] == started {
			s.stopManager(name)
		}
	})
}

func (s *split) stopManager(name string) {
	s.Helper()
	s.Expect(s.managers[name].Stop()).To(Succeed())
	s.managers[name] = nil
}

// site is a cloud, its Cloud object, and a namespace whose objects use it.
type site struct {
	*testkit.CloudServer

	split     *split
	object    *pcapi.Cloud
	namespace string
	callers   *callers
}

func selectedByEast(c *pcapi.Cloud) { c.Labels = map[string]string{"shard": "east"} }

// settlingLate lets creates that were sent before a Cloud moved take effect on a slow
// machine before another manager decides that they did not.
func settlingLate(c *pcapi.Cloud) { c.Spec.SettleTime.Duration = 6 * time.Second }

// callers counts the calls to a cloud by the caller's name.
type callers struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *callers) count(server *httptest.Server) {
	next := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, name, _ := strings.Cut(r.UserAgent(), "/")
		c.mu.Lock()
		c.calls[name]++
		c.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// names returns who has called, sorted.
func (c *callers) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.calls))
}

// forget drops all counts.
func (c *callers) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.calls)
}

func (s *split) newSite(name string, options mockcloud.Options, change ...func(*pcapi.Cloud)) *site {
	s.Helper()
	of := &site{split: s, namespace: name + "-team", callers: &callers{calls: map[string]int{}}}
	var err error
	of.CloudServer, err = testkit.ServeCloud(options, of.callers.count)
	s.Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() { s.Expect(of.Close()).To(Succeed()) })
	of.object = testkit.Cloud(name, of.URL, change...)
	s.create(of.object, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: of.namespace, Labels: map[string]string{pcapi.DefaultCloudLabel: name}}})
	s.Eventually(s.ready(of.object)).Should(testkit.BeReady())
	return of
}

func (s *split) create(objects ...client.Object) {
	s.Helper()
	for _, object := range objects {
		s.Expect(s.env.Client.Create(s.Context(), object)).To(Succeed())
	}
}

// vm returns a VM of the site. Every other one names its Cloud, the others get it by the
// label of their namespace.
func (of *site) vm(i int) *pcapi.VM {
	return testkit.VM(of.namespace, fmt.Sprintf("web-%02d", i), func(vm *pcapi.VM) {
		if i%2 == 0 {
			vm.Spec.CloudRef = &pcapi.CloudReference{Name: of.object.Name}
		}
	})
}

// populate creates objects of all kinds, and returns those that become Ready.
func (of *site) populate() (becomeReady []client.Object) {
	for i := range 6 {
		becomeReady = append(becomeReady, of.vm(i))
	}
	becomeReady = append(becomeReady, testkit.Network(of.namespace, "net"),
		testkit.VmGroup(of.namespace, "group", func(g *pcapi.VmGroup) { g.Spec.Replicas = new(int32(3)) }))
	gpu := &pcapi.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: of.namespace, Name: "gpu"}, Spec: pcapi.GPUInfoSpec{DesAccTime: 1}}
	of.split.create(append(becomeReady, gpu)...)
	of.split.Eventually(of.split.ready(gpu)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, ""))
	return becomeReady
}

// writes returns what a manager wrote to the site's Cloud and to the objects in its namespace.
func (of *site) writes(manager string) []string {
	made := of.split.managers[manager].Writes
	return slices.Concat(made.To("/clouds/"+of.object.Name), made.To("/namespaces/"+of.namespace+"/"))
}

// created returns how often a server was created, by name.
func (of *site) created() map[string]int {
	made := map[string]int{}
	for _, entry := range of.Ledger() {
		if entry.Op == mockcloud.OpCreate {
			made[entry.Name]++
		}
	}
	return made
}

// observedBy returns the site's Cloud as the cache of a manager has it.
func (of *site) observedBy(manager string) func(context.Context) (*pcapi.Cloud, error) {
	return func(ctx context.Context) (*pcapi.Cloud, error) {
		observed := &pcapi.Cloud{}
		err := of.split.managers[manager].Cache.Get(ctx, client.ObjectKeyFromObject(of.object), observed)
		return observed, err
	}
}

// waitForPolls waits until the cloud was listed n times more.
func (of *site) waitForPolls(n int) {
	of.split.Helper()
	before := of.CountCalls("GET", "/servers")
	of.split.Eventually(func() int { return of.CountCalls("GET", "/servers") - before }).Should(BeNumerically(">=", n))
}

// moveTo changes the label of the Cloud by which a manager selects it.
func (of *site) moveTo(shard string) {
	of.split.Helper()
	base := of.object.DeepCopy()
	of.object.Labels = map[string]string{"shard": shard}
	of.split.Expect(of.split.env.Client.Patch(of.split.Context(), of.object, client.MergeFrom(base))).To(Succeed())
}

func (s *split) leases(ctx context.Context) (map[string]string, error) {
	var list coordinationv1.LeaseList
	err := s.env.Client.List(ctx, &list, client.InNamespace(operatorNamespace))
	holders := map[string]string{}
	for _, lease := range list.Items {
		if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			holders[*lease.Spec.HolderIdentity] = lease.Name
		}
	}
	return holders, err
}

// TestSplit runs cases with two managers of one API server. Each has Clouds of its own.
func TestSplit(tt *testing.T) {
	s := newSplit(tt)
	for name, test := range map[string]func(*split){
		"two managers share the Clouds: no object is touched by both":           (*split).noObjectIsTouchedByBoth,
		"a manager is stopped: its Clouds wait and the others go on":            (*split).cloudsOfAStoppedManagerWait,
		"a Cloud moves while servers are created: each is created once":         (*split).cloudMoves,
		"both managers own a Cloud while a watch lags: each server exists once": (*split).bothOwnACloud,
	} {
		tt.Run(name, func(tt *testing.T) { test(s.in(tt)) })
	}
}

func (s *split) noObjectIsTouchedByBoth() {
	s.Eventually(s.leases).Should(HaveLen(2), "both lead, with a lease each")
	sites := map[string]*site{
		east: s.newSite("cloud-e", mockcloud.Options{}, selectedByEast),
		west: s.newSite("cloud-w", mockcloud.Options{}),
	}
	for _, of := range sites {
		for _, object := range of.populate() {
			s.Eventually(s.ready(object)).Should(testkit.BeReady(), "%T %s", object, object.GetName())
		}
	}
	home := testkit.Cloud(pcapi.DefaultCloudName, s.fallback.URL)
	s.Eventually(s.ready(home)).Should(testkit.BeReady(), "the Cloud that a manager made")
	s.Expect(s.managers[east].Writes.To("POST", "/clouds")).To(BeEmpty(), "who made it")
	s.Expect(s.managers[east].Writes.To("/clouds/default")).To(BeEmpty())
	lost := testkit.VM("default", "lost", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "typo"} })
	s.create(lost)
	s.Eventually(s.ready(lost)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "does not exist"))

	for owner, of := range sites {
		other := map[string]string{east: west, west: east}[owner]
		s.Expect(of.writes(owner)).NotTo(BeEmpty())
		s.Expect(of.writes(other)).To(BeEmpty(), "what %s wrote to objects of %s", other, owner)
		s.Expect(of.callers.names()).To(Equal([]string{owner}), "who called the cloud of %s", owner)
		s.Expect(of.created()).To(HaveLen(9), "the servers of %s", owner)
		s.Expect(of.created()).To(HaveEach(1), "the creates of %s", owner)
		s.Eventually(s.reportedVMs(of.namespace)).Should(BeEquivalentTo(9), "VMs of %s that both report", owner)
	}
	s.Expect(s.managers[east].Writes.To("/vms/lost")).To(BeEmpty(), "an object of no Cloud")
	s.Expect(s.managers[west].Writes.To("/vms/lost")).NotTo(BeEmpty(), "an object of no Cloud")
	s.Eventually(s.reportedVMs("default")).Should(BeEquivalentTo(1), "VMs of no Cloud that both report")

	vm := sites[west].vm(0)
	s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
	s.Eventually(func(ctx context.Context) error {
		return client.IgnoreNotFound(s.env.Client.Get(ctx, client.ObjectKeyFromObject(vm), vm))
	}).Should(Succeed())
	s.Eventually(sites[west].Servers).Should(HaveLen(8), "the server of a VM that was deleted")
	s.Expect(sites[west].writes(east)).To(BeEmpty())
}

func (s *split) cloudsOfAStoppedManagerWait() {
	theirs := s.newSite("stopped", mockcloud.Options{}, selectedByEast)
	mine := s.newSite("goes-on", mockcloud.Options{})
	s.stopManager(east)

	waiting, goesOn := theirs.vm(0), mine.vm(0)
	s.create(waiting, goesOn)
	s.Eventually(s.ready(goesOn)).Should(testkit.BeReady())
	theirs.callers.forget()
	mine.waitForPolls(3)
	s.Expect(theirs.callers.names()).To(BeEmpty(), "who called the cloud of the manager that is stopped")
	s.Expect(theirs.writes(west)).To(BeEmpty())
	untouched, err := s.ready(waiting)(s.Context())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(untouched.GetFinalizers()).To(BeEmpty())

	s.startManager(east, eastSelector)
	s.Eventually(s.ready(waiting)).Should(testkit.BeReady())
	s.Expect(theirs.writes(west)).To(BeEmpty())
	s.Expect(theirs.created()).To(Equal(map[string]int{waiting.Spec.VMName: 1}))
}

// cloudMoves changes the label of a Cloud while its cloud works on creates, and back.
func (s *split) cloudMoves() {
	const each = 20
	slow := []mockcloud.Fault{{ID: "slow", Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Delay: mockcloud.Duration(300 * 1e6)}}
	for name, options := range map[string]mockcloud.Options{
		"keys":   {Faults: slow},
		"core":   {Profile: mockcloud.Core, Faults: slow},
		"labels": {Faults: slow, Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false, mockcloud.UniqueNames: false}},
	} {
		s.Run(name, func(tt *testing.T) {
			s := s.in(tt)
			of := s.newSite("moves-with-"+name, options, settlingLate)
			var vms []*pcapi.VM
			next := west
			for _, shard := range []string{"east", "west"} {
				last := next
				next = map[string]string{"east": east, "west": west}[shard]
				begun := of.CountCalls("POST", "/servers")
				for range each {
					vm := of.vm(len(vms))
					vms = append(vms, vm)
					s.create(vm)
				}
				s.Eventually(func() int { return of.CountCalls("POST", "/servers") - begun }).Should(BeNumerically(">=", 2), "creates under way")
				of.moveTo(shard)
				s.moved(of, vms, last)
			}
			s.Expect(of.created()).To(HaveLen(2*each+2), "with that of the VM after each move")
			s.Expect(of.created()).To(HaveEach(1), "how often each server was created")

			vm := vms[0]
			s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
			s.Eventually(of.Servers).Should(HaveLen(2*each-1), "the server of a VM that was deleted")
		})
	}
}

// bothOwnACloud moves a Cloud while the cache of its last manager lags behind, so that
// both managers act.
func (s *split) bothOwnACloud() {
	const each = 20
	for name, options := range map[string]mockcloud.Options{
		"keys":  {},
		"names": {Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false}},
		"core":  {Profile: mockcloud.Core},
	} {
		s.Run(name, func(tt *testing.T) {
			s := s.in(tt)
			of := s.newSite("both-with-"+name, options)
			s.Eventually(of.observedBy(west)).Should(testkit.BeReady(), "a manager does not act before its cache has the Cloud as Ready")
			s.lag.begin()
			s.Cleanup(s.lag.end)
			of.moveTo("east")
			s.Eventually(of.callers.names).Should(Equal([]string{east, west}), "the new manager has connected")
			var vms []*pcapi.VM
			for range each {
				vm := of.vm(len(vms))
				vms = append(vms, vm)
				s.create(vm)
			}
			for _, vm := range vms {
				s.Eventually(s.ready(vm)).Should(testkit.BeReady(), vm.Name)
			}
			s.Expect(s.managers[west].Writes.To("/namespaces/"+of.namespace+"/vms/")).NotTo(BeEmpty(), "the last manager still acts")
			for _, vm := range vms[:each/2] {
				s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
			}
			s.Eventually(of.Servers).Should(HaveLen(each/2), "the servers of VMs that were deleted")

			s.lag.end()
			s.Eventually(func() []string {
				of.callers.forget()
				of.waitForPolls(2)
				return of.callers.names()
			}).Should(Equal([]string{east}))
			s.moved(of, vms[each/2:], west)
			s.Expect(of.created()).To(HaveLen(each + 1))
			s.Expect(of.created()).To(HaveEach(1), "how often each server was created")
		})
	}
}

// moved waits until all VMs are Ready after their Cloud has moved, and expects that
// the last manager does nothing more with them.
func (s *split) moved(of *site, vms []*pcapi.VM, last string) {
	s.Helper()
	for _, vm := range vms {
		s.Eventually(s.ready(vm)).Should(testkit.BeReady(), vm.Name)
	}
	of.waitForPolls(1)
	of.callers.forget()
	written := len(of.writes(last))
	later := of.vm(90 + len(vms))
	s.create(later)
	s.Eventually(s.ready(later)).Should(testkit.BeReady())
	s.Expect(s.env.Client.Delete(s.Context(), later)).To(Succeed())
	s.Eventually(func() []string { return namesOf(of.Servers()) }).ShouldNot(ContainElement(later.Spec.VMName))
	s.Expect(of.callers.names()).NotTo(ContainElement(last), "who called the cloud after it had moved")
	s.Expect(of.writes(last)).To(HaveLen(written), "what the last manager wrote after the Cloud had moved")
}

func namesOf(servers []mockcloud.Server) []string {
	names := make([]string, 0, len(servers))
	for _, server := range servers {
		names = append(names, server.Name)
	}
	return names
}
