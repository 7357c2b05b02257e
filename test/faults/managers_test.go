package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const lease = "private-cloud-operator.samplecontroller.k8s.io"

// leader is who holds the lease; empty for nobody.
func (w *world) leader(ctx context.Context) (string, error) {
	var l coordinationv1.Lease
	err := w.lab.client.Get(ctx, client.ObjectKey{Namespace: w.name, Name: lease}, &l)
	return ptr.Deref(l.Spec.HolderIdentity, ""), client.IgnoreNotFound(err)
}

// leaderOtherThan waits until somebody else leads.
func (w *world) leaderOtherThan(ctx context.Context, last string) (now string, err error) {
	return now, w.until(ctx, func() error {
		if now, err = w.leader(ctx); err != nil {
			return err
		}
		if now == "" || now == last {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
}

var _ = Describe("Two managers", func() {
	It("with leader election: when the leader is asked to end, the other acts within three seconds", func(ctx SpecContext) {
		const promised = 3 * time.Second
		w := openWorld(ctx, setting{profile: extended})
		first, err := w.start("--leader-elect")
		Expect(err).NotTo(HaveOccurred())
		old, err := w.leaderOtherThan(ctx, "")
		Expect(err).NotTo(HaveOccurred())
		_, err = w.start("--leader-elect")
		Expect(err).NotTo(HaveOccurred())
		Expect(w.take(ctx, create("earlier"))).To(Succeed())
		Eventually(ctx, w.log.String).Should(MatchRegexp(`(?s)ttempting to acquire leader lease.*ttempting to acquire leader lease`), "the other stands by")

		asked := time.Now()
		Expect(first.cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
		Expect(create("later")(ctx, w)).To(Succeed())
		_, err = w.leaderOtherThan(ctx, old)
		Expect(err).NotTo(HaveOccurred())
		led := time.Since(asked)
		Expect(w.until(ctx, w.reached)).To(Succeed())
		acted := time.Since(asked)

		AddReportEntry("the other leads after", led)
		AddReportEntry("and has made a VM after", acted)
		Expect(acted).To(BeNumerically("<", promised))
		Eventually(ctx, first.done).Should(BeClosed(), "the first one ends")
		Expect(first.err).NotTo(HaveOccurred(), "it was asked to end")
		Expect(w.settled(ctx)).To(Succeed())
	})

	It("that both act, on the same VMs, never make two of one, even if one is killed", func(ctx SpecContext) {
		from := seed()
		GinkgoWriter.Printf("FAULTS_SEED=%d\n", from)
		names := named("vm", 20)
		inWorlds(ctx, on(extended, core, keyless, unmarked, labelled), func(ctx context.Context, w *world) error {
			random := rand.New(rand.NewPCG(from, uint64(len(w.profile.name))))
			if _, err := w.start(); err != nil {
				return err
			}
			if err := w.working(ctx, 2); err != nil {
				return err
			}
			for _, do := range []func(string) step{createOne, removeOne} {
				if err := errors.Join(w.storm(ctx, random, 1, each(names, do)), w.settled(ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	})

	if os.Getenv("FAULTS") == "full" {
		It("of which one slept past its lease in the middle of a create make one server", func(ctx SpecContext) {
			w := openWorld(ctx, setting{profile: keyless})
			sleeper, err := w.start("--leader-elect")
			Expect(err).NotTo(HaveOccurred())
			old, err := w.leaderOtherThan(ctx, "")
			Expect(err).NotTo(HaveOccurred())
			other, err := w.start("--leader-elect")
			Expect(err).NotTo(HaveOccurred())

			stop := w.gate.stopAt(2, late)
			Expect(create(vm)(ctx, w)).To(Succeed())
			Expect(w.until(ctx, func() error {
				if len(stop.held) == 0 {
					return errors.New("no create was sent")
				}
				return nil
			})).To(Succeed())
			Expect(sleeper.cmd.Process.Signal(syscall.SIGSTOP)).To(Succeed())
			w.gate.buried()
			_, err = w.leaderOtherThan(ctx, old)
			Expect(err).NotTo(HaveOccurred())
			Expect(w.listings(ctx, 1)).To(Succeed())
			stop.goOn()
			Expect(sleeper.cmd.Process.Signal(syscall.SIGCONT)).To(Succeed())
			Expect(w.settled(ctx)).To(Succeed())
			Eventually(ctx, sleeper.done).Should(BeClosed(), "who lost the lease ends")
			Expect(other.ended()).To(BeFalse())
		})
	}
})
