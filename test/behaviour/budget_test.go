package behaviour_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// budget is the number of writes to one VM, without events, and of calls for it,
// without polls, that its life may take.
const budget = 4

// longDeletion is how long a deletion takes until the status reports it.
const longDeletion = 5 * time.Second

// withinBudget returns a case of a VM that is created and deleted within the
// budget and has the given events.
func withinBudget(writes int, options mockcloud.Options, events ...string) func(*T) {
	return func(t *T) { newFixture(t, options).stayWithin(writes, events...) }
}

// stayWithin creates and deletes a VM, which must take at most so many writes and have
// the given events.
func (f *fixture) stayWithin(writes int, events ...string) {
	t := f.t
	t.Helper()
	f.ResetCalls()
	vm := f.readyVM("web")
	f.waitForPolls(2)
	t.Expect(get(t, vm)).To(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))
	began := time.Now()
	deleteObject(t, vm)
	t.Eventually(isGone(vm)).Should(BeTrue())
	if time.Since(began) >= longDeletion-time.Second {
		writes++ // a busy machine: the status may have reported the deletion, with an event
		t.Eventually(eventReasons(vm)).Should(Or(Equal(events), Equal(slices.Insert(slices.Clone(events), len(events)-1, "Requested"))))
	} else {
		t.Eventually(eventReasons(vm)).Should(Equal(events))
	}

	sent := slices.DeleteFunc(f.writes(), func(write string) bool { return strings.Contains(write, "/clouds/") })
	t.Expect(sent).To(And(Not(BeEmpty()), HaveEach(ContainSubstring("/vms/web"))))
	t.Expect(len(sent)).To(BeNumerically("<=", writes), "writes: %v", sent)
	calls := f.CountCalls("", "/check/{name}") + f.CountCalls("POST", "/servers") + f.CountCalls("", "/servers/{id}")
	t.Expect(calls).To(BeNumerically("<=", budget), "calls: %v", f.Calls())
}

func TestVMBudget(t *testing.T) { budgetCases.run(t) }

var budgetCases = cases{
	"extended cloud: a VM's life takes at most four writes and four calls": withinBudget(budget, mockcloud.Options{}, "Created", "Deleted"),
	// The status holds the claim where there are no labels.
	"core cloud: a VM's life takes at most five writes and four calls": withinBudget(budget+1, mockcloud.Options{Profile: mockcloud.Core}, "Created", "Deleted"),
	"cloud with owner labels only: a VM's life takes at most four writes and four calls": withinBudget(budget,
		without(mockcloud.Idempotency, mockcloud.UniqueNames), "Created", "Deleted"),
	"cloud that builds and deletes slowly: a VM's life takes at most four writes and four calls": withinBudget(budget, mockcloud.Options{Behaviour: mockcloud.Behaviour{
		BuildTime: mockcloud.Duration(testkit.PollInterval), DeleteTime: mockcloud.Duration(testkit.PollInterval),
	}}, "Creating", "Created", "Deleted"),

	"the CPU use of a VM changes: one status is written": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm, other := f.readyVM("web"), f.readyVM("other")
		f.waitForPolls(2)
		before := len(f.writes())

		t.Expect(f.SetUtilisation(vm.Status.VMID, 99)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(99))))
		f.waitForPolls(2)
		t.Expect(f.writes()[before:]).To(HaveExactElements(ContainSubstring("/vms/web/status")))
		t.Expect(get(t, other).ResourceVersion).To(Equal(other.ResourceVersion))
	},
}

func TestIdleFleetCostsOneCallAPollAndNoWrite(tt *testing.T) {
	t := newT(tt)
	f := newFixture(t, mockcloud.Options{SeedServers: 30})
	var vms []*pcapi.VM
	for n := range fleet {
		vms = append(vms, f.createVM(fmt.Sprintf("web-%d", n)))
	}
	for _, vm := range vms {
		waitReady(t, vm)
	}
	f.waitForPolls(2)
	everything := len(operator.Writes.To(""))
	f.ResetCalls()

	f.waitForPolls(4)
	t.Expect(operator.Writes.To("")[everything:]).To(BeEmpty(), "the operator wrote although nothing changed")
	t.Expect(f.CountCalls("", "")).To(Equal(f.CountCalls("GET", "/servers")), "calls beside polls: %v", f.Calls())
}
