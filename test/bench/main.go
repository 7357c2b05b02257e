// Command bench measures what VMs cost, and prints it as a table. It starts an
// API server, the mock cloud and the operator, each in a process of its own,
// and compares within this one run. It ends with 1 when a count is over its
// budget; what depends on the machine's speed is shown and fails nothing.
//
//	main.go     what is measured, in which order
//	stage.go    API server, mock cloud and operator, and waiting for them
//	process.go  a program in a process of its own
//	audit.go    every write that reached the API server
//	mock.go     every call that reached the cloud
//	manager.go  the operator's process: heap and time on the CPU
//	life.go     writes and calls in a VM's life
//	rate.go     many VMs at once, by the operator and by the bare loop in turn
//	bare.go     the same writes with client-go alone
//	group.go    a group of many from nothing and back, and the bare loop in turn
//	beside.go   one VM after the other, beside a group that comes to be
//	rest.go     heap, and what is written and called at rest
//	noop.go     the Go benchmark of a pass that finds nothing to do
//	table.go    figures beside their budgets
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/privatecloud/operator/internal/testkit"
)

type options struct {
	manager, mock string
	vms, most     int
	rounds        int
	workers       int
	rest          time.Duration
	profile       string
	parts         map[string]bool
}

func parse(args []string) (options, error) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return options{}, err
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.manager, "manager", filepath.Join(root, "bin", "manager"), "the operator's `binary`")
	flags.StringVar(&o.mock, "mockcloud", filepath.Join(root, "bin", "mockcloud"), "the mock cloud's `binary`")
	flags.IntVar(&o.vms, "vms", 1000, "how many VMs are created at once")
	flags.IntVar(&o.most, "most", 5000, "how many VMs there are when the heap is measured last; at most --vms leaves that out")
	flags.IntVar(&o.rounds, "rounds", 3, "how often operator and bare loop take turns")
	flags.IntVar(&o.workers, "workers", 16, "how many VMs the operator, and the bare loop, work on at a time")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long writes are counted at rest")
	flags.StringVar(&o.profile, "profile", "", "write the operator's CPU profile of the last round, and a heap profile, into this `folder`")
	parts := flags.String("parts", "noop,life,rate,group,beside,rest", "what to measure, of noop, life, rate, group, beside and rest")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.parts = map[string]bool{}
	for part := range strings.SplitSeq(*parts, ",") {
		o.parts[part] = true
	}
	return o, nil
}

func main() { os.Exit(run(os.Args[1:])) }

// run returns what the process ends with.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var results table
	if err == nil {
		results, err = measure(ctx, o)
	}
	if len(results) > 0 {
		fmt.Printf("\nWhat VMs cost (%d CPUs, %s %s/%s)\n\n%s\n", runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, results)
	}
	if err != nil {
		say("bench: %v", err)
		return 1
	}
	if over := results.overBudget(); len(over) > 0 {
		say("bench: over budget: %q", over)
		return 1
	}
	return 0
}

// part is one group of measurements.
type part struct {
	name    string
	measure func(context.Context, *stage) ([]row, error)
}

var allParts = []part{{"life", lives}, {"rate", rates}, {"group", groups}, {"beside", beside}, {"rest", atRest}}

// measure takes all measurements. With an error it returns those made before.
func measure(ctx context.Context, o options) (table, error) {
	var results table
	if o.parts["noop"] {
		rows, err := noopReconcile(ctx)
		if err != nil {
			return nil, err
		}
		results = rows
	}
	parts := slices.DeleteFunc(slices.Clone(allParts), func(p part) bool { return !o.parts[p.name] })
	if len(parts) == 0 {
		return results, nil
	}
	s, err := newStage(ctx, o)
	if err != nil {
		return results, err
	}
	for _, p := range parts {
		rows, err := p.measure(ctx, s)
		if err != nil {
			return results, errors.Join(fmt.Errorf("%s: %w", p.name, err), s.stop())
		}
		results = append(results, rows...)
	}
	return results, s.stop()
}

// say tells what is going on while the table is not there yet.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
