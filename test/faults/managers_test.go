package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
)

func TestLeaderElection(t *testing.T) {
	cases := map[string]func(*testkit.T){
		"the leader is asked to end: the other manager acts within three seconds": leaderEnds,
	}
	if os.Getenv("FAULTS") == "full" {
		cases["the leader sleeps past its lease in the middle of a create: one server is created"] = leaderSleeps
	}
	for name, check := range cases {
		t.Run(name, func(t *testing.T) { check(newT(t)) })
	}
}

func leaderEnds(t *testkit.T) {
	const promised = 3 * time.Second
	w := openWorld(t, setting{profile: extended})
	first, err := w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())
	old, err := w.leaderOtherThan(t.Context(), "")
	t.Expect(err).NotTo(HaveOccurred())
	_, err = w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create("earlier"))).To(Succeed())
	t.Eventually(w.log.String).Should(MatchRegexp(`(?s)ttempting to acquire leader lease.*ttempting to acquire leader lease`), "the other manager waits for the lease")

	asked := time.Now()
	t.Expect(first.Signal(syscall.SIGTERM)).To(Succeed())
	t.Expect(create("later")(t.Context(), w)).To(Succeed())
	_, err = w.leaderOtherThan(t.Context(), old)
	t.Expect(err).NotTo(HaveOccurred())
	led := time.Since(asked)
	t.Expect(w.until(t.Context(), w.reached)).To(Succeed())
	acted := time.Since(asked)

	t.Logf("the other manager leads after %s", led)
	t.Logf("and has created a VM after %s", acted)
	t.Expect(acted).To(BeNumerically("<", promised))
	t.Eventually(first.Done()).Should(BeClosed(), "the first manager ends")
	t.Expect(first.Err()).NotTo(HaveOccurred(), "it was asked to end")
	t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
}

func TestTwoManagersWithoutLeaderElectionAndOneIsKilled(t *testing.T) {
	t.Parallel()
	from, names := seed(t), named("vm", 20)
	inWorlds(t, on(extended, core, keyless, unmarked, labelled), func(ctx context.Context, w *world) error {
		random := rand.New(rand.NewPCG(from, uint64(len(w.profile.name))))
		if _, err := w.start(); err != nil {
			return err
		}
		if err := w.working(ctx, 2); err != nil {
			return err
		}
		for _, do := range []func(string) step{createOne, removeOne} {
			if err := errors.Join(w.killRepeatedly(ctx, random, 1, each(names, do)), w.verifyAtRest(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func leaderSleeps(t *testkit.T) {
	w := openWorld(t, setting{profile: keyless})
	sleeper, err := w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())
	old, err := w.leaderOtherThan(t.Context(), "")
	t.Expect(err).NotTo(HaveOccurred())
	other, err := w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())

	hold := w.gate.holdAt(2, late)
	t.Expect(create(vm)(t.Context(), w)).To(Succeed())
	t.Expect(w.until(t.Context(), func() error {
		if len(hold.held) == 0 {
			return errors.New("no create was sent")
		}
		return nil
	})).To(Succeed())
	t.Expect(sleeper.Signal(syscall.SIGSTOP)).To(Succeed())
	w.gate.managerKilled()
	_, err = w.leaderOtherThan(t.Context(), old)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.listings(t.Context(), 1)).To(Succeed())
	hold.release()
	t.Expect(sleeper.Signal(syscall.SIGCONT)).To(Succeed())
	t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
	t.Eventually(sleeper.Done()).Should(BeClosed(), "the manager that lost the lease ends")
	t.Expect(other.Ended()).To(BeFalse())
}
