// Command bench measures the cost of VMs and prints a table. It starts an API
// server, the mock cloud, a simulated vCenter and the operator, each in a process of
// its own, and compares measurements of the same run. It exits with 1 if a count is over its
// budget. Figures that depend on the speed of the machine do not affect the exit
// status.
//
//	main.go     flags, and the order of the measurements
//	stage.go    starts API server, mock cloud and operator, and waits for them
//	process.go  a program in a process of its own
//	audit.go    all writes that the API server received
//	mock.go     all calls that the cloud received
//	vcenter.go  the simulated vCenter, and all calls that it received
//	manager.go  the process of the operator: heap and CPU time
//	life.go     writes and calls in a VM's life
//	rate.go     many VMs at once, by the operator and by the bare loop
//	bare.go     the same writes with client-go only
//	claims.go   VMs that are created with their claim
//	usage.go    CPU times of API server, operator and benchmark
//	group.go    a group from 0 to many and back, and the bare loop
//	beside.go   one VM after the other beside other work
//	failover.go a standby that takes over from a leader with many VMs in flight
//	split.go    many VMs at once, by one manager and by two with disjoint Clouds
//	rest.go     heap, writes and calls at rest
//	vsphere.go  calls and heap on a vCenter
//	slow.go     a group on a vCenter whose clones take a minute
//	binary.go   the size of the operator's binary
//	peers.go    the operator beside what people use in its place, only with --parts=peers
//	peers_controllers.go  the operator and the client-go controller as peers
//	peers_tofu.go         OpenTofu as a peer
//	peers_rows.go         the rows of peers
//	scale.go    one Cloud with very many VMs at rest, and the operator's start with them, only with --parts=scale
//	populate.go VMs that exist with their servers, made without the operator
//	lease.go    which manager leads, and since when
//	memory.go   the resident memory of a process
//	noop.go     the Go benchmark of a reconcile without changes
//	table.go    the table of figures and budgets
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
	vcsim         string
	// seed, tofu and provider are the programs of the part peers.
	seed, tofu, provider string
	peersMost            int
	vms, most, scaleVMs  int
	rounds               int
	workers              int
	rest                 time.Duration
	profile              string
	parts                map[string]bool
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
	flags.StringVar(&o.vcsim, "vcsim", filepath.Join(root, "bin", "vcsim"), "the `binary` of the simulated vCenter")
	flags.StringVar(&o.seed, "seedcontroller", filepath.Join(root, "bin", "seedcontroller"), "the `binary` of test/bench/seedcontroller, for peers")
	flags.StringVar(&o.tofu, "tofu", filepath.Join(root, "bin", "tofu"), "OpenTofu's or Terraform's `binary`, for peers")
	flags.StringVar(&o.provider, "restapi", filepath.Join(root, "bin", "terraform-provider-restapi"), "the `binary` of the provider restapi, for peers")
	flags.IntVar(&o.peersMost, "peers-most", 0, "number of VMs of the last measurement of peers, which is omitted unless it is more than --vms")
	flags.IntVar(&o.vms, "vms", 1000, "number of VMs that are created at once")
	flags.IntVar(&o.most, "most", 5000, "number of VMs of the last heap measurement, which is omitted unless it is more than --vms")
	flags.IntVar(&o.scaleVMs, "scale-vms", 50_000, "number of VMs of the part scale")
	flags.IntVar(&o.rounds, "rounds", 3, "number of rounds of operator and bare loop")
	flags.IntVar(&o.workers, "workers", 16, "number of VMs that the operator and the bare loop process concurrently")
	flags.DurationVar(&o.rest, "rest", time.Minute, "time for which writes are counted at rest")
	flags.StringVar(&o.profile, "profile", "", "write the operator's CPU profile of the last round, and a heap profile, to this `folder`")
	parts := flags.String("parts", "binary,noop,life,rate,group,beside,failover,split,vsphere,slow,rest", "comma-separated parts to measure: binary, noop, life, rate, group, beside, failover, split, vsphere, slow, rest; not by default: peers, scale")
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

// run returns the exit status.
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

var allParts = []part{
	{"life", lives}, {"rate", rates}, {"group", groups}, {"beside", beside}, {"failover", failovers}, {"split", splits},
	{"vsphere", onVSphere}, {"slow", slowGroup}, {"rest", atRest}, {"peers", peers}, {"scale", scale},
}

// measure runs all measurements. On an error it also returns those before it.
func measure(ctx context.Context, o options) (table, error) {
	var results table
	for _, p := range []struct {
		name    string
		measure func(context.Context, options) ([]row, error)
	}{{"binary", binarySize}, {"noop", noopReconcile}} {
		if !o.parts[p.name] {
			continue
		}
		rows, err := p.measure(ctx, o)
		if err != nil {
			return results, err
		}
		results = append(results, rows...)
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

// say prints progress to stderr.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
