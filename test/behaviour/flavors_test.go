package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// Only an OpenStack has flavors: the package internal/controller/vm tests what a VM makes of them.
func TestFlavors(t *testing.T) {
	cases{
		"the cloud lacks flavors: a new VM is Unsupported and nothing is sent, and with a size it is created": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.Flavor = "m1.small" })
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "this cloud cannot set flavor"))
			t.Expect(f.createCalls()).To(BeZero())

			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.Flavor, vm.Spec.CPU, vm.Spec.Memory = "", pcapi.Cores(2), pcapi.GiB(4) })
			f.haveSize(waitReady(t, vm), 2, 4)
		},

		"the cloud lacks flavors: a VM with a server keeps its size": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(2), pcapi.GiB(4) })
			edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory, vm.Spec.Flavor = nil, nil, "m1.small" })
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "this cloud cannot set flavor"))
			f.haveSize(vm, 2, 4)
		},

		"the cloud lacks flavors: a group that names one is Unsupported, and keeps its members": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			group, members := f.readyGroup("web", 2)
			edit(t, group, func(g *pcapi.VmGroup) { g.Spec.CPU, g.Spec.Memory, g.Spec.Flavor = nil, nil, "m1.small" })
			t.Eventually(latest(group)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "flavor"))
			for i := range members {
				t.Expect(get(t, &members[i])).To(testkit.BeReady())
			}
			t.Expect(f.createdServers()).To(Equal(2))
		},
	}.run(t)
}
