package behaviour_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

func TestLargeGroupDoesNotDelayOtherNamespaces(tt *testing.T) {
	t := newT(tt)
	const members = 100
	f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
		c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 10, Burst: 10, MaxInFlight: 4}
	})
	f.createGroup("large", members)
	elsewhere := newNamespace(t, nil)
	for i := range 3 {
		t.Eventually(f.createdServers).Should(BeNumerically(">", 6*(i+1)), "the large group is being served")
		name, before := fmt.Sprintf("single-%d", i), f.createdServers()
		waitReady(t, f.createVM(name, func(vm *pcapi.VM) { vm.Namespace = elsewhere }))
		var order []string
		for _, entry := range f.Ledger() {
			if entry.Op == mockcloud.OpCreate {
				order = append(order, entry.Name)
			}
		}
		t.Expect(slices.Index(order, name)-before).To(BeNumerically("<", 10), "members that were served before %s", name)
		t.Expect(len(order)).To(BeNumerically("<", members), "the large group is still waiting")
	}
}
