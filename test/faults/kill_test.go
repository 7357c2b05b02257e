package faults

import (
	"testing"
)

func TestManagerKilledAtAnyEffect(t *testing.T) {
	t.Parallel()
	from := seed(t)
	for _, c := range selected(from) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			c.explore(t.Context(), sharedEnvironment(t), from, t.Logf)
			t.Logf("%d effects, %d runs", len(c.effects), c.runs)
			for _, failure := range c.failures {
				t.Errorf("%v\n%s", failure.err, failure.report)
			}
		})
	}
}
