package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/privatecloud/operator/internal/testkit"
)

// Grace periods for the manager and the cloud to stop. envtest has its own
// for the API server and etcd.
const (
	managerGrace = 10 * time.Second
	cloudGrace   = 5 * time.Second
)

// shortWait bounds the wait for something that usually holds at once.
const shortWait = 20 * time.Second

// stack is the set of processes of the demo.
type stack struct {
	began time.Time
	// on is the cloud that the operator uses.
	on backend
	// root is the folder of go.mod, and bin that of the binaries that make built.
	root, bin string
	// assets is the folder of etcd, kube-apiserver and kubectl.
	assets string
	// folder has the logs, and scratch, below it, temporary files.
	folder, scratch string
	// end is called when a process exits unexpectedly.
	end context.CancelCauseFunc

	api            *testkit.Env
	cloud, manager *process
	// cloudURL is the endpoint of the cloud, and adminURL controls it.
	cloudURL, adminURL string
	// webhook is the address and certificate of the name check webhook.
	webhook *testkit.Webhook

	mu sync.Mutex
	// running are the processes started so far. No process is started after killed is
	// set.
	running []*process
	killed  bool
}

func newStack(on backend, end context.CancelCauseFunc) (*stack, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, err
	}
	s := &stack{began: time.Now(), on: on, root: root, bin: filepath.Join(root, "bin"), end: end}
	s.say("demo version %s, built by %s", version, runtime.Version())
	if s.assets = os.Getenv("KUBEBUILDER_ASSETS"); s.assets == "" {
		s.assets = filepath.Join(s.bin, "k8s", "current")
	}
	if s.assets, err = filepath.Abs(s.assets); err != nil {
		return nil, fmt.Errorf("finding the Kubernetes binaries: %w", err)
	}
	for _, path := range []string{
		filepath.Join(s.assets, "etcd"), filepath.Join(s.assets, "kube-apiserver"), s.kubectlPath(),
		filepath.Join(s.bin, "manager"), filepath.Join(s.bin, on.program()),
	} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s does not exist: run make demo, which builds it", path)
		}
	}
	if s.folder, err = makeFolder(); err != nil {
		return nil, err
	}
	s.scratch = filepath.Join(s.folder, scratchName)
	s.say("logs are in %s", s.folder)
	return s, nil
}

// say prints a line of progress.
func (s *stack) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

func (s *stack) kubectlPath() string { return filepath.Join(s.assets, "kubectl") }

// kubeconfig is the path of the kubeconfig of the administrator, and
// operatorKubeconfig that of the operator.
func (s *stack) kubeconfig() string         { return filepath.Join(s.folder, "kubeconfig") }
func (s *stack) operatorKubeconfig() string { return filepath.Join(s.scratch, "operator.kubeconfig") }

func (s *stack) startAPIServer(context.Context) error {
	s.say("starting etcd and kube-apiserver")
	assets, err := guard(s.assets, filepath.Join(s.scratch, "assets"), s.folder)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"KUBEBUILDER_ASSETS": assets,
		// envtest creates its temporary files here.
		"TMPDIR": s.scratch,
		// The demo never uses an existing cluster.
		"USE_EXISTING_CLUSTER":                  "false",
		"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": "15s",
	} {
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("preparing the API server: %w", err)
		}
	}
	if s.api, err = testkit.Start(testkit.Options{}); err != nil {
		return err
	}
	config, err := os.ReadFile(s.api.Kubeconfig())
	if err == nil {
		err = os.WriteFile(s.kubeconfig(), config, 0o600)
	}
	if err != nil {
		return fmt.Errorf("copying the kubeconfig: %w", err)
	}
	s.say("the API server is running and serves the CRDs")
	return nil
}

func (s *stack) startCloud(ctx context.Context) error {
	var err error
	if s.cloud, err = s.start(s.on.title(), s.on.program(), s.on.args()...); err != nil {
		return err
	}
	s.cloudURL, s.adminURL, err = cloudAddresses(ctx, s.cloud.log)
	if err != nil {
		return fmt.Errorf("waiting for the %s to listen: %w", s.on.title(), err)
	}
	s.say("the %s is running at %s", s.on.title(), s.cloudURL)
	return nil
}

// start starts a binary of the folder bin. The demo ends if it exits unexpectedly.
func (s *stack) start(name, program string, args ...string) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return nil, errInterrupted
	}
	p, err := start(name, filepath.Join(s.folder, program+".log"), filepath.Join(s.bin, program), args, s.end)
	if err == nil {
		s.running = append(s.running, p)
	}
	return p, err
}

var addressPattern = regexp.MustCompile(`msg=listening .*url=(\S+) admin=(\S+).*\n`)

// cloudAddresses waits until the log of the cloud has the URLs of its API and of its
// admin API, and returns them.
func cloudAddresses(ctx context.Context, log string) (url, admin string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, shortWait, true, func(context.Context) (bool, error) {
		text, err := os.ReadFile(log)
		if err != nil {
			return false, err
		}
		if found := addressPattern.FindSubmatch(text); found != nil {
			url, admin = string(found[1]), string(found[2])
		}
		return url != "", nil
	})
	return url, admin, err
}

func (s *stack) startOperator(ctx context.Context) error {
	s.say("starting the operator with the permissions of config/rbac")
	diagnostics, err := testkit.FreeAddress()
	if err != nil {
		return err
	}
	s.say("the kubectl plugin asks it with --operator-url=http://%s", diagnostics)
	s.manager, err = s.start("operator", "manager", append(s.on.managerArgs(s),
		"--kubeconfig="+s.operatorKubeconfig(), "--namespace="+operatorNamespace, "--leader-elect", "--health-probe-bind-address=0", "--diagnostics-bind-address="+diagnostics.String(),
		"--webhook-cert-path="+s.webhook.CertDir, fmt.Sprintf("--webhook-bind-address=%s:%d", s.webhook.Host, s.webhook.Port))...)
	if err != nil {
		return err
	}
	if err := s.on.connect(ctx, s); err != nil {
		return err
	}
	if err := s.await(ctx, shortWait, defaultCloud()); err != nil {
		return err
	}
	return s.shortenIntervals(ctx)
}

// explain adds the last lines of the logs to an error. Those of etcd and the API
// server are of interest only if the operator was not started.
func (s *stack) explain(err error) error {
	logs := make([]string, 0, len(s.running))
	for _, p := range s.running {
		logs = append(logs, p.log)
	}
	if s.manager == nil {
		logs, _ = filepath.Glob(filepath.Join(s.folder, "*.log"))
	}
	var text strings.Builder
	for _, log := range logs {
		fmt.Fprintf(&text, "\nlast lines of %s:\n%s", log, tail(log, 15))
	}
	return fmt.Errorf("%w\n%s", err, text.String())
}

// stop stops all processes in order and removes their files, except the logs if
// keepLogs is set or a process did not stop.
func (s *stack) stop(keepLogs bool) error {
	var errs []error
	ended := func(what string, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		s.say("the %s has stopped", what)
	}
	if s.manager != nil {
		ended(s.manager.name, s.manager.stop(managerGrace))
	}
	if s.cloud != nil {
		ended(s.cloud.name, s.cloud.stop(cloudGrace))
	}
	if s.api != nil {
		err := s.api.Stop()
		if err != nil {
			err = fmt.Errorf("stopping the API server: %w", err)
		}
		ended("API server", err)
	}
	leftovers := []string{s.scratch, s.kubeconfig()}
	if !keepLogs && len(errs) == 0 {
		leftovers = []string{s.folder}
	}
	for _, path := range leftovers {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// kill kills all processes at once. etcd and the API server are killed by the
// kernel when the demo exits.
func (s *stack) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for _, p := range s.running {
		killGroup(p.cmd.Process.Pid)
	}
	_ = os.RemoveAll(s.folder)
}
