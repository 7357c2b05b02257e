package faults

import (
	"slices"
	"testing"
	"time"

	"github.com/privatecloud/operator/test/corpus"
)

// TestTracesOfTheSimulation plays recorded traces of test/simulation, which have to end as they do there.
func TestTracesOfTheSimulation(t *testing.T) {
	// least is how many traces there are to play, and most how many are at a time: their processes must not wait for a
	// processor.
	const least, most = 30, 8
	recordings, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	recordings = slices.DeleteFunc(recordings, func(r *corpus.Recording) bool { return !replayable(r) })
	if len(recordings) < least {
		t.Errorf("%d traces can be played, not %d", len(recordings), least)
	}
	slots := make(chan struct{}, most)
	for _, recording := range third(recordings, seed(t), "traces") {
		t.Run(recording.Name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			leftOut, err := sharedEnvironment(t).replay(t.Context(), recording)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("ended after %s with %s; left out: %q", time.Since(began).Round(time.Second), recording.End, leftOut)
			if 4*len(leftOut) > len(recording.Trace) {
				t.Errorf("%d of the %d decisions cannot be made: %q", len(leftOut), len(recording.Trace), leftOut)
			}
		})
	}
}
