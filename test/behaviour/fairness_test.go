package behaviour_test

import (
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

var _ = Describe("A crowd", func() {
	It("holds up nobody in another namespace", func(ctx SpecContext) {
		const members = 100
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) {
			c.Spec.Limits = v1alpha1.CloudLimits{RequestsPerSecond: 10, Burst: 10, MaxInFlight: 4}
		})
		s.group(ctx, "crowd", members)
		elsewhere := newNamespace(ctx, nil)
		for i := range 3 {
			Eventually(ctx, s.made).Should(BeNumerically(">", 6*(i+1)), "the crowd is being served")
			name, before := fmt.Sprintf("single-%d", i), s.made()
			untilReady(ctx, s.create(ctx, name, func(vm *v1alpha1.VM) { vm.Namespace = elsewhere }))
			var order []string
			for _, entry := range s.Ledger() {
				if entry.Op == mockcloud.OpCreate {
					order = append(order, entry.Name)
				}
			}
			Expect(slices.Index(order, name)-before).To(BeNumerically("<", 10), "members that were served before %s", name)
			Expect(len(order)).To(BeNumerically("<", members), "the crowd is still waiting")
		}
	})
})
