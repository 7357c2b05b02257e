package faults

import (
	"context"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// TestManagerStoppedDuringCreate asks the manager to end while the cloud holds
// the answer to a create. Without its answer, nothing on these clouds says which
// object owns the server.
func TestManagerStoppedDuringCreate(t *testing.T) {
	t.Parallel()
	election := []string{"--leader-elect"}
	for name, tc := range map[string]struct {
		profile profile
		args    []string
	}{
		"core cloud: the id is recorded":                                             {profile: core},
		"core cloud, leader election: the id is recorded":                            {profile: core, args: election},
		"neither keys, unique names nor labels: the id is recorded":                  {profile: bare},
		"neither keys, unique names nor labels, leader election: the id is recorded": {profile: bare, args: election},
	} {
		t.Run(name, func(tt *testing.T) {
			tt.Parallel()
			t := newT(tt)
			w := openWorld(t, setting{profile: tc.profile})
			m, err := w.start(tc.args...)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(w.working(t.Context(), 1)).To(Succeed())
			held, err := w.mock.AddFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Hold: true, Answer: mockcloud.After})
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(create("web")(t.Context(), w)).To(Succeed())
			t.Expect(create("second")(t.Context(), w)).To(Succeed())
			soon, cancel := context.WithTimeout(t.Context(), converges)
			defer cancel()
			t.Expect(w.mock.WaitHeld(soon, held, 2)).To(Succeed())
			t.Expect(m.Signal(syscall.SIGTERM)).To(Succeed())
			t.Eventually(w.log.String).Should(ContainSubstring("waiting for all workers to finish"), "the manager is stopping")
			t.Expect(m.Ended()).To(BeFalse(), "it waits for the create")

			t.Expect(w.mock.ReleaseFault(held)).To(Succeed())
			t.Eventually(m.Done()).Should(BeClosed(), "the manager ends")
			t.Expect(m.Err()).NotTo(HaveOccurred())
			for _, name := range []string{"web", "second"} {
				vm := w.object(name)
				t.Expect(w.env.client.Get(t.Context(), client.ObjectKeyFromObject(vm), vm)).To(Succeed())
				server, exists := w.mock.Server(vm.Status.VMID)
				t.Expect(exists).To(BeTrue(), "status.vmId of %s is %q", name, vm.Status.VMID)
				t.Expect(server.Name).To(Equal(name))
			}
			t.Expect(w.mock.RemoveFault(held)).To(Succeed())
			_, err = w.start(tc.args...)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
		})
	}
}

// TestStoppedLeaderHasNoEffect stops the leader for longer than its lease, lets
// another manager take over, and stops that one too, so that every effect after
// the first one continues is an effect of the first one.
func TestStoppedLeaderHasNoEffect(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]profile{
		"extended cloud: the stopped leader continues without an effect": extended,
		"core cloud: the stopped leader continues without an effect":     core,
	} {
		t.Run(name, func(tt *testing.T) {
			tt.Parallel()
			stoppedLeader(newT(tt), p)
		})
	}
}

func stoppedLeader(t *testkit.T, p profile) {
	w := openWorld(t, setting{profile: p})
	first, err := w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())
	old, err := w.leaderOtherThan(t.Context(), "")
	t.Expect(err).NotTo(HaveOccurred())
	second, err := w.start("--leader-elect")
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create("kept"))).To(Succeed())
	t.Expect(w.perform(t.Context(), create("deleted"))).To(Succeed())

	t.Expect(first.Signal(syscall.SIGSTOP)).To(Succeed())
	_, err = w.leaderOtherThan(t.Context(), old)
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create("by-the-second"))).To(Succeed())
	t.Expect(w.waitForRest(t.Context())).To(Succeed())

	t.Expect(second.Signal(syscall.SIGSTOP)).To(Succeed())
	t.Expect(create("new")(t.Context(), w)).To(Succeed())
	t.Expect(remove("deleted", gone)(t.Context(), w)).To(Succeed())
	if p.mock.Profile != mockcloud.Core {
		t.Expect(edit("kept", `{"spec":{"cpu":2}}`)(t.Context(), w)).To(Succeed())
	}
	before := w.gate.history()

	began := time.Now()
	t.Expect(first.Signal(syscall.SIGCONT)).To(Succeed())
	t.Eventually(first.Done()).Should(BeClosed(), "the manager that lost the lease ends")
	t.Logf("the first manager ended %s after it continued", time.Since(began).Round(time.Millisecond))
	t.Expect(w.gate.history()).To(Equal(before), "the first manager had no effect")

	t.Expect(second.Kill()).To(Succeed())
	_, err = w.start()
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
}
