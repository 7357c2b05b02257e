package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// seed of what is random, told so that a failure can be repeated.
func seed() uint64 {
	GinkgoHelper()
	if text := os.Getenv("FAULTS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		Expect(err).NotTo(HaveOccurred(), "FAULTS_SEED is a number")
		return n
	}
	return uint64(GinkgoRandomSeed())
}

// each makes one step of many.
func each(names []string, do func(name string) step) step {
	return func(ctx context.Context, w *world) error {
		for _, name := range names {
			if err := do(name)(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return names
}

// storm does a step and kills the manager at random effects while it is under
// way, at most so often and at least once, and waits until all is well.
func (w *world) storm(ctx context.Context, random *rand.Rand, kills int, do step) error {
	const within = 25
	for killed := 0; ; killed++ {
		stop := w.gate.stopAt(0, before)
		if killed < kills {
			stop = w.gate.stopAt(1+random.IntN(within), phase(random.IntN(3)))
		}
		if killed == 0 {
			if err := do(ctx, w); err != nil {
				return err
			}
		}
		if err := w.until(ctx, func() error {
			if len(stop.held) > 0 {
				return nil
			}
			return w.reached()
		}); err != nil {
			return err
		}
		if len(stop.held) == 0 && w.gate.disarm(stop) {
			if killed == 0 {
				return errors.New("all was well before the manager was killed")
			}
			return nil
		}
		GinkgoWriter.Printf("%s: killed %s %s\n", w.profile.name, stop.phase, <-stop.held)
		if err := w.crash(ctx, stop, nil); err != nil {
			return err
		}
	}
}

func createOne(name string) step { return create(name) }
func removeOne(name string) step { return remove(name, gone) }

var _ = Describe("A namespace of 50 VMs", func() {
	It("whose manager is killed again and again has 50 servers, and then none", func(ctx SpecContext) {
		from := seed()
		GinkgoWriter.Printf("FAULTS_SEED=%d\n", from)
		names := named("vm", 50)
		inWorlds(ctx, on(extended, core, labelled), func(ctx context.Context, w *world) error {
			random := rand.New(rand.NewPCG(from, uint64(len(w.profile.name))))
			for _, do := range []func(string) step{createOne, removeOne} {
				if err := errors.Join(w.storm(ctx, random, 3, each(names, do)), w.settled(ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	}, NodeTimeout(5*time.Minute))
})
