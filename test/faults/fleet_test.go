package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// killRepeatedly does a step and kills the manager at random effects meanwhile,
// at most so many times and at least once, and waits until all goals are reached.
func (w *world) killRepeatedly(ctx context.Context, random *rand.Rand, kills int, do step) error {
	// Each of the callers' steps has at least two effects for each of its 12 or more VMs.
	const within = 20
	for killed := 0; ; killed++ {
		hold := w.gate.holdAt(0, before)
		if killed < kills {
			hold = w.gate.holdAt(1+random.IntN(within), phase(random.IntN(3)))
		}
		if killed == 0 {
			if err := do(ctx, w); err != nil {
				return err
			}
		}
		if err := w.until(ctx, func() error {
			if len(hold.held) > 0 {
				return nil
			}
			return w.reached()
		}); err != nil {
			return err
		}
		if len(hold.held) == 0 && w.gate.cancelHold(hold) {
			if killed == 0 {
				return errors.New("all goals were reached before the manager was killed")
			}
			return nil
		}
		_, _ = fmt.Fprintf(w.log, "--- killed %s %s\n", hold.phase, <-hold.held)
		if err := w.crash(ctx, hold, nil); err != nil {
			return err
		}
	}
}

func TestManagerKilledRepeatedlyWhile50VMsAreCreatedAndDeleted(t *testing.T) {
	t.Parallel()
	from, names := seed(t), named("vm", 50)
	inWorlds(t, on(extended, core, labelled), func(ctx context.Context, w *world) error {
		random := rand.New(rand.NewPCG(from, uint64(len(w.profile.name))))
		for _, do := range []func(string) step{createOne, removeOne} {
			if err := errors.Join(w.killRepeatedly(ctx, random, 3, each(names, do)), w.verifyAtRest(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}
