package behaviour_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// seldom is a poll interval at which no case sees a listing that nothing asks for.
func seldom(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = 10 * time.Minute }

// newWatchedFixture returns a fixture whose cloud reports changes by itself, and whose
// watch has reported the full set.
func newWatchedFixture(t *T) *fixture {
	t.Helper()
	f := newFixture(t, reportingChanges(mockcloud.Options{}), seldom)
	f.waitForWatch(1)
	return f
}

// waitForWatch waits until the cloud was watched n times, by which it was listed once
// for the Cloud and once for each watch.
func (f *fixture) waitForWatch(n int) {
	f.t.Helper()
	f.t.Eventually(func() int { return f.CountCalls("GET", "/events") }).Should(BeNumerically(">=", n), "the cloud is watched")
	f.t.Eventually(func() int { return f.CountCalls("GET", "/servers") }).Should(BeNumerically(">=", n+1), "the full set is read")
}

// waitForRest waits until no listing is wanted any more, and forgets the calls.
func (f *fixture) waitForRest() {
	f.t.Helper()
	before := -1
	f.t.Eventually(func() bool {
		now := f.CountCalls("", "")
		same := now == before
		before = now
		return same
	}).WithPolling(2*time.Second).Should(BeTrue(), "the cloud is at rest")
	f.ResetCalls()
}

// useByHand changes the CPU use of a server, and waits until the status of its VM shows it.
func (f *fixture) useByHand(vm *pcapi.VM, percent int) {
	f.t.Helper()
	f.t.Expect(f.SetUtilisation(vm.Status.VMID, percent)).To(Succeed())
	f.t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(percent))))
}

func TestWatch(t *testing.T) { watchCases.run(t) }

var watchCases = cases{
	"a server is changed by hand at a poll interval of ten minutes: the status shows it without a listing": func(t *T) {
		f := newWatchedFixture(t)
		vm, other := f.readyVM("web"), f.readyVM("other")
		f.waitForRest()
		writes := len(f.writes())
		for _, percent := range []int{99, 12, 70} {
			f.useByHand(vm, percent)
		}
		t.Expect(f.CountCalls("", "")).To(BeZero(), "calls: %v", f.Calls())
		t.Expect(f.writes()[writes:]).To(HaveEach(ContainSubstring("/vms/web/status")))
		t.Expect(get(t, other).ResourceVersion).To(Equal(other.ResourceVersion))
	},

	"a server is stopped by hand at a poll interval of ten minutes: the status of a VM that is only observed shows it": func(t *T) {
		f := newWatchedFixture(t)
		vm := f.readyVM("web")
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
		t.Expect(f.SetServerState(vm.Status.VMID, mockcloud.StateStopped)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
	},

	"a server is destroyed by hand at a poll interval of ten minutes: its VM is Lost": func(t *T) {
		f := newWatchedFixture(t)
		vm := f.readyVM("web")
		for n := range 4 {
			f.readyVM(fmt.Sprint("other-", n))
		}
		f.waitForRest() // for longer than the settle time
		t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released"))
	},

	"100 servers are destroyed by hand and reported one by one: the brake is on": func(t *T) {
		const servers = 100
		f := newWatchedFixture(t)
		vms := make([]*pcapi.VM, servers)
		for n := range vms {
			vms[n] = f.createVM(fmt.Sprint("web-", n))
		}
		for n := range vms {
			vms[n] = waitReady(t, vms[n])
		}
		f.waitForRest() // for longer than the settle time
		for _, vm := range vms {
			t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())
		}
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "ServersVanished"),
		))
		fresh := f.createVM("fresh")
		t.Eventually(latest(fresh)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Braked"))
		lost := 0
		for _, vm := range vms {
			if get(t, vm).Status.State == pcapi.VMStateLost {
				lost++
			}
		}
		t.Expect(lost).To(BeNumerically("<", servers/4), "the brake was set before the VMs were given up")
		t.Expect(f.createCalls()).To(BeZero())
	},

	"the life of a VM on a cloud that reports changes: the same writes and calls, and no listing of its own at rest": func(t *T) {
		f := newWatchedFixture(t)
		f.waitForRest()
		withoutPolls := func() int {
			return f.CountCalls("", "/check/{name}") + f.CountCalls("POST", "/servers") + f.CountCalls("", "/servers/{id}")
		}
		vm := f.readyVM("web")
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		sent := slices.DeleteFunc(f.writes(), func(write string) bool { return !strings.Contains(write, "/vms/") })
		t.Expect(len(sent)).To(BeNumerically("<=", budget), "writes: %v", sent)
		t.Expect(withoutPolls()).To(BeNumerically("<=", budget), "calls: %v", f.Calls())
	},

	"the events are lost in an outage: what changed meanwhile is in the status after it": func(t *T) {
		f := newWatchedFixture(t)
		vm := f.readyVM("web")
		f.waitForRest()
		f.Disconnect()
		t.Expect(f.SetUtilisation(vm.Status.VMID, 99)).To(Succeed())
		f.reconnect()
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(99))))
	},

	"the Cloud is paused: nothing is watched until it goes on": func(t *T) {
		f := newWatchedFixture(t)
		vm := f.readyVM("web")
		f.waitForRest()
		annotate(t, f.object, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		annotate(t, f.object, pcapi.PausedAnnotation, "")
		f.useByHand(vm, 99)
	},
}
