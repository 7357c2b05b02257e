package simulation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/internal/jitter"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/corpus"
)

var (
	operations = flag.Int("operations", 20000, "how many operations to simulate, of all profiles together")
	seed       = flag.Uint64("seed", 1, "the first seed")
	only       = flag.String("profile", "", "the name of the only profile that is simulated")
	progress   = flag.Duration("progress", 0, "how often to print what was done; states are counted, too")
	shorten    = flag.Bool("shorten", true, "whether to look for a shorter trace of a failure")
	traceFile  = flag.String("trace-file", "", "the file that a failure is recorded in")
	mutant     = flag.String("mutant", "", "the name of the bug that was put into the code, for the file")
)

const (
	// decisions is how many decisions of a run are made at random.
	decisions = 400
	// repeated: of so many seeds, the runs of two are made twice, one of each decider.
	repeated = 20
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	defer jitter.Fix(0.5)()
	m.Run()
}

// states are those that were observed in all runs.
var states = map[uint64]bool{}

// deciderOf returns the decider of a seed.
func deciderOf(seed uint64) decider {
	if seed%2 == 0 {
		return newSparseDecider(seed, decisions)
	}
	return newRandomDecider(seed, decisions)
}

// simulate makes one run.
func simulate(t *testing.T, p profile, d defaults, decide decider) *world {
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(p, d, decide)
		if *progress > 0 {
			w.observer = newObserver(states)
		}
		w.run()
	})
	return w
}

// shortest returns the shortest trace that is found to violate the same invariant, and its run.
func shortest(t *testing.T, failed *world, d defaults) ([]string, *world) {
	try := func(trace []string) (*replay, *world) {
		decide := &replay{names: trace}
		return decide, simulate(t, failed.profile, d, decide)
	}
	decide, again := try(minimize(failed.chosen, 1000, func(trace []string) bool {
		_, w := try(trace)
		return w.violated() == failed.violated()
	}))
	if again.violated() != failed.violated() {
		t.Errorf("the run cannot be repeated: the same decisions violate %q, and then %q", failed.violated(), again.violated())
	}
	return decide.trace, again
}

// readCRDs returns the defaults of the project's CRDs.
func readCRDs(t *testing.T) defaults {
	t.Helper()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	d, err := readDefaults(filepath.Join(root, "config", "crd", "bases"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// profileNamed returns the profile of a name.
func profileNamed(t *testing.T, name string) profile {
	var all []string
	for _, p := range profiles {
		if p.name == name {
			return p
		}
		all = append(all, p.name)
	}
	t.Fatalf("no profile has the name %q: there are %s", name, strings.Join(all, ", "))
	return profile{}
}

func TestRandomRuns(t *testing.T) {
	d, simulated, stats := readCRDs(t), profiles, newStatistics(states)
	if *only != "" {
		simulated = []profile{profileNamed(t, *only)}
	}
	printed := time.Now()
	for s := *seed; stats.operations < *operations; s++ {
		for _, p := range simulated {
			w := simulate(t, p, d, deciderOf(s))
			stats.add(w)
			if len(w.violations) > 0 {
				t.Fatalf("caught after %d operations: profile %s, seed %d: %s\n%s", stats.operations, p.name, s, w.violations[0], explain(t, w, d))
			}
			if *progress > 0 && time.Since(printed) > *progress {
				printed = time.Now()
				fmt.Fprintln(os.Stderr, stats)
			}
			if s%repeated > 1 {
				continue
			}
			if again := simulate(t, p, d, deciderOf(s)); !slices.Equal(w.trace, again.trace) {
				t.Fatalf("profile %s, seed %d: two runs differ: %s", p.name, s, firstDifference(w.trace, again.trace))
			}
		}
	}
	t.Log(stats.summary())
}

// explain returns what happened in a run that failed, and records it.
func explain(t *testing.T, failed *world, d defaults) string {
	trace, w := failed.chosen, failed
	if *shorten {
		trace, w = shortest(t, failed, d)
	}
	if *traceFile != "" {
		r := corpus.Recording{Profile: w.profile.name, Invariant: w.violated(), Mutant: *mutant, Trace: trace}
		if err := r.Write(*traceFile); err != nil {
			t.Error(err)
		}
	}
	return w.report()
}

// firstDifference returns where two traces differ.
func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("decision %d is %q and %q", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("one has %d decisions, the other %d", len(a), len(b))
}
