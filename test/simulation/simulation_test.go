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
		w.run()
	})
	return w
}

// shortest returns the run with the shortest trace that is found to violate the same invariant.
func shortest(t *testing.T, p profile, d defaults, failed *world) *world {
	trace := minimize(failed.chosen, 400, func(trace []string) bool {
		return simulate(t, p, d, &replay{trace}).violated() == failed.violated()
	})
	again := simulate(t, p, d, &replay{trace})
	if again.violated() != failed.violated() {
		t.Errorf("the run cannot be repeated: the same decisions violate %q, and then %q", failed.violated(), again.violated())
	}
	return again
}

// crdDefaults returns the defaults of the project's CRDs.
func crdDefaults(t *testing.T) defaults {
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

func TestRandomRuns(t *testing.T) {
	d := crdDefaults(t)
	done, runs, began := 0, 0, time.Now()
	for s := *seed; done < *operations; s++ {
		for _, p := range profiles {
			w := simulate(t, p, d, deciderOf(s))
			done, runs = done+w.operations, runs+1
			if len(w.violations) > 0 {
				report := w.report()
				if *shorten {
					report = shortest(t, p, d, w).report()
				}
				t.Fatalf("caught after %d operations: profile %s, seed %d: %s\n%s", done, p.name, s, w.violations[0], report)
			}
			if s%repeated > 1 {
				continue
			}
			if again := simulate(t, p, d, deciderOf(s)); !slices.Equal(w.trace, again.trace) {
				t.Fatalf("profile %s, seed %d: two runs differ: %s", p.name, s, firstDifference(w.trace, again.trace))
			}
		}
	}
	t.Logf("%d runs, %d operations, %.0f operations a second", runs, done, float64(done)/time.Since(began).Seconds())
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
