// Command demo shows the operator at work on this machine: a real API server,
// the mock cloud and the manager, each a process of its own, and the samples of
// config/samples. make demo runs it.
//
//	main.go       the order of things, and what Ctrl-C does
//	stack.go      the processes: start them, stop them in order
//	process.go    one of them: its group, its log, its end
//	folder.go     where logs and data go
//	guard_*.go    etcd and kube-apiserver end with the demo, whatever ends it
//	install.go    namespace, RBAC and the operator's own kubeconfig, as make deploy makes them
//	nodes.go      Nodes for GPUInfos, and their servers
//	samples.go    apply, wait
//	door.go       a name that the cloud prohibits, refused before it is stored
//	tour.go       with --once: show all kinds, edit groups, delete all, judge
//	expected.go   what is to become of the samples (pure)
//	ledger.go     what the cloud's ledger must say (pure)
//	show.go       the tables of kubectl get, drawn again as they change
//	terminal.go   how large the terminal is
//	guide.go      what to try from a second terminal
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

const usage = `demo starts an API server, the mock cloud and the operator, and shows what becomes of config/samples.
Run it through make demo, which builds what it needs.

`

// version is set with -ldflags "-X main.version=...".
var version = "dev"

var errInterrupted = errors.New("interrupted")

func init() {
	// A child is bound to the life of the thread that started it; the main thread lives as long as the process.
	runtime.LockOSThread()
}

func main() {
	standIn()
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	once := flag.Bool("once", false, "end by itself: with 0 once the samples were as expected, groups were edited and all are gone again, with 1 and the reason otherwise")
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
	ctrl.SetLogger(logr.Discard())
	if err := run(*once); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(once bool) error {
	ctx, end := context.WithCancelCause(context.Background())
	s, err := newStack(end)
	if err != nil {
		return err
	}
	go interruptible(s, end)

	err = play(ctx, s, once)
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

// play goes through the demo from beginning to end. Once ctx ends, so does it.
func play(ctx context.Context, s *stack, once bool) error {
	for _, step := range []func(context.Context) error{
		s.startAPIServer, s.startCloud, s.addNodes, s.install, s.makeDoor, s.startOperator, s.applySamples, s.applyMistaken, s.knock,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	if once {
		return s.prove(ctx)
	}
	s.guide()
	return s.show(ctx)
}

// together is within what time signals are one: make passes SIGTERM on to a
// demo that has got it already.
const together = 500 * time.Millisecond

// interruptible ends ctx at the first signal, so that everything is stopped in
// order, and at the second ends everything at once.
func interruptible(s *stack, end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	first := <-signals
	// What the terminal echoed stays on a line of its own.
	fmt.Println()
	s.say("%v: stopping; once more to stop at once", first)
	end(errInterrupted)
	for same := time.After(together); ; {
		select {
		case <-same:
			same = nil
		case <-signals:
			if same == nil {
				s.kill()
				os.Exit(1)
			}
		}
	}
}
