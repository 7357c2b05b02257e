package faults

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	pollInterval = time.Second
	settleTime   = 2 * time.Second
	// slowly is how long a slow cloud builds and deletes, and tardily how long one
	// deletes that must be told of.
	slowly  = mockcloud.Duration(700 * time.Millisecond)
	tardily = mockcloud.Duration(7 * time.Second)
	// converges is how long after the last fault all must be well: a minute, and
	// the tenth by which waits are spread.
	converges = 66 * time.Second
)

const (
	// vm is the name of the one VM of most runs.
	vm = "vm"
	// taken is the name of a stranger's server.
	taken = "stranger"
	// contested is the vmname of two VMs.
	contested = "contested"
)

// lab is what all runs share: an API server and the operator's binary.
type lab struct {
	env    *testkit.Env
	client client.WithWatch
	binary string
	folder string
	worlds atomic.Int64
}

// profile is a kind of cloud, by what it can prove.
type profile struct {
	name string
	mock mockcloud.Options
	// exact: there are never two servers of one VM, not even for a moment.
	exact bool
	// namesakes: a stranger's server may bear the name of the VM.
	namesakes bool
	// bend, where set, changes what the manager asks of the cloud on its way:
	// so a cloud can break its word.
	bend func(*http.Request)
}

// setting is what a run wants otherwise than others.
type setting struct {
	profile
	// spec of the Cloud; the endpoint and what is zero are filled in.
	spec v1alpha1.CloudSpec
	// lie decides from the start what becomes of effects; see gate.
	lie func(effect) *answer
}

// world is all of one run.
type world struct {
	lab      *lab
	profile  profile
	name     string
	mock     *mockcloud.Cloud
	served   *httptest.Server
	gate     *gate
	kube     *proxy
	cloud    *proxy
	recorder *recorder
	log      *transcript
	folder   string
	managers []*manager
	// patience is how long all may take to come to rest.
	patience time.Duration

	// wants says for each VM object of the run what is to become of it.
	wants map[string]fate

	// wiring is of Networks. mu guards it.
	wiring *wiring

	// mu guards what the recorder reads too.
	mu        sync.Mutex
	strangers map[string]mockcloud.Server
	// renamed holds the objects whose vmname is not their own name, by vmname.
	renamed map[string]string
	// wish is what is to become of the run's group, nil without one.
	wish *wish
}

// newWorld makes a namespace, a mock cloud with strangers in it, the proxies
// and the Cloud object. No manager runs yet.
func (l *lab) newWorld(ctx context.Context, s setting) (w *world, err error) {
	w = &world{
		lab: l, profile: s.profile, name: fmt.Sprintf("run-%d", l.worlds.Add(1)),
		patience: converges, gate: newGate(), log: &transcript{}, strangers: map[string]mockcloud.Server{}, wants: map[string]fate{}, renamed: map[string]string{},
		wiring: newWiring(),
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	w.gate.lie(s.lie)
	w.folder = filepath.Join(l.folder, w.name)
	if err := os.Mkdir(w.folder, 0o700); err != nil {
		return nil, err
	}
	if err := w.openCloud(s); err != nil {
		return nil, err
	}
	if err := w.openKubernetes(ctx); err != nil {
		return nil, err
	}
	err = w.makeCloud(ctx, s.spec)
	return w, err
}

func (w *world) openCloud(s setting) (err error) {
	if w.mock, err = mockcloud.New(s.mock); err != nil {
		return err
	}
	w.served = httptest.NewServer(w.mock.Handler())
	names := []string{taken, "forsaken"}
	if s.namesakes {
		names = append(names, vm)
	}
	for _, name := range names {
		if err := w.stranger(mockcloud.Server{Name: name}); err != nil {
			return err
		}
	}
	w.cloud, err = cloudProxy(w.served.URL, w.gate, s.bend)
	return err
}

// stranger puts a server into the cloud that is nobody's here.
func (w *world) stranger(s mockcloud.Server) error {
	put, err := w.mock.PutServer(s)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.strangers[put.ID] = put
	return nil
}

func (w *world) want(name string, f fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wants[name] = f
}

func (w *world) openKubernetes(ctx context.Context) (err error) {
	if err := w.lab.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}); err != nil {
		return err
	}
	w.recorder = newRecorder(w.leftOf)
	if err := w.recorder.follow(ctx, w.lab.client, w.name); err != nil {
		return err
	}
	if w.kube, err = kubernetesProxy(w.lab.env.Config, w.gate, w.name, w.name); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: w.kube.URL}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, w.kubeconfig())
}

func (w *world) kubeconfig() string { return filepath.Join(w.folder, "kubeconfig") }

func (w *world) makeCloud(ctx context.Context, spec v1alpha1.CloudSpec) error {
	spec.Endpoint = w.cloud.URL
	if spec.PollInterval.Duration == 0 {
		spec.PollInterval.Duration = pollInterval
	}
	if spec.SettleTime == nil {
		spec.SettleTime = &metav1.Duration{Duration: settleTime}
	}
	return w.lab.client.Create(ctx, &v1alpha1.Cloud{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: spec})
}

// start starts a manager beside those that run.
func (w *world) start(args ...string) (*manager, error) {
	m, err := startManager(w.lab.binary, w.kubeconfig(), w.log, append([]string{
		"--namespace=" + w.name, "--health-probe-bind-address=0", "--zap-log-level=debug",
	}, args...)...)
	if err == nil {
		w.managers = append(w.managers, m)
	}
	return m, err
}

// crash kills the last manager, which waits at a stop, and starts another.
// What is done meanwhile, if anything, finds no manager at work.
func (w *world) crash(ctx context.Context, at *stop, meanwhile step) error {
	if err := w.managers[len(w.managers)-1].kill(); err != nil {
		return err
	}
	w.gate.buried()
	defer at.goOn()
	if meanwhile != nil {
		if err := meanwhile(ctx, w); err != nil {
			return err
		}
	}
	if _, err := w.start(); err != nil {
		return err
	}
	if at.phase != late {
		return nil
	}
	return w.listings(ctx, 1)
}

// until waits for check to be content, and returns its last complaint if it never is.
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

// close ends all of the run. Processes first, so that nobody calls what is closed.
func (w *world) close() {
	for _, m := range w.managers {
		_ = m.kill()
	}
	w.gate.end()
	if w.recorder != nil {
		w.recorder.close()
	}
	if w.mock != nil {
		_ = w.mock.Close()
	}
	for _, p := range []*proxy{w.kube, w.cloud} {
		if p != nil {
			p.CloseClientConnections()
			p.Close()
		}
	}
	if w.served != nil {
		w.served.Close()
	}
}

// story is what to read when a run went wrong.
func (w *world) story() string {
	var text strings.Builder
	fmt.Fprintf(&text, "--- effects of %s (%s)\n", w.name, w.profile.name)
	for _, e := range w.gate.history() {
		fmt.Fprintln(&text, e)
	}
	fmt.Fprintln(&text, "--- ledger")
	for _, e := range w.mock.Ledger() {
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
