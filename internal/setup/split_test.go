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

func namesOf(servers []mockcloud.Server) []string {
	names := make([]string, 0, len(servers))
	for _, server := range servers {
		names = append(names, server.Name)
	}
	return names
}
