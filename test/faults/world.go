package faults

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	pollInterval = testkit.PollInterval
	settleTime   = testkit.SettleTime
	// slowly is how long a slow cloud builds and deletes. tardily is longer than the
	// settle time.
	slowly  = mockcloud.Duration(700 * time.Millisecond)
	tardily = mockcloud.Duration(7 * time.Second)
	// converges is how long after the last fault all goals must be reached: a VM whose
	// name was taken looks again after a minute, jittered by a tenth. The rest is for
	// machines that are slow or busy.
	converges = 150 * time.Second
)

const (
	// vm is the name of the one VM of most runs.
	vm = "vm"
	// taken is the name of a foreign server.
	taken = "foreign"
	// contested is the vmname of two VMs.
	contested = "contested"
)

const leaseName = "private-cloud-operator.samplecontroller.k8s.io"

// claimLabels are the labels of namespaces in which VMs are created with their claim.
var claimLabels = map[string]string{"claim-at-creation": "enabled"}

// environment is what all runs share: an API server and the operator's binary.
type environment struct {
	apiServer *testkit.Env
	client    client.WithWatch
	binary    string
	folder    string
	worlds    atomic.Int64
	// alone: there is one run, whose manager sees all namespaces.
	alone bool
}

// profile is a kind of cloud, by how it proves which object owns a server.
type profile struct {
	name string
	mock mockcloud.Options
	// exact: a VM never has two servers at a time.
	exact bool
	// sharedNames: a foreign server may have the name of the VM.
	sharedNames bool
	// rest are the settings of the Cloud's type, if they matter.
	rest *pcapi.RESTCloud
	// vcenter: the cloud is a vCenter, and the mock cloud is not used.
	vcenter bool
	// claimed: VMs are created with their claim.
	claimed bool
	// always are quirks that are on in each run with quirks; unfit are those that are
	// not chosen at random.
	always, unfit []string
	// recycles: the ids of what was deleted are used again at once; see recycling.
	recycles bool
	// rewrite, if set, changes the requests to the cloud, so that the cloud does not
	// do what it promises.
	rewrite func(*http.Request)
}

// setting is what differs between worlds.
type setting struct {
	profile
	// spec of the Cloud; the endpoint and zero fields are filled in.
	spec pcapi.CloudSpec
	// respond decides about effects from the start; see gate.
	respond func(effect) *answer
	// maxData limits the data segment of each manager, in bytes; 0 for no limit.
	maxData int64
}

// world is all of one run.
type world struct {
	env     *environment
	profile profile
	name    string
	mock    *testkit.CloudServer
	// vcenter is nil where the cloud is mock. stock has the servers of either.
	vcenter  *vcsim.Server
	stock    stock
	gate     *gate
	kube     *proxy
	cloud    *proxy
	recorder *recorder
	log      *testkit.Buffer
	folder   string
	managers []*testkit.Process
	// acting is how many managers list the cloud at a time.
	acting  int
	maxData int64
	// restTimeout is how long the run may take to come to rest.
	restTimeout time.Duration

	// goals are what the run expects, for each VM object.
	goals map[string]goal

	// snapshot is what the run expects of its VMSnapshot, nil without one.
	snapshot *snapshotState
	// restart is the time of the restart that was asked for; nil for none.
	restart *metav1.Time
	// reverted: a revert was asked for.
	reverted bool
	// sent is how many changes the cloud had made when the VM got its last plan.
	sent int
	// networks is what concerns Networks. mu guards it.
	networks *networkState

	// mu guards what the recorder reads, too.
	mu      sync.Mutex
	foreign map[string]mockcloud.Server
	// strangers is how many servers and networks strangers have made; see withStrangers.
	strangers struct{ servers, networks int }
	// renamed holds the objects whose vmname is not their own name, by vmname.
	renamed map[string]string
	// kept is the name of a disk that is to be kept when the VM is deleted; empty if there is none.
	kept string
	// group is what the run expects of its group, nil without one.
	group *groupGoal
}

// newWorld makes a namespace, a mock cloud with foreign servers in it, the proxies
// and the Cloud object. No manager runs yet.
func (env *environment) newWorld(ctx context.Context, s setting) (_ *world, err error) {
	w := &world{
		env: env, profile: s.profile, name: fmt.Sprintf("run-%d", env.worlds.Add(1)),
		acting: 1, restTimeout: converges, gate: newGate(), log: &testkit.Buffer{}, foreign: map[string]mockcloud.Server{}, goals: map[string]goal{}, renamed: map[string]string{},
		networks: newNetworkState(), maxData: s.maxData,
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	w.gate.respond(s.respond)
	if w.profile.recycles {
		w.gate.intercept = w.withStrangers
	}
	w.folder = filepath.Join(env.folder, w.name)
	if err := os.Mkdir(w.folder, 0o700); err != nil {
		return nil, err
	}
	if err := w.startCloud(ctx, s); err != nil {
		return nil, err
	}
	if err := w.startKubernetes(ctx); err != nil {
		return nil, err
	}
	s.spec.REST = cmp.Or(s.spec.REST, w.profile.rest)
	if s.vcenter {
		err = w.createVSphereCloud(ctx, s.spec)
	} else {
		err = w.createCloud(ctx, w.name, w.cloud.URL, s.spec)
	}
	if err == nil && s.recycles {
		err = w.loseDeletes(s.mock.Quirks.Seed)
	}
	return w, err
}

func (w *world) startCloud(ctx context.Context, s setting) (err error) {
	if w.mock, err = testkit.ServeCloud(s.mock); err != nil {
		return err
	}
	w.stock = w.mock
	if s.vcenter {
		if err := w.startVCenter(ctx); err != nil {
			return err
		}
	}
	names := []string{taken, "other"}
	if s.sharedNames {
		names = append(names, vm)
	}
	for _, name := range names {
		if err := w.putForeignServer(mockcloud.Server{Name: name}); err != nil {
			return err
		}
	}
	if s.vcenter {
		w.cloud, err = vcenterProxy(w.vcenter.URL, w.gate)
		return err
	}
	w.cloud, err = cloudProxy(w.mock.URL, w.gate, s.rewrite)
	return err
}

// putForeignServer puts a server that the operator did not create into the cloud.
func (w *world) putForeignServer(s mockcloud.Server) error {
	put, err := w.stock.PutServer(s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foreign[put.ID] = put
	return nil
}

func (w *world) expect(name string, f goal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goals[name] = f
}

func (w *world) startKubernetes(ctx context.Context) (err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	if w.profile.claimed {
		namespace.Labels = claimLabels
	}
	if err := w.env.client.Create(ctx, namespace); err != nil {
		return err
	}
	w.recorder = newRecorder(w.remainsOf)
	if err := w.recorder.watch(ctx, w.env.client, w.name); err != nil {
		return err
	}
	shown := w.name
	if w.env.alone {
		shown = ""
	}
	if w.kube, err = kubernetesProxy(w.env.apiServer.Config, w.gate, shown); err != nil {
		return err
	}
	return testkit.WriteKubeconfig(w.kubeconfig(), &clientcmdapi.Cluster{Server: w.kube.URL}, &clientcmdapi.AuthInfo{})
}

func (w *world) kubeconfig() string { return filepath.Join(w.folder, "kubeconfig") }

// createCloud creates a Cloud object that the managers of this world see. Fields of
// spec that are zero get the values that testkit.Cloud sets.
func (w *world) createCloud(ctx context.Context, name, endpoint string, spec pcapi.CloudSpec) error {
	return w.env.client.Create(ctx, testkit.Cloud(name, endpoint, func(c *pcapi.Cloud) {
		c.Labels = map[string]string{worldLabel: w.name}
		spec.Endpoint = c.Spec.Endpoint
		spec.PollInterval.Duration = cmp.Or(spec.PollInterval.Duration, c.Spec.PollInterval.Duration)
		spec.SettleTime = cmp.Or(spec.SettleTime, c.Spec.SettleTime)
		c.Spec = spec
	}))
}

// until waits until check returns no error, and returns its last error otherwise.
func (w *world) until(ctx context.Context, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, converges, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("within %s: %w", converges, last)
	}
	return err
}

// close ends the run: the processes first, so that nothing calls what is closed.
func (w *world) close() {
	for _, m := range w.managers {
		_ = m.Kill()
	}
	w.gate.end()
	if w.recorder != nil {
		w.recorder.close()
	}
	// The cloud first, since it releases the calls that it holds.
	if w.mock != nil {
		_ = w.mock.Close()
	}
	if w.vcenter != nil {
		w.vcenter.Close()
	}
	for _, p := range []*proxy{w.kube, w.cloud} {
		if p != nil {
			p.CloseClientConnections()
			p.Close()
		}
	}
	w.removeClouds()
}

// removeClouds removes the Clouds, which are cluster-scoped: those of all earlier runs would slow every manager and every
// create of a VM, since the policy that adds claims is evaluated for each Cloud.
func (w *world) removeClouds() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var clouds pcapi.CloudList
	if err := w.env.client.List(ctx, &clouds, client.MatchingLabels{worldLabel: w.name}); err != nil {
		return // what stays costs time, and no run reads it
	}
	for i := range clouds.Items {
		c := &clouds.Items[i]
		_ = w.env.client.Patch(ctx, c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		_ = w.env.client.Delete(ctx, c)
	}
}

// report returns effects, ledger and log, to find out why a run failed.
func (w *world) report() string {
	var text strings.Builder
	fmt.Fprintf(&text, "--- effects of %s (%s), quirks %q\n", w.name, w.profile.name, w.profile.mock.Quirks)
	for _, e := range w.gate.history() {
		fmt.Fprintln(&text, e)
	}
	fmt.Fprintln(&text, "--- ledger")
	for _, e := range w.stock.Ledger() {
		fmt.Fprintln(&text, e.Seq, e.Time.Format("15:04:05.000"), e.By, e.Op, e.Name, e.ServerID, e.Fields)
	}
	fmt.Fprintln(&text, "--- log, but for listings")
	for line := range strings.Lines(w.log.String()) {
		if !strings.Contains(line, `"GET","route":"/servers"`) {
			text.WriteString(line)
		}
	}
	return text.String()
}
