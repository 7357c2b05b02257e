// Command demo runs the operator on this machine: a real API server, the mock
// cloud or a simulated vCenter, and the manager, each in a process of its own, with
// the samples of config/samples. make demo runs it.
//
//	main.go       the order of the steps; signals
//	backend.go    the clouds that the demo runs on
//	mock.go       the mock cloud
//	vsphere.go    the simulated vCenter
//	stack.go      starts the processes and stops them in order
//	process.go    one process: process group, log, exit
//	folder.go     the folder of logs and data
//	guard_*.go    kills etcd and kube-apiserver when the demo exits for any reason
//	install.go    namespace, RBAC and kubeconfig of the operator, as make deploy creates them
//	nodes.go      Nodes for GPUInfos
//	samples.go    applies the samples and waits for them
//	webhook.go    a VM with a name that the cloud refuses
//	verify.go     with --once: checks all kinds, edits groups, changes the cloud by hand, deletes everything
//	expected.go   the expected status of the samples (pure)
//	ledger.go     the expected ledger of the mock cloud (pure)
//	show.go       the tables of kubectl get, updated as they change
//	terminal.go   the size of the terminal
//	guide.go      commands to try in a second terminal
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `demo starts an API server, a cloud and the operator, and applies config/samples.
Run it with make demo, which builds the binaries that it needs.

`

// version is set with -ldflags "-X main.version=...".
var version = "dev"

var errInterrupted = errors.New("interrupted")

func init() {
	// The kernel kills a child when the thread that started it exits. The main thread exits last.
	runtime.LockOSThread()
}

func main() {
	execStandIn()
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	once := flag.Bool("once", false, "check the samples, edit groups, delete everything and exit: with 0 if all was as expected, with 1 and the reason otherwise")
	cloud := flag.String("cloud", mockName, "the `cloud` that the operator uses: "+backendNames())
	showVersion := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *showVersion {
		fmt.Println(version)
		return
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	on, known := backends[*cloud]
	if !known {
		fmt.Fprintf(os.Stderr, "demo: there is no cloud %q: use %s\n", *cloud, backendNames())
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	if err := run(on, *once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(on backend, once bool) error {
	ctx, end := context.WithCancelCause(context.Background())
	s, err := newStack(on, end)
	if err != nil {
		return err
	}
	go handleSignals(s, end)

	err = runSteps(ctx, s, once)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	interrupted := errors.Is(err, errInterrupted)
	switch {
	case interrupted && !once:
		err = nil
	case err != nil:
		err = s.explain(err)
	}
	return errors.Join(err, s.stop(err != nil && !interrupted))
}

// runSteps runs all steps of the demo. It returns when ctx ends.
func runSteps(ctx context.Context, s *stack, once bool) error {
	for _, step := range []func(context.Context) error{
		s.startAPIServer, s.startCloud, s.addNodes, s.install, s.prepareWebhook, s.startOperator, s.applySamples, s.applyInvalidGroup, s.showNameCheck,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	if once {
		return s.verify(ctx)
	}
	s.guide()
	return s.show(ctx)
}

// signalWindow is the time within which several signals count as one: make
// forwards a SIGTERM that the demo may have received already.
const signalWindow = 500 * time.Millisecond

// handleSignals calls end at the first signal, so that the processes are stopped
// in order, and kills them at the second.
func handleSignals(s *stack, end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	first := <-signals
	// The terminal has echoed ^C: start a new line.
	fmt.Println()
	s.say("%v: stopping; repeat it to stop at once", first)
	end(errInterrupted)
	for window := time.After(signalWindow); ; {
		select {
		case <-window:
			window = nil
		case <-signals:
			if window == nil {
				s.kill()
				os.Exit(1)
			}
		}
	}
}
