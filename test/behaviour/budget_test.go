package behaviour_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// mostInALife bounds the writes to one VM, events apart, and the calls for it, polls apart.
const mostInALife = 4

// costs shows what a VM's life takes on a cloud, and what it tells.
func costs(options mockcloud.Options, told ...string) func(SpecContext) {
	return func(ctx SpecContext) {
		s := newSite(ctx, options)
		s.ResetCalls()
		vm := s.ready(ctx, "web")
		s.polls(ctx, 2)
		Expect(read(ctx, vm)).To(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Eventually(ctx, story(vm)).Should(Equal(told))

		writes := slices.DeleteFunc(s.writes(), func(write string) bool { return strings.Contains(write, "/clouds/") })
		Expect(writes).To(And(Not(BeEmpty()), HaveEach(ContainSubstring("/vms/web"))))
		Expect(len(writes)).To(BeNumerically("<=", mostInALife), "writes: %v", writes)
		calls := s.CountCalls("", "/check/{name}") + s.CountCalls("POST", "/servers") + s.CountCalls("", "/servers/{id}")
		Expect(calls).To(BeNumerically("<=", mostInALife), "calls: %v", s.Calls())
	}
}

var budgets = theme{"what a VM costs", cases{
	"is at most four writes and four calls in its life":     costs(mockcloud.Options{}, "Created", "Deleted"),
	"is at most four writes and four calls on a core cloud": costs(mockcloud.Options{Profile: mockcloud.Core}, "Created", "Deleted"),
	"is at most four writes and four calls on a cloud with owner labels alone": costs(
		without(mockcloud.Idempotency, mockcloud.UniqueNames), "Created", "Deleted"),
	"is at most four writes and four calls on a cloud that takes its time": costs(mockcloud.Options{Behaviour: mockcloud.Behaviour{
		BuildTime: mockcloud.Duration(testkit.PollInterval), DeleteTime: mockcloud.Duration(testkit.PollInterval),
	}}, "Creating", "Created", "Deleted"),

	"is one status write when its use changes, and none of any other VM": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm, other := s.ready(ctx, "web"), s.ready(ctx, "other")
		s.polls(ctx, 2)
		before := len(s.writes())

		Expect(s.SetUtilisation(vm.Status.VMID, 99)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(99))))
		s.polls(ctx, 2)
		Expect(s.writes()[before:]).To(HaveExactElements(ContainSubstring("/vms/web/status")))
		Expect(read(ctx, other).ResourceVersion).To(Equal(other.ResourceVersion))
	},
}}

var _ = It("a fleet at rest costs no write, and one call a poll for all of it", func(ctx SpecContext) {
	s := newSite(ctx, mockcloud.Options{SeedServers: 30})
	var vms []*v1alpha1.VM
	for n := range fleet {
		vms = append(vms, s.create(ctx, fmt.Sprintf("web-%d", n)))
	}
	for _, vm := range vms {
		untilReady(ctx, vm)
	}
	s.polls(ctx, 2)
	everything := len(operator.Writes.To(""))
	s.ResetCalls()

	s.polls(ctx, 4)
	Expect(operator.Writes.To("")[everything:]).To(BeEmpty(), "the operator wrote though nothing happened")
	Expect(s.CountCalls("", "")).To(Equal(s.CountCalls("GET", "/servers")), "calls beside polls: %v", s.Calls())
})
