package simulation

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/internal/jitter"
	"github.com/privatecloud/operator/internal/testkit"
)

var (
	operations = flag.Int("operations", 20000, "how many operations to simulate, of all profiles together")
	seed       = flag.Uint64("seed", 1, "the first seed")
	shorten    = flag.Bool("shorten", true, "whether to look for a shorter trace of a failure")
	traceFile  = flag.String("trace-file", "", "the file that a failure is recorded in")
	mutant     = flag.String("mutant", "", "the name of the bug that was put into the code, for the file")
)

const (
	// decisions is how many decisions of a run are made at random.
	decisions = 400
	// repeated: each run of which the seed is a multiple of it is made twice.
	repeated = 10
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	defer jitter.Fix(0.5)()
	m.Run()
}

// simulate makes one run.
func simulate(t *testing.T, p profile, d defaults, decide decider) *world {
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(p, d, decide)
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

func readCRDs(t *testing.T) defaults {
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

func TestRandomRuns(t *testing.T) {
	d, done, runs, began := readCRDs(t), 0, 0, time.Now()
	for s := *seed; done < *operations; s++ {
		for _, p := range profiles {
			w := simulate(t, p, d, newRandomDecider(s, decisions))
			done, runs = done+w.operations, runs+1
			if len(w.violations) > 0 {
				t.Fatalf("caught after %d operations: profile %s, seed %d: %s\n%s", done, p.name, s, w.violations[0], explain(t, w, d))
			}
			if s%repeated != 0 {
				continue
			}
			if again := simulate(t, p, d, newRandomDecider(s, decisions)); !slices.Equal(w.trace, again.trace) {
				t.Fatalf("profile %s, seed %d: two runs differ: %s", p.name, s, firstDifference(w.trace, again.trace))
			}
		}
	}
	t.Logf("%d runs, %d operations, %.0f operations a second", runs, done, float64(done)/time.Since(began).Seconds())
}

// explain returns what happened in a run that failed, and records it.
func explain(t *testing.T, failed *world, d defaults) string {
	trace, w := failed.chosen, failed
	if *shorten {
		trace, w = shortest(t, failed, d)
	}
	if *traceFile != "" {
		r := recording{profile: w.profile.name, invariant: w.violated(), mutant: *mutant, trace: trace}
		if err := r.write(*traceFile); err != nil {
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
