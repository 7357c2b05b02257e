package simulation

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

var (
	deviations = flag.Int("deviations", 1, "how many deviations from the usual a search tries in one run")
	groups     = flag.Bool("groups", false, "whether to search the scope of a group, too")
)

// TestSearchOfSmallScopes makes all runs of small scopes.
func TestSearchOfSmallScopes(t *testing.T) {
	scopes := []scope{{name: "one VM", acts: []string{"user: create VM a", "user: delete VM a"}}}
	if *groups {
		scopes = append(scopes, scope{name: "a group", acts: []string{"user: create VmGroup " + group, "user: delete VmGroup " + group}})
	}
	d := readCRDs(t)
	for _, scope := range scopes {
		scope.deviations = *deviations
		for _, p := range profiles {
			if p.shared || p.capabilities.Has(cloud.Snapshots) {
				continue // what others do is no part of a scope, and neither are snapshots
			}
			t.Run(scope.name+" on "+p.name, func(t *testing.T) {
				t.Parallel()
				s, began := newSearch(p, d, scope), time.Now()
				for len(s.open) > 0 {
					var w *world
					deviations := s.next()
					synctest.Test(t, func(*testing.T) { w = s.run(deviations) })
					if len(w.violations) > 0 {
						t.Fatalf("deviations %v: %s\n%s", deviations, w.violations[0], w.report())
					}
				}
				t.Logf("complete: %d states in %d runs, %.0f s", len(s.seen), s.runs, time.Since(began).Seconds())
			})
		}
	}
}
