package vmgroup

import (
	"errors"
	"sync"
	"testing"
)

func TestInBatchesGrowsBatchesAndStopsAtFailure(t *testing.T) {
	broken := errors.New("the API server says no")
	for name, test := range map[string]struct {
		n, fails int
		done     int
		outcome  string
	}{
		"nothing":                                 {n: 0, fails: -1, done: 0, outcome: "in sync"},
		"all of them":                             {n: 100, fails: -1, done: 100, outcome: "in sync"},
		"the first fails: no other is tried":      {n: 100, fails: 0, done: 1, outcome: "error, : the API server says no"},
		"the third fails: its batch is done":      {n: 100, fails: 2, done: 3, outcome: "error, : the API server says no"},
		"batches grow to maxInFlight":             {n: 400, fails: 31, done: 47, outcome: "error, : the API server says no"},
		"the rest is left for the next reconcile": {n: maxChanges + 10, fails: -1, done: maxChanges, outcome: "waiting 100ms, Scaling: going on with the members"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			done := 0
			err := inBatches(test.n, func(i int) error {
				mu.Lock()
				defer mu.Unlock()
				done++
				if i == test.fails {
					return broken
				}
				return nil
			})
			if got := sum(err); got != test.outcome || done != test.done {
				t.Errorf("did %d: %s, want %d: %s", done, got, test.done, test.outcome)
			}
		})
	}
}
