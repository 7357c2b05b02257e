package vmgroup

import (
	"errors"
	"sync"
	"testing"
)

func TestBatchesStartSlowlyAndStopAtAFailure(t *testing.T) {
	broken := errors.New("the API server says no")
	for name, test := range map[string]struct {
		n, all, fails int
		done          int
		outcome       string
	}{
		"nothing":                              {n: 0, all: 0, fails: -1, done: 0, outcome: "in sync"},
		"all of them":                          {n: 100, all: 100, fails: -1, done: 100, outcome: "in sync"},
		"the first fails: no other is tried":   {n: 100, all: 100, fails: 0, done: 1, outcome: "error, : the API server says no"},
		"the third fails: its batch is done":   {n: 100, all: 100, fails: 2, done: 3, outcome: "error, : the API server says no"},
		"batches grow to what is done at once": {n: 1000, all: 1000, fails: 31, done: 47, outcome: "error, : the API server says no"},
		"the rest is for a pass to come":       {n: 10, all: 20, fails: -1, done: 10, outcome: "waiting 100ms, Scaling: going on with the members"},
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
			}, test.all)
			if got := sum(err); got != test.outcome || done != test.done {
				t.Errorf("did %d: %s, want %d: %s", done, got, test.done, test.outcome)
			}
		})
	}
}
