package simulation

import (
	"flag"
	"path/filepath"
	"strings"
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
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	defer jitter.Fix(0.5)()
	m.Run()
}

// live lives one life.
func live(t *testing.T, p profile, d defaults, decide decider) *life {
	var l *life
	synctest.Test(t, func(*testing.T) {
		l = newLife(p, d, decide)
		l.run()
	})
	return l
}

// shortest returns the life with the shortest trace that is found to violate the same invariant.
func shortest(t *testing.T, p profile, d defaults, failed *life) *life {
	name := func(l *life) string {
		if len(l.violations) == 0 {
			return ""
		}
		invariant, _, _ := strings.Cut(l.violations[0], ":")
		return invariant
	}
	trace := minimize(failed.chosen, 400, func(trace []string) bool {
		return name(live(t, p, d, &replay{trace})) == name(failed)
	})
	return live(t, p, d, &replay{trace})
}

func TestRandomLives(t *testing.T) {
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	d, err := readDefaults(filepath.Join(root, "config", "crd", "bases"))
	if err != nil {
		t.Fatal(err)
	}
	done, lives, began := 0, 0, time.Now()
	for s := *seed; done < *operations; s++ {
		for _, p := range profiles {
			l := live(t, p, d, newDice(s, 400))
			done, lives = done+l.operations, lives+1
			if len(l.violations) > 0 {
				t.Fatalf("caught after %d operations: profile %s, seed %d: %s\n%s", done, p.name, s, l.violations[0], shortest(t, p, d, l).report())
			}
		}
	}
	t.Logf("%d lives, %d operations, %.0f operations a second", lives, done, float64(done)/time.Since(began).Seconds())
}
