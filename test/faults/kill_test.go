package faults

import (
	"testing"
)

// maxRuns is how many runs go on at a time. They mostly wait.
const maxRuns = 36

func TestManagerKilledAtAnyEffect(t *testing.T) {
	from, slots := seed(t), make(chan struct{}, maxRuns)
	for _, c := range selected(from) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.explore(t.Context(), sharedEnvironment(t), from, slots, t.Logf)
			t.Logf("%d effects, %d runs", len(c.effects), c.runs)
			for _, failure := range c.failures {
				t.Errorf("%v\n%s", failure.err, failure.report)
			}
		})
	}
}
